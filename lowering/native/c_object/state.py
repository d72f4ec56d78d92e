"""The functions of an object that belong to the model as a whole, in LLVM IR: reset, save and load the state, and check
constant pools.

A saved state is a block of bytes: a checksum of the variables' names and types, the CRC-32 of what follows, the variables
one behind the other, by the order of their names, then a byte for each that says whether it has been written.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from ....runtime.records import dataclass
from ...machine_code.llvm_writer import NULL, Function, Value, Writer, constant, data, symbol
from . import interface as codes
from .data_symbols import ObjectConstants, ObjectVariable
from .entry import checked, refuse, refuse_other_types
from .interface import CInterface, Given

HEAD = 8
"""Bytes of the two checksums that a saved state begins with."""

OK = constant("i32", 0)

POLYNOMIAL = -306674912
"""Of CRC-32 (IEEE 802.3), reversed: 0xEDB88320."""


@dataclass(frozen=True, slots=True)
class StateLayout:
    """How a saved state is laid out: pairs of a symbol and its bytes, one behind the other from `HEAD` on."""
    members: tuple[tuple[str, int], ...]
    checksum: int

    @property
    def nbytes(self) -> int:
        return HEAD + sum(nbytes for _, nbytes in self.members)

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Symbol, offset in the saved state, bytes."""
        offset = HEAD
        for name, nbytes in self.members:
            yield name, offset, nbytes
            offset += nbytes


def state_of(variables: Sequence[ObjectVariable]) -> StateLayout:
    """The layout of the state of these variables."""
    ordered = sorted(variables, key=lambda v: v.symbol)
    text = "\n".join(f"{v.symbol} {v.use.element} {list(v.use.buffer.shape)}" for v in ordered)
    members = [(v.symbol, v.use.buffer.nbytes) for v in ordered] + [(v.flag, 1) for v in ordered]
    return StateLayout(tuple(members), zlib.crc32(text.encode()))


def model_lines(interface: CInterface, constants: ObjectConstants, checksum: int, declared: dict[str, str]) -> list[str]:
    """All functions of the model, and its checksum as a symbol."""
    functions = [reset(interface, constants, declared)]
    if interface.own_variables:
        functions += [save(interface, declared), load(interface, declared)]
    if any(constants_given(interface)):
        functions.append(check_constants(interface, declared))
    if len(functions) > 1:
        functions.append(crc32(interface))
    return [data(f"{interface.prefix}_checksum", "constant", "i32", f"{checksum}"),
            *(line for f in functions for line in f.definition())]


def reset(interface: CInterface, constants: ObjectConstants, declared: dict[str, str]) -> Function:
    """void reset(void)"""
    w = Function(f"{interface.prefix}_reset", "void", {}, declared, linkage="")
    for variable in interface.own_variables:
        variable.reset(w, constants)
    w.give()
    return w


# ---- saved states ----------------------------------------------------------------------------------------------------
def save(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t save_state(void *state, size_t size)"""
    w, layout = state_function(interface, "save_state", declared), state_of(interface.own_variables)
    at = w.params[0]
    w.store(constant("i32", layout.checksum), at, align=1)
    for name, offset, nbytes in layout.places():
        w.copy(w.address(at, offset), symbol(name), nbytes)
    found = contents_checksum(w, interface, layout)
    w.store(found, w.address(at, 4), align=1)
    w.give(OK)
    return w


def load(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t load_state(const void *state, size_t size): nothing changes unless the state is whole."""
    w, layout = state_function(interface, "load_state", declared), state_of(interface.own_variables)
    at = w.params[0]
    refuse(w, [w.compare("ne", w.load(at, "i32", align=1), layout.checksum)], codes.STATE)
    stated = w.load(w.address(at, 4), "i32", align=1)
    refuse(w, [w.compare("ne", contents_checksum(w, interface, layout), stated)], codes.STATE)
    for name, offset, nbytes in layout.places():
        w.copy(symbol(name), w.address(at, offset), nbytes)
    w.give(OK)
    return w


def state_function(interface: CInterface, name: str, declared: dict[str, str]) -> Function:
    """A function of a saved state and its size, which returns an error where these are wrong."""
    w = Function(f"{interface.prefix}_{name}", "i32", {"state": "ptr", "size": interface.word}, declared, linkage="")
    at, size = w.params
    refuse(w, [w.compare("eq", at, NULL)], codes.NULL)
    refuse(w, [w.compare("ult", size, state_of(interface.own_variables).nbytes)], codes.SIZE)
    refuse_other_types(w, interface.own_variables)
    return w


def contents_checksum(w: Function, interface: CInterface, layout: StateLayout) -> Value:
    return crc32_of(w, interface, w.address(w.params[0], HEAD), layout.nbytes - HEAD)


# ---- constant pools --------------------------------------------------------------------------------------------------
def constants_given(interface: CInterface) -> list[Given]:
    """The constant pools that the caller gives."""
    return [g for g in interface.pools_given if g.structure == "constant_pools" and g.nbytes]


def check_constants(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t check_constants(const struct constant_pools *)"""
    w = Function(f"{interface.prefix}_check_constants", "i32", {"constant_pools": "ptr"}, declared, linkage="")
    pools, given = interface.memories.of_kind("constant"), constants_given(interface)
    pointers = checked(w, {"constant_pools": w.params[0]}, given, interface.word)
    for g in given:
        found = crc32_of(w, interface, pointers[g], g.nbytes)
        refuse(w, [w.compare("ne", found, pools[g.number].checksum)], codes.CONSTANTS)
    w.give(OK)
    return w


# ---- CRC-32 ----------------------------------------------------------------------------------------------------------
def crc32_of(w: Writer, interface: CInterface, pointer: Value, nbytes: int) -> Value:
    return w.call(symbol(f"{interface.prefix}.crc32"), "i32", pointer, constant(interface.word, nbytes))


def crc32(interface: CInterface) -> Function:
    """`@<prefix>.crc32(pointer, bytes)` of at least one byte, a bit at a time: it runs rarely, and a table would be 1 KB."""
    f = Function(f"{interface.prefix}.crc32", "i32", {"data": "ptr", "size": interface.word})
    (pointer, size), (next, done) = f.params, f.blocks("next", "done")
    f.jump(next(0, -1))
    i, value = f.enter(next, size.type, "i32")
    value = f.op("xor", value, f.cast("zext", f.load(f.address(pointer, i), "i8"), "i32"))
    for _ in range(8):
        mask = f.op("sub", 0, f.op("and", value, 1))
        term = f.op("and", mask, POLYNOMIAL)
        value = f.op("xor", f.op("lshr", value, 1), term)
    following = f.op("add", i, 1)
    f.branch(f.compare("ult", following, size), next(following, value), done)
    f.enter(done)
    f.give(f.op("xor", value, -1))
    return f
