"""Built-in function objects for compiled programs: a call goes from CPython directly to native code, which checks the arguments
against a table and runs the program (`lowering/native/process/function_object_code.py` has that code).

It holds the interpreter's lock meanwhile, so only programs with short runs are called this way. All other cases (a wrong
argument, a keyword, another thread in the same workspace or variable) are left to a slow callable, which is the ordinary call
and has the same results and errors.
"""
from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from typing import Any

import numpy as np

from .arguments import LARGE, Tensor
from .executable import MAX_LOCKED_STEPS, Binding, Executable
from .python_layout import empty_function, function_address, is_known

MAX_TENSORS = 32
"""Maximum number of inputs and outputs of a program that can be called this way."""

TENSOR_WORDS = 4
"""Words of a tensor in the table: dtype, rank, pointer to the extents, bytes."""

NEVER = ctypes.c_int64(0)
"""A word that is always 0."""


class Word(IntEnum):
    """Offsets in the table, in words of 64 bits; the tensors follow."""
    RUN = 0
    FRAME = auto()
    INPUTS = auto()
    OUTPUTS = auto()
    SLOW = auto()
    FAULT = auto()
    IN_TUPLE = auto()
    MAY_ALLOCATE = auto()
    TAKEN = auto()
    GATE = auto()
    GENERATION = auto()
    EXPECTED = auto()
    BOUND = auto()
    BOUND_LIST = auto()
    LOCKS = auto()
    LOCK_LIST = auto()
    NDARRAY = auto()
    TUPLE = auto()
    OUT = auto()
    EMPTY = auto()
    INCREMENT = auto()
    DECREMENT = auto()
    NEW_TUPLE = auto()
    NEW_INT = auto()
    VECTORCALL = auto()
    CALL = auto()
    TENSORS = auto()


class Definition(ctypes.Structure):
    """CPython's PyMethodDef."""
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
OUT_NAME = sys.intern("out")
_definitions: dict[int, Definition] = {}


class CallWords(np.ndarray[Any, np.dtype[np.int64]]):
    """The words of a table, and the objects that must live as long as they do."""
    kept: tuple[Any, ...]
    variables: tuple[Any, ...]

    def bind(self, binding: Binding) -> None:
        """Use these variables from now on."""
        pointers, words = np.array(binding.pointers, np.int64), np.array(binding.locks.words, np.int64)
        self[[Word.BOUND, Word.BOUND_LIST, Word.LOCKS, Word.LOCK_LIST, Word.EXPECTED]] = (
            pointers.size, pointers.ctypes.data, words.size, words.ctypes.data, binding.generation)
        self.variables = binding, pointers, words


def function_object(executable: Executable, slow: Callable[..., Any], in_tuple: bool,
                    gate: ctypes.c_int64 = NEVER) -> Callable[..., Any] | None:
    """Return a built-in function that calls `executable`, with its only output as the result, or all of them in a tuple. `slow`
    handles the other cases, and every call while the word `gate` is not 0. None if runs may be long, or this Python's object
    layout is not known."""
    code, signature = executable.code, executable.signature
    tensors = (*signature.inputs, *signature.outputs)
    if code.steps > MAX_LOCKED_STEPS or len(tensors) > MAX_TENSORS or not is_known() or not (caller := code.caller()):
        return None
    table = words(executable, in_tuple, gate)
    slowly = renewing(slow, executable, weakref.ref(table))
    table.kept += (slowly,)
    table[Word.SLOW] = id(slowly)
    return built_in(caller, table)


def renewing(slow: Callable[..., Any], executable: Executable, table: weakref.ref[CallWords]) -> Callable[..., Any]:
    """Return the ordinary call; if the executable has looked up its variables again, it updates the table."""
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return slow(*arguments, **named)
        finally:
            words = table()
            if words is not None and words[Word.EXPECTED] != executable.binding.generation:
                words.bind(executable.binding)

    return call


def words(executable: Executable, in_tuple: bool, gate: ctypes.c_int64) -> CallWords:
    """Return the table of an executable."""
    code, signature = executable.code, executable.signature
    workspace, generation = executable.workspaces.reserve(), executable.context.generation_word
    tensors = (*signature.inputs, *signature.outputs)
    table = np.zeros(Word.TENSORS + TENSOR_WORDS * len(tensors), np.int64).view(CallWords)
    extents = np.array([n for t in tensors for n in t.shape], np.int64)
    fault = executable.fault
    table[:Word.TENSORS] = [code.run_address, workspace.frame_address, len(signature.inputs), len(signature.outputs), 0,
                            id(fault), in_tuple or len(signature.outputs) != 1,
                            all(t.nbytes < LARGE for t in signature.outputs), ctypes.addressof(workspace.taken),
                            ctypes.addressof(gate), ctypes.addressof(generation), 0, 0, 0, 0, 0, id(np.ndarray), id(tuple),
                            id(OUT_NAME), empty_function(), *map(function_address, (
                                "Py_IncRef", "Py_DecRef", "PyTuple_New", "PyLong_FromLong", "PyObject_Vectorcall",
                                "PyObject_CallFunctionObjArgs"))]
    table[Word.TENSORS:] = tensor_words(tensors, extents.ctypes.data)
    table.kept = executable, workspace, gate, generation, extents, fault
    table.bind(executable.binding)
    return table


def tensor_words(tensors: Sequence[Tensor], extents: int) -> list[int]:
    """Return the words of all tensors, whose extents are stored consecutively."""
    found: list[int] = []
    for tensor in tensors:
        found += [id(tensor.numpy_dtype), len(tensor.shape), extents, tensor.nbytes]
        extents += 8 * len(tensor.shape)
    return found


def built_in(caller: int, table: CallWords) -> Callable[..., Any]:
    """Return the function object: native code, with the table as its `self`."""
    if caller not in _definitions:
        _definitions[caller] = Definition(b"tosaic", caller, FASTCALL_WITH_KEYWORDS, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = new(ctypes.addressof(_definitions[caller]), table, None)
    return made
