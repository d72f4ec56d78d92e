"""The functions of an object that belong to the model as a whole, in LLVM IR: give variables their initial values, reset, save
and load the state, and check constant pools.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...machine_code.llvm_writer import NULL, Function, Value, Writer, constant, data, symbol
from . import interface as codes
from .data_symbols import ObjectConstants, bytes_of
from .entry import checked, checked_state, initialize, refuse, refuse_other_types
from .interface import STATE_ARGUMENT, CInterface, Given
from .saved_state import HEAD, SavedState, saved_state
from .variables import CVariable

OK = constant("i32", 0)

POLYNOMIAL = -306674912
"""Polynomial of CRC-32 (IEEE 802.3), reversed: 0xEDB88320."""


class Variables:
    """The addresses of variables in a function of the object: their symbols, or offsets from pointers to the caller's
    structures."""

    def __init__(self, w: Writer, interface: CInterface, states: Sequence[Value]) -> None:
        self.w, self.layout, self.states = w, interface.caller_state, states

    def data(self, variable: CVariable) -> Value:
        if self.layout is None:
            return symbol(variable.symbol)
        at = self.layout.data[variable.name]
        return self.w.address(self.states[at.structure], at.offset)

    def flag(self, variable: CVariable) -> Value:
        if self.layout is None:
            return symbol(variable.flag)
        at = self.layout.flags[variable.name]
        return self.w.address(self.states[at.structure], at.offset)


def model_lines(interface: CInterface, constants: ObjectConstants, checksum: int, declared: dict[str, str]) -> list[str]:
    """Return all functions of the model, and its checksum as a symbol."""
    functions = [reset(interface, declared)]
    if interface.initialized:
        functions.append(initial_values(interface, constants, declared))
    summed = len(functions)
    if interface.own_variables:
        functions += [save(interface, declared), load(interface, declared)]
    if any(constants_given(interface)):
        functions.append(check_constants(interface, declared))
    if len(functions) > summed:
        functions.append(crc32(interface))
    return [data(f"{interface.prefix}_checksum", "constant", "i32", f"{checksum}"), *init(interface),
            *(line for f in functions for line in f.definition())]


def model_function(interface: CInterface, name: str, declared: dict[str, str], **params: str) -> tuple[Function, list[Value]]:
    """Return a function of the model that returns a code, and takes the state first if the caller holds it; also the pointers
    to the caller's structures, which the function has checked."""
    given = {STATE_ARGUMENT: "ptr"} if interface.caller_state is not None else {}
    w = Function(f"{interface.prefix}_{name}", "i32", given | params, declared, linkage="")
    states = checked_state(w, interface, w.params[0]) if given else []
    refuse_other_types(w, interface.own_variables)
    return w, states


def init(interface: CInterface) -> list[str]:
    """int32_t init(state), if the caller holds the state: the same as a reset, which reads nothing."""
    name = f"@{interface.prefix}"
    return [] if interface.caller_state is None else [f"{name}_init = alias i32 (ptr), ptr {name}_reset"]


def reset(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t reset(state): mark all variables as not written, then write the initial values."""
    w, states = model_function(interface, "reset", declared)
    at = Variables(w, interface, states)
    for variable in interface.own_variables:
        w.store(constant("i8", 0), at.flag(variable))
        if variable.initial is None:
            w.fill(at.data(variable), 0, variable.nbytes)
    initialize(w, interface, states)
    w.give(OK)
    return w


def initial_values(interface: CInterface, constants: ObjectConstants, declared: dict[str, str]) -> Function:
    """Return the function that gives each variable its initial value, if it has one and has not been written."""
    structures = interface.caller_state.structures if interface.caller_state else ()
    w = Function(interface.initialize, "void", {f"state{i}": "ptr" for i in range(len(structures))}, declared)
    at = Variables(w, interface, w.params)
    for variable in interface.initialized:
        assert variable.initial is not None
        contents, flag = bytes_of(variable.initial), at.flag(variable)
        with w.when(w.compare("eq", w.load(flag, "i8"), 0)):
            if len(set(contents)) > 1:
                w.copy(at.data(variable), symbol(constants.symbol(variable.initial)), len(contents))
            else:  # such as zeros, and the zero point of int8
                w.fill(at.data(variable), contents[0] if contents else 0, variable.nbytes)
            w.store(constant("i8", 1), flag)
    w.give()
    return w


# ---- saved states ----------------------------------------------------------------------------------------------------
def save(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t save_state(state, void *saved, size_t size)"""
    w, states, at, layout = saving(interface, "save_state", declared)
    initialize(w, interface, states)
    w.store(constant("i32", layout.checksum), at, align=1)
    for place, (memory, nbytes) in zip(layout.offsets, memories(w, interface, states)):
        w.copy(w.address(at, place), memory, nbytes)
    w.store(contents_checksum(w, interface, layout, at), w.address(at, 4), align=1)
    w.give(OK)
    return w


def load(interface: CInterface, declared: dict[str, str]) -> Function:
    """int32_t load_state(state, const void *saved, size_t size): changes nothing unless the saved state is intact."""
    w, states, at, layout = saving(interface, "load_state", declared)
    refuse(w, [w.compare("ne", w.load(at, "i32", align=1), layout.checksum)], codes.STATE)
    stated = w.load(w.address(at, 4), "i32", align=1)
    refuse(w, [w.compare("ne", contents_checksum(w, interface, layout, at), stated)], codes.STATE)
    for place, (memory, nbytes) in zip(layout.offsets, memories(w, interface, states)):
        w.copy(memory, w.address(at, place), nbytes)
    w.give(OK)
    return w


def saving(interface: CInterface, name: str, declared: dict[str, str]) -> tuple[Function, list[Value], Value, SavedState]:
    """Return a function of a saved state and its size, which returns an error if these are wrong; also the pointers to the
    caller's structures and to the saved state, and its layout."""
    layout = saved_state(interface.own_variables)
    w, states = model_function(interface, name, declared, saved="ptr", size=interface.word)
    at, size = w.params[-2:]
    refuse(w, [w.compare("eq", at, NULL)], codes.NULL)
    refuse(w, [w.compare("ult", size, layout.nbytes)], codes.SIZE)
    return w, states, at, layout


def memories(w: Writer, interface: CInterface, states: Sequence[Value]) -> list[tuple[Value, int]]:
    """Return the memory that a saved state covers, with its bytes: the variables, then their flags."""
    at, ordered = Variables(w, interface, states), saved_state(interface.own_variables).variables
    return [(at.data(v), v.buffer.nbytes) for v in ordered] + [(at.flag(v), 1) for v in ordered]


def contents_checksum(w: Function, interface: CInterface, layout: SavedState, at: Value) -> Value:
    return crc32_of(w, interface, w.address(at, HEAD), layout.nbytes - HEAD)


# ---- constant pools --------------------------------------------------------------------------------------------------
def constants_given(interface: CInterface) -> list[Given]:
    """Return the constant pools that the caller passes."""
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
    """`@<prefix>.crc32(pointer, bytes)` of at least one byte, bit by bit: it runs rarely, and a table would take 1 KB."""
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
