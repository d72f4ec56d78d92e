"""The C interface of a model: the functions, structures and symbols of its object. `entry` and `state` write their
code, `object_module` links it with the driver's and the kernels', `header` writes the C header that declares them.

There is one interface. For a model m with entry function f (a single one needs no name of its own) it is

    int32_t tosaic_m_run(const struct tosaic_m_inputs *, const struct tosaic_m_outputs *,
                         const struct tosaic_m_workspace_pools *, const struct tosaic_m_constant_pools *);

and an argument is present if the caller has memory to pass in it:

* inputs, outputs: a pointer to each tensor. They are absent if tensors are in the workspace (`workspace_io`); then
  `tosaic_m_map_inputs(workspace_pools)` and `_map_outputs` return the same structures, with the tensors' addresses.
* workspace_pools: a pointer to each memory that a run works in. It is absent if the object is self-contained.
* state: the memory of the variables, if the caller holds it (`variables`); then reset, save_state and load_state take it,
  too, and tosaic_m_init initializes it in any memory. It comes first.
* thread_pool: the pool that runs the tasks of a step in parallel (`header_sections`); null runs them one after the other. It
  comes last, and is present if the model was compiled for several threads and has steps with enough work for them.
* constant_pools: a pointer to each memory that holds constants. It is present if the user has named such memories and the
  object is not self-contained; otherwise constants are symbols of the object.

Variables that the object holds are symbols `tosaic_<namespace>_variable_<name>`, where the namespace is the model's name if the
user gives none (`variables`). A self-contained object has its pools as symbols `tosaic_m_<pool>_workspace_pool`, each in a
section of its own.

After every pointer in a structure comes the size in bytes of its memory. A run refuses a wrong size, like a null or misaligned
pointer, with an error code and before it writes anything. Pools belong to the model and not to an
entry function, so that functions of one model, or of several, can share the same memory.

A header belongs to one object: in it `tosaic_m_run` is another name for a symbol that ends in the interface's checksum, so
that a program with the header of another object does not link. The object has the plain symbol too, for callers that use no
header. Nothing is allocated, and nothing but memcpy, memset and memmove is needed from elsewhere.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ....runtime.arguments import MLIR_NAMES, tensor_text
from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.quantized import Quantized
from ...graph.types import ITEM_SIZES
from ...loops.program import Program
from ...memory.plan import Plan, PlannedVariable
from ...target.target import Target
from ..driver.parallel_steps import is_parallel
from .c_names import by_own_name, c_name, c_type, distinct, macro
from .data_symbols import alignment_of
from .pools import At, CPool, Memories, memories, pinned_variables
from .variables import CallerState, CVariable, StateForm, caller_state, variables_of

__all__ = ["CEntry", "CInterface", "Given", "c_name", "c_type", "macro"]

VERSION = 3
"""Version of the interface that this module describes; headers state it."""

STATE_ARGUMENT = "state"
"""Argument by which a caller passes the memory of the variables."""

THREAD_POOL = "thread_pool"
"""Argument by which a caller passes threads: the last argument, and the last pointer of the frame."""

MODEL_FUNCTIONS = ("checksum", "init", "reset", "save_state", "load_state", "check_constants")
"""Symbols of the whole model."""

NULL, ALIGNMENT, VARIABLE, SIZE, STATE, CONSTANTS, MACHINE = -1, -2, -3, -4, -5, -6, -7
"""Return codes for a null pointer, a misaligned one, a variable that has another type elsewhere, a wrong size, a saved state
that does not belong to the model, constant pools with other contents, and a unit of the machine that may not be used."""


@dataclass(frozen=True, slots=True)
class Given:
    """Memory that the caller passes: pointer and size are members `2 * number` and `2 * number + 1` of a structure. It has
    `nbytes` bytes if it is `exact`, else at least `nbytes`; if that is 0 the pointer is ignored."""
    structure: str
    number: int
    nbytes: int
    alignment: int
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class CEntry:
    """A program as C sees it. All its names begin with `name`. `places` locates the buffers in the model's pools, `rollback`
    the copies of variables; `elements` gives element types that no dtype determines, `quantized` the quantization."""
    name: str
    program: Program
    places: Mapping[Buffer, At]
    rollback: At | None
    elements: Mapping[Buffer, str] = field(default_factory=dict)
    quantized: Mapping[Buffer, Quantized] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[Buffer, str]:
        return self._members(self.program.inputs, f"inputs of {self.program.name}:")

    @property
    def outputs(self) -> dict[Buffer, str]:
        return self._members(self.program.outputs, f"outputs of {self.program.name}:")

    @property
    def is_mapped(self) -> bool:
        """True if inputs and outputs are in the workspace."""
        tensors = (*self.program.inputs, *self.program.outputs)
        assert len({b in self.places for b in tensors}) < 2, "some inputs and outputs have a place in the plan, others have not"
        return any(b in self.places for b in tensors)

    def given(self) -> list[Given]:
        """Return the tensors that the caller passes."""
        if self.is_mapped:
            return []
        return [Given(structure, i, b.nbytes, ITEM_SIZES[b.dtype], True)
                for structure in ("inputs", "outputs") for i, b in enumerate(getattr(self.program, structure))]

    def type(self, buffer: Buffer) -> str:
        """Return the buffer's type in MLIR."""
        return tensor_text(buffer.shape, self.elements.get(buffer, MLIR_NAMES.get(buffer.dtype, buffer.dtype)))

    @staticmethod
    def _members(buffers: Sequence[Buffer], what: str) -> dict[Buffer, str]:
        own = by_own_name(buffers, what)
        names = distinct(own, ("size",))
        return {buffer: names[name] for name, buffer in own.items()}


class CInterface:
    """The C interface of a model: `name` is part of every name, `programs` are its entry functions with their plans. A
    `self_contained` object has its pools inside; `state` says who holds the variables."""

    def __init__(self, name: str, programs: Sequence[tuple[Program, Plan]], target: Target,
                 elements: Mapping[Buffer, str] | None = None, quantized: Mapping[Buffer, Quantized] | None = None,
                 self_contained: bool = False, state: StateForm = StateForm()) -> None:
        assert programs, "an object without a program"
        self.name, self.prefix = c_name(name), f"tosaic_{c_name(name)}"
        self.target, self.self_contained, self.state = target, self_contained, state
        self.memories = memories(programs)
        self.entries = self._entries([p for p, _ in programs], self.memories, elements or {}, quantized or {})
        self.variables = self._variables(pinned_variables([plan for _, plan in programs]))
        self.caller_state = self._caller_state()
        self._check_symbols()

    def _entries(self, programs: Sequence[Program], memories: Memories, elements: Mapping[Buffer, str],
                 quantized: Mapping[Buffer, Quantized]) -> tuple[CEntry, ...]:
        own = distinct(p.name for p in programs)
        names = [self.prefix] if len(programs) == 1 else [f"{self.prefix}_{own[p.name]}" for p in programs]
        return tuple(CEntry(name, program, places, rollback, elements, quantized) for name, program, places, rollback in
                     zip(names, programs, memories.places, memories.rollbacks, strict=True))

    def _variables(self, pinned: Sequence[PlannedVariable]) -> dict[str, CVariable]:
        uses = [use for entry in self.entries for use in entry.program.variables]
        pools = {pool.title: pool.name for pool in self.memories.of_kind("workspace")}
        return variables_of(uses, self.state, self.name, alignment_of(self.target), pinned, pools)

    def _check_symbols(self) -> None:
        """Raise a Problem if two of the object's symbols are the same."""
        symbols = [s for v in self.variables.values() for s in v.symbols if self.caller_state is None]
        symbols += [f"{self.prefix}_{name}" for name in MODEL_FUNCTIONS]
        symbols += [self.pool_symbol(pool) for pool in self.memories.pools]
        symbols += [f"{entry.name}_{name}" for entry in self.entries for name in ("run", "map_inputs", "map_outputs")]
        for symbol in symbols:
            if symbols.count(symbol) > 1:
                raise Problem(f"two symbols of the object are called {symbol}", kind="symbol",
                              help="rename an entry function, a variable or a pool of the model")

    @property
    def own_variables(self) -> list[CVariable]:
        """The variables that the object declares: those that it resets, saves and loads."""
        return [v for v in self.variables.values() if not v.use.external]

    def _caller_state(self) -> CallerState | None:
        """Return the structures in which the caller holds the variables; None if the object holds them, or there are none."""
        if self.state.owner == "object" or not self.variables:
            return None
        return caller_state(self.prefix, list(self.variables.values()), self.pointer_bytes)

    @property
    def initialized(self) -> list[CVariable]:
        """The variables that have initial values."""
        return [v for v in self.own_variables if v.initial is not None]

    @property
    def initialize(self) -> str:
        """The object's internal function that gives the variables their initial values; it takes the caller's structures."""
        return f"{self.prefix}.initialize"

    def takes_state(self, entry: CEntry) -> bool:
        """True if the caller passes the memory of the variables to a run of `entry`."""
        return self.caller_state is not None and bool(entry.program.variables)

    # ---- what the caller gives ---------------------------------------------------------------------------------------
    @property
    def pools_given(self) -> list[Given]:
        """The pools that the caller passes."""
        if self.self_contained:
            return []
        return [Given(f"{kind}_pools", i, pool.nbytes, pool.alignment, False) for kind in ("workspace", "constant")
                for i, pool in enumerate(self.memories.of_kind(kind))]

    def given(self, entry: CEntry) -> list[Given]:
        """Return the memory that the caller passes to a run of `entry`, in the order of its frame."""
        return [*entry.given(), *self.pools_given]

    def structures(self, entry: CEntry) -> list[str]:
        """Return the arguments of a run that are pointers to structures."""
        return list(dict.fromkeys(g.structure for g in self.given(entry)))

    def arguments(self, entry: CEntry) -> list[str]:
        """Return all arguments of a run."""
        state = [STATE_ARGUMENT] if self.takes_state(entry) else []
        return [*state, *self.structures(entry), *([THREAD_POOL] if is_parallel(entry.program) else [])]

    def pool_symbol(self, pool: CPool) -> str:
        """Return the symbol of a pool, if the object or a file for the linker defines it."""
        return f"{self.prefix}_{pool.stem}"

    @property
    def pointer_bytes(self) -> int | None:
        """Bytes of a pointer; None if the C compiler decides."""
        return self.target.pointer_bytes

    @property
    def word(self) -> str:
        """LLVM's type of a size."""
        return "i64" if self.target.has_int64 else "i32"
