"""A .tosa file -> the tensor graph.

`read_module` decodes the bytes to records (`decode`) and builds functions and declarations from those; `verify` of the
graph then says whether the result makes sense. The first region is the main function; regions that operators name are
their blocks; other regions are further functions. Whatever is wrong with a file is a `Problem` at its place in the file.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...runtime.errors import Label, Problem
from ..dialects import tosa  # noqa: F401  registers the operators
from ..dialects.tosa.variable import Variable
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.types import TensorType
from ..graph.verify import symbol_of
from ..text.printer import IDENTIFIER
from .blocks import BlockReader, Budget, parts
from .constants import Constants
from .decode import decode
from .names import NAME_ATTRIBUTE
from .position import FilePosition, shown, whole
from .records import BlockRecord, FileRecord, RegionRecord, TensorRecord
from .schema import REGIONS
from .tensors import UNKNOWN_EXTENT

SHARED_PARTS = 20_000
"""Operators, tensors and names that regions may have in addition because several operators name them."""


def read_module(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> Module:
    """The module of a .tosa file. Constants are views of `data` where they can be.

    `name` is what problems call the file. Raises a Problem for a file that is damaged or makes no sense.
    """
    position = whole(name)
    return ModuleReader(decode(bytes(data), position), position).module()


class ModuleReader:
    """Builds one module from its records."""

    def __init__(self, file: FileRecord, position: FilePosition) -> None:
        self.file, self.position = file, position
        self.regions: dict[str, RegionRecord] = {}
        self.declarations: dict[str, Operation] = {}
        self.with_operator: set[str] = set()
        self.constants = Constants()
        self.is_dynamic = has_unknown_extents(file)
        for region in file.regions:
            if region.name in self.regions:
                raise Problem(f"there are two regions {shown(region.name)}", position, kind="symbol")
            self.regions[region.name] = region

    def module(self) -> Module:
        if not self.regions:
            raise Problem("the file has no regions", self.position, kind="model")
        named = {o.fields[key] for r in self.file.regions for b in r.blocks for o in b.operators
                 for key in REGIONS.get(o.attribute.name, ()) if o.fields}
        budget = Budget(SHARED_PARTS + sum(parts(b) for r in self.file.regions for b in r.blocks))
        functions = tuple(self.function(region, budget) for number, region in enumerate(self.file.regions)
                          if number == 0 or region.name not in named)
        return Module(functions, self.own_declarations(functions), position=self.position)

    def own_declarations(self, functions: Sequence[Function]) -> tuple[Operation, ...]:
        """The variables that the file declares: a tensor without data and without the operator VARIABLE that the file reads and
        never writes is a variable that another graph declares."""
        effects = [(o.op.variable_effect, symbol_of(o)) for f in functions for o in f.body.walk() if o.op.variable_effect]
        read, written = ({symbol for effect, symbol in effects if effect == wanted} for wanted in ("read", "write"))
        external = read - written - self.with_operator
        return tuple(o for symbol, o in self.declarations.items()
                     if symbol not in external or o.op.initial is not None)  # type: ignore[attr-defined]

    def function(self, region: RegionRecord, budget: Budget) -> Function:
        here = self.position.inside(f"region {region.name}")
        block = self.only_block(region, here)
        body = BlockReader(self, block, here.inside(f"block {block.name}"), 0, budget).block()
        return Function(region.name, body, tuple(v.type for v in body.yields), {},
                        names(body.arguments, block.inputs), names(body.yields, block.outputs), position=here)

    def only_block(self, region: RegionRecord, position: FilePosition) -> BlockRecord:
        if len(region.blocks) != 1:
            raise Problem(f"region {shown(region.name)} has {len(region.blocks)} blocks, one is needed", position, kind="model")
        return region.blocks[0]

    def variable(self, record: TensorRecord, type: TensorType, position: FilePosition, has_operator: bool) -> str:
        """Declare the variable of a tensor, once for all blocks that have it; its name. `has_operator`: VARIABLE does."""
        symbol = record.variable_name or record.name
        if has_operator:
            self.with_operator.add(symbol)
        initial = None if record.data is None else self.constants.data_of(record, type)
        found = self.declarations.get(symbol)
        if found is None:
            op = Variable(symbol=symbol, type=type, initial=initial)
            self.declarations[symbol] = Operation(op, (), (), position=position)
            return symbol
        known: Any = found.op
        before = (Label(found.position, "it is declared here"),)
        if known.type != type:
            raise Problem(f"variable {shown(symbol)} is {type} here", kind="variable", labels=before)
        if not self.constants.same(known.initial, initial):
            raise Problem(f"variable {shown(symbol)} has another initial value here", kind="variable", labels=before)
        return symbol

    def region(self, name: str, position: FilePosition, depth: int, budget: Budget) -> Block:
        """A new block for each use of a region."""
        found = self.regions.get(name)
        if found is None:
            raise Problem(f"there is no region {shown(name)}", position, kind="symbol")
        here = self.position.inside(f"region {name}")
        block = self.only_block(found, here)
        return BlockReader(self, block, here.inside(f"block {block.name}"), depth, budget).block()


def has_unknown_extents(file: FileRecord) -> bool:
    """Whether an input of the main graph has an extent that is not known."""
    blocks = [block for region in file.regions[:1] for block in region.blocks]
    inputs = {name for block in blocks for name in block.inputs}
    return any(UNKNOWN_EXTENT in tensor.shape for block in blocks for tensor in block.tensors if tensor.name in inputs)


def names(values: Sequence[Value], given: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """The attributes that keep tensors' names which are no names in MLIR; nothing where all are."""
    found = tuple({} if IDENTIFIER.fullmatch(name) else {NAME_ATTRIBUTE: name} for name in given)
    return found if any(found) else ()
