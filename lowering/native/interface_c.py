"""The C interface of programs: entry functions that check their pointers, and the text of the header that declares
them.

Several programs (the entry functions of one model) go into one object and share its variables and constants. Nothing
is allocated: the caller gives inputs, outputs and a workspace of the size that the header states.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...runtime.arguments import MLIR_NAMES, tensor_text
from ...runtime.errors import Problem
from ..elements.expression import Buffer
from ..graph.types import ITEM_SIZES
from ..loops.program import Program
from ..memory.buffers import aligned
from ..memory.plan import Plan
from .backup import backup_of
from .data import Constants, ObjectVariable, variables_of
from .driver import Place, Places, Slot, Symbol, Writer
from .module import Part, constants_read, module_text, pool_slots, pools_used
from .target import Target

NULL, ALIGNMENT, VARIABLE = -1, -2, -3
"""What an entry returns for a null pointer, a misaligned one, and a variable that has another type elsewhere."""

C_TYPES = {"bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double"}
"""C types of elements that are no integers of C; floats of 8 bits and less are `uint8_t`, integers `int<n>_t`."""

WORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not nullptr operator or private protected public register
    requires restrict return short signed sizeof static struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor"""
KEYWORDS = frozenset(WORDS.split())
"""Words of C and C++ that cannot name a member."""


def c_name(text: str) -> str:
    """A name as C takes it: what is no letter or digit becomes an underscore, two of them one."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    if name[0].isdigit():
        name = f"x{name}"
    return f"{name}_" if name in KEYWORDS else name


def c_type(dtype: str) -> str:
    if dtype in C_TYPES:
        return C_TYPES[dtype]
    return "uint8_t" if dtype.startswith("float") else f"{dtype}_t"


def c_names(buffers: Iterable[Buffer], what: str) -> dict[Buffer, str]:
    """Each buffer's name in C; a Problem where two get the same, or (the macros have capitals only) nearly the same."""
    found: dict[str, Buffer] = {}
    for buffer in buffers:
        other = found.setdefault(macro(c_name(buffer.name)), buffer)
        if other is not buffer:
            raise Problem(f"{what} {other.name} and {buffer.name} are both called {macro(c_name(buffer.name))} in C",
                          kind="symbol", help="rename one of them in the model")
    return {buffer: c_name(buffer.name) for buffer in found.values()}


def macro(name: str) -> str:
    """A name of C as a part of a macro's name."""
    return name.upper().rstrip("_")


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that the caller gives for a run."""
    name: str
    nbytes: int
    alignment: int


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A program as C sees it. `name` begins all its names; `elements` says element types that no dtype says."""
    name: str
    program: Program
    plan: Plan
    elements: Mapping[Buffer, str] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[Buffer, str]:
        return c_names(self.program.inputs, f"inputs of {self.program.name}:")

    @property
    def outputs(self) -> dict[Buffer, str]:
        return c_names(self.program.outputs, f"outputs of {self.program.name}:")

    @property
    def regions(self) -> tuple[Region, ...]:
        """The pools that the program uses; the room for copies of variables is at the end of the first."""
        pools = [Region(c_name(p.name), p.size_bytes, p.alignment) for p in pools_used(self.plan)]
        extra = backup_of(self.program).nbytes
        if extra:
            first = pools[0] if pools else Region("workspace", 0, 8)
            pools[:1] = [Region(first.name, self.backup_at + extra, first.alignment)]
        return tuple(pools)

    @property
    def backup_at(self) -> int:
        used = pools_used(self.plan)
        return aligned(used[0].size_bytes, 8) if used else 0

    def type(self, buffer: Buffer) -> str:
        """The buffer's type in MLIR."""
        return tensor_text(buffer.shape, self.elements.get(buffer, MLIR_NAMES.get(buffer.dtype, buffer.dtype)))


class Interface:
    """The C interface of a model: `name` is part of every name, `programs` are its entry functions with their
    plans."""

    def __init__(self, name: str, programs: Sequence[tuple[Program, Plan]], target: Target,
                 elements: Mapping[Buffer, str] | None = None) -> None:
        assert programs, "an object without a program"
        self.target, self.prefix = target, f"tosaic_{c_name(name)}"
        self.entries = self._entries(programs, elements or {})
        self.variables = self._variables()
        self._check_symbols()

    def _entries(self, programs: Sequence[tuple[Program, Plan]], elements: Mapping[Buffer, str]) -> tuple[Entry, ...]:
        if len(programs) == 1:
            (program, plan), = programs
            return (Entry(self.prefix, program, plan, elements),)
        return tuple(Entry(f"{self.prefix}_{c_name(p.name)}", p, plan, elements) for p, plan in programs)

    def _variables(self) -> dict[str, ObjectVariable]:
        uses = variables_of([use for entry in self.entries for use in entry.program.variables])
        c_names((use.buffer for use in uses.values()), "variables")
        return {name: ObjectVariable(use, f"tosaic_variable_{c_name(name)}") for name, use in uses.items()}

    def _check_symbols(self) -> None:
        """A Problem where two of the object's symbols are the same."""
        symbols = [s for v in self.variables.values() for s in v.symbols] + [f"{self.prefix}_reset"]
        symbols += [f"{entry.name}_run" for entry in self.entries]
        for symbol in symbols:
            if symbols.count(symbol) > 1:
                raise Problem(f"two symbols of the object are called {symbol}", kind="symbol",
                              help="rename an entry function or a variable of the model")

    # ---- code --------------------------------------------------------------------------------------------------------
    def module(self, constants: Constants) -> str:
        """LLVM IR of the object; `constants` take up its constants."""
        parts = [Part(entry.name, entry.program, self._places(entry, constants)) for entry in self.entries]
        definitions = [line for v in self.variables.values() for line in v.definitions(self.target)]
        entries = [line for entry in self.entries for line in self._run(entry)]
        reset = self._reset(constants)
        return module_text(parts, self.target, [*constants.lines, *definitions, *entries, *reset])

    def _places(self, entry: Entry, constants: Constants) -> Places:
        """The frame holds inputs, outputs and regions; constants and variables are symbols."""
        program = entry.program
        arguments = [*program.inputs, *program.outputs]
        buffers: dict[Buffer, Place] = {b: Slot(i) for i, b in enumerate(arguments)}
        buffers |= pool_slots(program, entry.plan, len(arguments))
        buffers |= {b: Symbol(constants.symbol(b.data)) for b in constants_read(program) if b.data is not None}
        own = {use.buffer: self.variables[use.buffer.name] for use in program.variables}
        buffers |= {b: Symbol(v.symbol) for b, v in own.items()}
        return Places(buffers, {b: Symbol(v.flag) for b, v in own.items()}, Slot(len(arguments), entry.backup_at))

    def _reset(self, constants: Constants) -> list[str]:
        w = Writer()
        for variable in self.variables.values():
            variable.reset(w, constants)
        return [f"define void @{self.prefix}_reset() #0 {{", *w.lines, " ret void", "}"]

    def _run(self, entry: Entry) -> list[str]:
        """The entry function: loads all pointers, checks them, makes the frame and runs."""
        w, program = Writer(), entry.program
        structs = ["inputs"] * bool(program.inputs) + ["outputs"] * bool(program.outputs)
        regions = entry.regions
        self._refuse(w, [w.put(f"icmp eq ptr %{p}, null") for p in [*structs, *["workspace"] * bool(regions)]], NULL)
        pointers = [(w.put(f"load ptr, ptr {w.offset('%inputs', i, 'ptr')}"), ITEM_SIZES[b.dtype])
                    for i, b in enumerate(program.inputs)]
        pointers += [(w.put(f"load ptr, ptr {w.offset('%outputs', i, 'ptr')}"), ITEM_SIZES[b.dtype])
                     for i, b in enumerate(program.outputs)]
        pointers += [("%workspace" if len(regions) == 1 else
                      w.put(f"load ptr, ptr {w.offset('%workspace', i, 'ptr')}"), region.alignment)
                     for i, region in enumerate(regions)]
        self._refuse(w, [w.put(f"icmp eq ptr {p}, null") for p, _ in pointers if p != "%workspace"], NULL)
        self._refuse(w, [misaligned(w, p, alignment) for p, alignment in pointers if alignment > 1], ALIGNMENT)
        self._refuse(w, [w.put(f"icmp ne i32 {w.put(f'load i32, ptr @{v.type_symbol}')}, {v.checksum}") for v in
                         (self.variables[use.buffer.name] for use in program.variables)], VARIABLE)
        frame = w.put(f"alloca [{max(len(pointers), 1)} x ptr]")
        for i, (pointer, _) in enumerate(pointers):
            w.do(f"store ptr {pointer}, ptr {w.offset(frame, i, 'ptr')}")
        w.do(f"ret i32 {w.put(f'call i32 @{entry.name}.run(ptr {frame})')}")
        params = ", ".join(f"ptr %{p}" for p in [*structs, "workspace"])
        return [f"define i32 @{entry.name}_run({params}) #0 {{", *w.lines, "}"]

    def _refuse(self, w: Writer, conditions: Sequence[str], code: int) -> None:
        """Return `code` if one of the conditions holds."""
        if not conditions:
            return
        any_holds = conditions[0]
        for condition in conditions[1:]:
            any_holds = w.put(f"or i1 {any_holds}, {condition}")
        refused, passed = w.labels("refused", "passed")
        w.split(any_holds, refused, passed)
        w.start(refused)
        w.do(f"ret i32 {code}")
        w.start(passed)


def misaligned(w: Writer, pointer: str, alignment: int) -> str:
    low = w.put(f"and i64 {w.put(f'ptrtoint ptr {pointer} to i64')}, {alignment - 1}")
    return w.put(f"icmp ne i64 {low}, 0")
