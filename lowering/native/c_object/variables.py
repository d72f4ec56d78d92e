"""The variables of a model as C sees them: the owner of their memory, their names there, and the layout of the structures in
which a caller holds them. Data alone: `data_symbols` and `state` write the object's code from it, `header_sections` the
declarations.

If the object holds them (`StateForm.owner`), each is a symbol, zero at first, in a section of its own. If the caller does, they
are members of `struct tosaic_m_state`, and those that are pinned to a pool are members of `struct tosaic_m_<pool>_state`, to
which the first structure has a pointer. Each variable has a flag byte: whether it has been written. Initial values are
constants: the next function that uses a variable with a flag of 0 stores its initial value, if any.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ....runtime.arguments import tensor_text
from ....runtime.c_symbols import type_checksum, variable_symbols
from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...graph.types import ITEM_SIZES, Array
from ...loops.program import VariableUse
from ...memory.buffers import aligned, own_alignment
from ...memory.plan import PlannedVariable
from .c_names import beside, c_type, distinct, written_member

Owner = Literal["object", "caller"]


@dataclass(frozen=True, slots=True)
class StateForm:
    """The owner of a model's variables: the object, or the caller, who then passes their memory to each call. Objects of one
    `namespace` share variables of one name; without a namespace (None) a model's variables are its own."""
    namespace: str | None = None
    owner: Owner = "object"

    def __post_init__(self) -> None:
        if self.namespace == "":
            raise Problem("a namespace has no name", kind="option", help="leave it out: the variables are then the model's own")
        if self.namespace is not None and self.owner == "caller":
            raise Problem("variables that the caller holds have no symbols, and no namespace", kind="option",
                          help="leave out the namespace: instances that are given one structure share its variables")


@dataclass(frozen=True, slots=True)
class CVariable:
    """A variable of a model. `member` is its name in a structure, `pool` the pool (by its name in C) that it is pinned to,
    `section` the section of its symbol. Its symbols are weak if the variable `is_shared` in a namespace: then another object of
    the program may define them, and a run compares the checksum of the type."""
    use: VariableUse
    namespace: str
    member: str
    alignment: int
    is_shared: bool = False
    pool: str | None = None
    section: str = ""

    @property
    def name(self) -> str:
        return self.use.buffer.name

    @property
    def buffer(self) -> Buffer:
        return self.use.buffer

    @property
    def symbol(self) -> str:
        return variable_symbols(self.namespace, self.name).data

    @property
    def flag(self) -> str:
        return variable_symbols(self.namespace, self.name).flag

    @property
    def type_symbol(self) -> str:
        return variable_symbols(self.namespace, self.name).type

    @property
    def symbols(self) -> tuple[str, ...]:
        return variable_symbols(self.namespace, self.name)

    @property
    def count(self) -> int:
        """Number of elements of the variable's array in C, which is never empty."""
        return max(self.buffer.size, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of that array."""
        return self.count * ITEM_SIZES[self.buffer.dtype]

    @property
    def element(self) -> str:
        """C type of an element."""
        return c_type(self.buffer.dtype)

    @property
    def type(self) -> str:
        """MLIR type."""
        return tensor_text(self.buffer.shape, self.use.element)

    @property
    def checksum(self) -> int:
        return type_checksum(self.use.element, self.buffer.shape)

    @property
    def initial(self) -> Array | None:
        return None if self.use.initial is None else self.use.initial.data


# ---- structures of the caller ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class StateMember:
    """A member of a structure: `count` elements of a C type, or a pointer that `points` to the structure of that tag."""
    name: str
    type: str
    count: int
    offset: int
    nbytes: int
    comment: str = ""
    points: str | None = None
    alignment: int = 1
    """Alignment in the member's declaration, if its order alone does not place it."""

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True)
class StateStructure:
    """A structure in which the caller holds variables. `pool` is the pool (by its name in C) that the variables are pinned to;
    None for the structure that the functions take, which has all flags and the pointers to the others. Members are in order,
    and all padding is members."""
    tag: str
    pool: str | None
    members: tuple[StateMember, ...]
    nbytes: int
    alignment: int

    def member(self, name: str) -> StateMember:
        return next(m for m in self.members if m.name == name)


@dataclass(frozen=True, slots=True)
class StateAt:
    """An offset in a structure of the caller, by its number."""
    structure: int
    offset: int


@dataclass(frozen=True, slots=True)
class CallerState:
    """The structures in which a caller holds a model's state, first the one that functions take. `data` and `flags` locate each
    variable by its name."""
    structures: tuple[StateStructure, ...]
    data: Mapping[str, StateAt]
    flags: Mapping[str, StateAt]

    @property
    def pointers(self) -> tuple[int, ...]:
        """Offsets in the first structure of the pointers to the others."""
        return tuple(self.structures[0].member(pointer_member(s.pool)).offset for s in self.structures[1:] if s.pool)


def pointer_member(pool: str) -> str:
    """Return the member of the first structure that points to a pool's structure."""
    return beside(pool, "state")


ANY_POINTER_BYTES = 8
"""Bytes, and alignment, of a pointer whose size is not known: with pointers last the layout is the same for all sizes."""


def caller_state(prefix: str, variables: Sequence[CVariable], pointer_bytes: int | None) -> CallerState:
    """Return the structures for these variables, for pointers of `pointer_bytes` bytes (None: of any size)."""
    pinned: dict[str | None, list[Laid]] = {None: []}
    for v in sorted(variables, key=lambda v: v.name):
        pinned.setdefault(v.pool, []).append(Laid(v.member, v.element, v.count, v.nbytes, v.alignment, v.type))
    others = [structure(f"{prefix}_{beside(pool, 'state')}", pool, found) for pool, found in pinned.items() if pool]
    size = pointer_bytes or ANY_POINTER_BYTES
    pointers = [Laid(pointer_member(s.pool), "void", 1, size, size, points=s.tag) for s in others if s.pool]
    flags = [Laid(written_member(v.member), "uint8_t", 1, 1, 1, "whether it has been written") for v in variables]
    first = [*pinned[None], *(pointers if pointer_bytes else ()), *flags]
    found = (structure(f"{prefix}_state", None, first, () if pointer_bytes else pointers), *others)
    numbers = {s.pool: number for number, s in enumerate(found)}
    data = {v.name: StateAt(numbers[v.pool], found[numbers[v.pool]].member(v.member).offset) for v in variables}
    return CallerState(found, data, {v.name: StateAt(0, found[0].member(written_member(v.member)).offset) for v in variables})


@dataclass(frozen=True, slots=True)
class Laid:
    """A member without an offset yet."""
    name: str
    type: str
    count: int
    nbytes: int
    alignment: int
    comment: str = ""
    points: str | None = None


def structure(tag: str, pool: str | None, laid: Sequence[Laid], last: Sequence[Laid] = ()) -> StateStructure:
    """Lay out members in order of decreasing alignment, with members for padding; then pointers of any size, each in a slot of
    its own."""
    members: list[StateMember] = []
    end = 0
    for m in (*sorted(laid, key=lambda m: -m.alignment), *last):
        end = padded(members, end, m.alignment)
        own = m.alignment if m in last else 1
        members.append(StateMember(m.name, m.type, m.count, end, m.nbytes, m.comment, m.points, own))
        end += m.nbytes
    alignment = max(m.alignment for m in (*laid, *last))
    end = padded(members, end, alignment)
    return StateStructure(tag, pool, tuple(members), end, alignment)


def padded(members: list[StateMember], end: int, alignment: int) -> int:
    """Pad to a multiple of the alignment, with a member if bytes are missing; return the new end."""
    missing = aligned(end, alignment) - end
    if missing:
        number = sum(m.name.startswith("padding_") for m in members)
        members.append(StateMember(f"padding_{number}_", "uint8_t", missing, end, missing))
    return end + missing


# ---- the variables of a model ----------------------------------------------------------------------------------------
def variables_of(uses: Sequence[VariableUse], form: StateForm, model: str, alignment: int,
                 pinned: Sequence[PlannedVariable], pools: Mapping[str, str]) -> dict[str, CVariable]:
    """Return the variables of a model's programs by name, each once, aligned to at most `alignment`; `pools` are the names in C
    of the pools that some are pinned to. Raise a Problem if two declarations disagree, or if a variable is another object's and
    cannot be found."""
    found, places = distinct_uses(uses), {v.name: v for v in pinned}
    names = distinct(found, ("written",), {pointer_member(pools[v.pool]) for v in pinned})

    def variable(name: str, use: VariableUse) -> CVariable:
        refuse_alone(use, form)
        buffer, namespace, place = use.buffer, form.namespace or model, places.get(name)
        pool = pools[place.pool] if place else None
        aligned_to = place.alignment if place else own_alignment(buffer.nbytes, ITEM_SIZES[buffer.dtype], alignment)
        symbol = variable_symbols(namespace, name).data
        section = f".bss.{symbol}" if pool is None else f".bss.tosaic_{model}_{pool}_state.{symbol}"
        return CVariable(use, namespace, names[name], aligned_to, form.namespace is not None, pool, section)
    return {name: variable(name, use) for name, use in found.items()}


def refuse_alone(use: VariableUse, form: StateForm) -> None:
    """Raise a Problem for a variable of another program that could never be found."""
    if not use.external or form.namespace is not None:
        return
    if form.owner == "caller":
        raise Problem(f"variable {use.buffer.name} is declared by another program, and variables that the caller holds are not "
                      "shared", use.position, kind="variable", help="leave the state to the objects, in one namespace")
    raise Problem(f"variable {use.buffer.name} is declared by another program, and variables of an object are its own",
                  use.position, kind="variable", help="give both objects one namespace (--namespace)")


def distinct_uses(uses: Sequence[VariableUse]) -> dict[str, VariableUse]:
    """Return the variables by name. A variable that one program declares is not external to the others."""
    found: dict[str, VariableUse] = {}
    for use in sorted(uses, key=lambda use: use.external):
        same_declaration(found.setdefault(use.buffer.name, use), use)
    return found


def same_declaration(first: VariableUse, second: VariableUse) -> None:
    """Raise a Problem unless two programs of one object declare a variable alike."""
    if (first.element, first.buffer.shape) == (second.element, second.buffer.shape):
        return
    raise Problem(f"variable {first.buffer.name} is declared with two types in one object", second.position,
                  kind="variable", help="give one of them another name")
