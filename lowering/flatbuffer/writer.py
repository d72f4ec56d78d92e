"""The tensor graph -> a .tosa file.

Each public function becomes a region, the entry first, and each region of an operator becomes another (`block_writer`). Names
of arguments, results and all other values are kept, those of functions only if there are several: the only function of a file
is called `main`, because other tools look for that. Attributes without a meaning of their own (those with a dialect's prefix)
and private functions, which nothing can call, are left out. Raises a Problem for anything that a file cannot express.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...runtime.errors import Problem
from ..dialects.tosa.variable import Variable
from ..graph.external import external_reads
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.types import TensorType
from ..rewrite.branches import inline_branches
from ..rewrite.extents import with_explicit_extents
from ..rewrite.legalize import legalize
from ..rewrite.prune import prune
from ..rewrite.specialize import specialized
from ..rewrite.strip_quantized import strip_quantized
from .block_writer import RegionWriter, used_variables
from .encode import encode
from .records import FileRecord
from .required_version import has_new_type, is_block_scaled, needs_1_1
from .schema import BLOCK_SCALED_FEATURE

VERSION_1_0, VERSION_1_1 = (1, 0, 2), (1, 1, 0)
ENTRY = "main"
"""Name that the reference model requires of the first region and its block."""


def write_module(module: Module) -> bytes:
    """Return the bytes of a .tosa file with the module, which must be verified; for TOSA 1.0 if that has all that is used.

    Quantized types are written as they are stored: operators hold their parameters. Raises a Problem for an operator or a type
    that .tosa files do not have.
    """
    return encode(file_record(as_tosa(module)))


def as_tosa(module: Module) -> Module:
    """Return the module without the remains of other dialects, as far as possible; all else stays as it is."""
    plain = strip_quantized(module)
    legal = legalize(inline_branches(plain))
    return plain if legal is plain else prune(legal)


def file_record(module: Module) -> FileRecord:
    """Return the records of the file."""
    functions = [with_explicit_extents(with_known_extents(f)) for f in public_functions(module)]
    check_extents(functions)
    variables = declarations(module, functions)
    unused = frozenset(variables) - {symbol for f in functions for symbol in used_variables(f.body)}
    writer = RegionWriter(variables, {f.name for f in functions})
    regions = [region for number, function in enumerate(functions)
               for region in writer.function(function, frozenset() if number else unused)]
    values = [v for f in functions for v in every_value(f.body)]
    is_draft = any(needs_1_1(o) for f in functions for o in f.body.walk()) or any(map(has_new_type, values))
    features = BLOCK_SCALED_FEATURE if any(map(is_block_scaled, values)) else 0
    return FileRecord(VERSION_1_1 if is_draft else VERSION_1_0, tuple(regions), features, is_draft)


def public_functions(module: Module) -> list[Function]:
    """Return the functions that can be called, the entry first."""
    found = [f for f in module.functions if not f.is_private]
    if not found:
        raise Problem("the module has no entry function, a .tosa file needs one", module.position, kind="model")
    return sorted(found, key=lambda f: f.name != ENTRY) if len(found) > 1 else [replace(found[0], name=ENTRY)]


def declarations(module: Module, functions: list[Function]) -> dict[str, Operation]:
    """Return the variables of the module by name, including those that older text declares inside functions. A variable that
    another graph declares is a tensor without data that nothing here writes."""
    found: dict[str, Operation] = {}
    for operation in (*module.declarations, *(o for f in functions for o in f.body.walk())):
        if operation.op.variable_effect == "declare":
            found.setdefault(str(getattr(operation.op, "symbol", "")), operation)
    for symbol, read in external_reads(replace(module, functions=tuple(functions))).items():
        found[symbol] = Operation(Variable(symbol, read.op.type), (), (), position=read.position)  # type: ignore[attr-defined]
    return found


def with_known_extents(function: Function) -> Function:
    """Return the function with the extents that follow from those of its arguments, if all of these are known."""
    types = [v.type for v in function.arguments if isinstance(v.type, TensorType) and v.type.is_static]
    if len(types) < len(function.arguments) or not any(map(has_unknown_extent, every_value(function.body))):
        return function
    return specialized(function, types)


def check_extents(functions: list[Function]) -> None:
    """Check extents: an unknown one is written as -1, which only inputs of the entry can give a meaning to."""
    if any(has_unknown_extent(v) for v in functions[0].arguments):
        return
    for function in functions:
        for value in filter(has_unknown_extent, every_value(function.body)):
            raise Problem(f"%{value.name} is {value.type}, but no input of @{functions[0].name} has an unknown extent",
                          value.position, kind="unsupported", help="a .tosa file has static shapes")


def has_unknown_extent(value: Value) -> bool:
    return isinstance(value.type, TensorType) and None in (value.type.shape or ())


def every_value(block: Block) -> Iterator[Value]:
    yield from block.arguments
    for operation in block.operations:
        yield from operation.results
        for region in operation.regions:
            yield from every_value(region)
