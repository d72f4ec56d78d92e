"""The functions of an object that belong to the model as a whole, in LLVM IR: reset, save and load the state, and check
constant pools.

A saved state is a block of bytes: a checksum of the variables' names and types, the CRC-32 of what follows, the variables
one behind the other, by the order of their names, then a byte for each that says whether it has been written.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from ....runtime.records import dataclass
from ..driver.driver import Writer
from .data import Constants, ObjectVariable
from .entry import checked, refuse, refuse_other_types
from .interface import CONSTANTS, NULL, SIZE, STATE, Interface

HEAD = 8
"""Bytes of the two checksums that a saved state begins with."""

POLYNOMIAL = -306674912
"""Of CRC-32 (IEEE 802.3), reversed: 0xEDB88320."""


@dataclass(frozen=True, slots=True)
class State:
    """How a saved state is laid out: pairs of a symbol and its bytes, one behind the other from `HEAD` on."""
    parts: tuple[tuple[str, int], ...]
    checksum: int

    @property
    def nbytes(self) -> int:
        return HEAD + sum(nbytes for _, nbytes in self.parts)

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Symbol, offset in the saved state, bytes."""
        offset = HEAD
        for symbol, nbytes in self.parts:
            yield symbol, offset, nbytes
            offset += nbytes


def state_of(variables: Sequence[ObjectVariable]) -> State:
    """The layout of the state of these variables."""
    ordered = sorted(variables, key=lambda v: v.symbol)
    text = "\n".join(f"{v.symbol} {v.use.element} {list(v.use.buffer.shape)}" for v in ordered)
    parts = [(v.symbol, v.use.buffer.nbytes) for v in ordered] + [(v.flag, 1) for v in ordered]
    return State(tuple(parts), zlib.crc32(text.encode()))


def model_lines(interface: Interface, constants: Constants, checksum: int) -> list[str]:
    """All functions of the model, and its checksum as a symbol."""
    lines = [f"@{interface.prefix}_checksum = constant i32 {checksum}", *reset(interface, constants)]
    given = [g for g in interface.pools_given if g.structure == "constant_pools" and g.nbytes]
    if interface.own_variables:
        lines += save(interface) + load(interface)
    if given:
        lines += check_constants(interface)
    if interface.own_variables or given:
        lines += crc32(interface)
    return lines


def function(name: str, params: str, w: Writer, result: str = "i32") -> list[str]:
    end = " ret void" if result == "void" else " ret i32 0"
    return [f"define {result} @{name}({params}) #0 {{", *w.lines, end, "}"]


def reset(interface: Interface, constants: Constants) -> list[str]:
    w = Writer()
    for variable in interface.own_variables:
        variable.reset(w, constants)
    return function(f"{interface.prefix}_reset", "", w, "void")


# ---- saved states ----------------------------------------------------------------------------------------------------
def save(interface: Interface) -> list[str]:
    """int32_t save_state(void *state, size_t size)"""
    w, state = Writer(), state_of(interface.own_variables)
    refuse_wrong_room(w, interface, state)
    w.do(f"store i32 {state.checksum}, ptr %state, align 1")
    for symbol, offset, nbytes in state.places():
        w.copy(w.offset("%state", offset), f"@{symbol}", nbytes)
    found = contents_checksum(w, interface, state)
    w.do(f"store i32 {found}, ptr {w.offset('%state', 4)}, align 1")
    return function(f"{interface.prefix}_save_state", f"ptr %state, {interface.word} %size", w)


def load(interface: Interface) -> list[str]:
    """int32_t load_state(const void *state, size_t size): nothing changes unless the state is whole."""
    w, state = Writer(), state_of(interface.own_variables)
    refuse_wrong_room(w, interface, state)
    layout = w.put(f"icmp ne i32 {w.put('load i32, ptr %state, align 1')}, {state.checksum}")
    refuse(w, [layout], STATE)
    stated = w.put(f"load i32, ptr {w.offset('%state', 4)}, align 1")
    refuse(w, [w.put(f"icmp ne i32 {contents_checksum(w, interface, state)}, {stated}")], STATE)
    for symbol, offset, nbytes in state.places():
        w.copy(f"@{symbol}", w.offset("%state", offset), nbytes)
    return function(f"{interface.prefix}_load_state", f"ptr %state, {interface.word} %size", w)


def refuse_wrong_room(w: Writer, interface: Interface, state: State) -> None:
    refuse(w, [w.put("icmp eq ptr %state, null")], NULL)
    refuse(w, [w.put(f"icmp ult {interface.word} %size, {state.nbytes}")], SIZE)
    refuse_other_types(w, interface.own_variables)


def contents_checksum(w: Writer, interface: Interface, state: State) -> str:
    return crc32_of(w, interface, w.offset("%state", HEAD), state.nbytes - HEAD)


# ---- constant pools --------------------------------------------------------------------------------------------------
def check_constants(interface: Interface) -> list[str]:
    """int32_t check_constants(const struct constant_pools *)"""
    w, pools = Writer(), interface.memories.of_kind("constant")
    given = [g for g in interface.pools_given if g.structure == "constant_pools" and g.nbytes]
    pointers = checked(w, given, interface.word)
    for g in given:
        found = crc32_of(w, interface, pointers[g], g.nbytes)
        refuse(w, [w.put(f"icmp ne i32 {found}, {pools[g.number].checksum}")], CONSTANTS)
    return function(f"{interface.prefix}_check_constants", "ptr %constant_pools", w)


# ---- CRC-32 ----------------------------------------------------------------------------------------------------------
def crc32_of(w: Writer, interface: Interface, pointer: str, nbytes: int) -> str:
    return w.put(f"call i32 @{interface.prefix}.crc32(ptr {pointer}, {interface.word} {nbytes})")


def crc32(interface: Interface) -> list[str]:
    """`@<prefix>.crc32(pointer, bytes)` of at least one byte, a bit at a time: it runs rarely, and a table would be 1 KB."""
    w, t = Writer(), interface.word
    value = w.put("xor i32 %crc, %wide")
    for _ in range(8):
        mask = w.put(f"sub i32 0, {w.put(f'and i32 {value}, 1')}")
        term = w.put(f"and i32 {mask}, {POLYNOMIAL}")
        value = w.put(f"xor i32 {w.put(f'lshr i32 {value}, 1')}, {term}")
    return [f"define internal i32 @{interface.prefix}.crc32(ptr %data, {t} %size) #0 {{",
            "entry:", " br label %next", "next:",
            f" %i = phi {t} [0, %entry], [%following, %next]", f" %crc = phi i32 [-1, %entry], [{value}, %next]",
            f" %at = getelementptr i8, ptr %data, {t} %i", " %byte = load i8, ptr %at", " %wide = zext i8 %byte to i32",
            *w.lines,
            f" %following = add {t} %i, 1", f" %more = icmp ult {t} %following, %size",
            " br i1 %more, label %next, label %done", "done:", f" %inverted = xor i32 {value}, -1", " ret i32 %inverted", "}"]
