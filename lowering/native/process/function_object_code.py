"""The code of built-in function objects. CPython calls it with an array of objects; it checks them, writes their addresses into
the frame of a compiled program, and runs the program, without a line of Python. One function serves all programs: a table
(`runtime/function_object.py`), the data of an array that CPython passes as `self`, controls it.

Any call that does not match the table exactly (another type, another layout, a keyword other than `out`, a variable in use)
goes to the table's slow callable with the same arguments.
"""
from __future__ import annotations

import functools

from ....runtime.function_object import MAX_TENSORS, TENSOR_WORDS, Word
from ....runtime.later import Later
from ....runtime.python_layout import COUNT, DATA, DTYPE, EXTENTS, FLAGS, ITEMS, RANK, TYPE, is_known
from ...machine_code.codegen import Engine
from ...machine_code.llvm_writer import NULL, Block, Function, Member, Value, constant, module
from ...target.presets import host

ENTRY = "tosaic.call"
WORD = 8
"""Bytes of a word of the table, and of a pointer."""

OBJECT_TYPE = Member(TYPE)
"""The type pointer of every CPython object."""

ARRAY_DATA, ARRAY_RANK, ARRAY_EXTENTS = Member(DATA), Member(RANK, "i32"), Member(EXTENTS)
ARRAY_DTYPE, ARRAY_FLAGS = Member(DTYPE), Member(FLAGS, "i32")
TUPLE_COUNT = Member(COUNT, "i64")
TENSOR_DTYPE, TENSOR_RANK = Member(0), Member(WORD, "i64")
TENSOR_EXTENTS, TENSOR_BYTES = Member(2 * WORD), Member(3 * WORD, "i64")

READABLE, WRITABLE = 0x0101, 0x0501
"""NumPy's flags: C-contiguous and aligned, and writable."""


def array_data(name: str = "fits") -> Function:
    """`ptr @fits(tensor, object, ndarray, wanted)`: return the data pointer of an object that is an array as `tensor` describes
    it, with the wanted flags; else null."""
    f = Function(name, "ptr", {"tensor": "ptr", "object": "ptr", "ndarray": "ptr", "wanted": "i32"}, attributes="")
    tensor, object, ndarray, wanted = f.params
    no, = f.blocks("no")
    f.require(f.compare("eq", f.load(object, OBJECT_TYPE), ndarray), no)
    f.require(f.compare("eq", f.load(object, ARRAY_DTYPE), f.load(tensor, TENSOR_DTYPE)), no)
    f.require(f.compare("eq", f.op("and", f.load(object, ARRAY_FLAGS), wanted), wanted), no)
    rank = f.cast("sext", f.load(object, ARRAY_RANK), "i64")
    f.require(f.compare("eq", rank, f.load(tensor, TENSOR_RANK)), no)
    extents, wanted_extents = f.load(object, ARRAY_EXTENTS), f.load(tensor, TENSOR_EXTENTS)
    with f.loop(rank) as axis:
        extent, other = (f.load(f.address(p, axis, "i64"), "i64") for p in (extents, wanted_extents))
        f.require(f.compare("eq", extent, other), no)
    f.give(f.load(object, ARRAY_DATA))
    f.enter(no)
    f.give(NULL)
    return f


def are_disjoint(name: str = "disjoint") -> Function:
    """`i1 @disjoint(tensors, at, first, count)`: true if the tensors from number `first` on share no byte with each other or
    with the tensors before them; `at` holds the addresses."""
    f = Function(name, "i1", {"tensors": "ptr", "at": "ptr", "first": "i64", "count": "i64"}, attributes="")
    tensors, at, first, count = f.params
    overlap, = f.blocks("overlap")

    def span(number: Value) -> tuple[Value, Value]:
        start = f.load(f.address(at, number, "i64"), "i64")
        tensor = f.address(tensors, f.op("mul", number, TENSOR_WORDS), "i64")
        return start, f.op("add", start, f.load(tensor, TENSOR_BYTES))

    with f.loop(count, first) as j:
        start, end = span(j)
        with f.loop(j) as i:
            other_start, other_end = span(i)
            is_before, is_behind = f.compare("ule", end, other_start), f.compare("ule", other_end, start)
            f.require(f.op("or", is_before, is_behind), overlap)
    f.give(constant("i1", 1))
    f.enter(overlap)
    f.give(constant("i1", 0))
    return f


class Caller(Function):
    """`ptr @tosaic.call(self, objects, count, names)`, as METH_FASTCALL | METH_KEYWORDS: `objects` holds `count` positional
    arguments, then those of the keywords in the tuple `names`, which may be null."""

    def __init__(self) -> None:
        super().__init__(ENTRY, "ptr", {"self": "ptr", "objects": "ptr", "count": "i64", "names": "ptr"}, linkage="",
                         attributes="")
        this, self.objects, self.count_given, self.names = self.params
        self.array_data, self.are_disjoint = array_data(), are_disjoint()
        self.at, self.results = self.room(MAX_TENSORS, "ptr"), self.room(MAX_TENSORS, "ptr")
        self.table = self.load(this, ARRAY_DATA)
        self.slow, = self.blocks("slow")
        self.write()

    def text(self) -> str:
        """Return the module: this function and the functions that it calls."""
        functions = self.array_data, self.are_disjoint, self
        return module(host().triple, self.declared.values(), *(f.definition() for f in functions))

    def write(self) -> None:
        new, given, bind, drop = self.blocks("new", "given", "bind", "drop")
        self.check_state()
        self.take_inputs()
        self.outputs = self.word(Word.OUTPUTS, "i64")
        self.all = self.op("add", self.inputs, self.outputs)
        self.branch(self.compare("ne", self.names, NULL), given, new)
        self.enter(new)
        self.make_results(drop)
        self.jump(bind)
        self.enter(given)
        self.take_results()
        self.go_on(bind)
        self.run(drop)
        self.drop_results(drop)
        self.enter(self.slow)
        call, slow = self.word(Word.VECTORCALL), self.word(Word.SLOW)
        self.give(self.call(call, "ptr", slow, self.objects, self.count_given, self.names))

    # ---- the table ---------------------------------------------------------------------------------------------------
    def word(self, number: Word, type: str = "ptr") -> Value:
        """Load a word of the table."""
        return self.load(self.table, Member(WORD * number, type))

    def tensor(self, number: Value) -> Value:
        """Return the address of a tensor's words."""
        return self.address(self.tensors, self.op("mul", number, TENSOR_WORDS), "i64")

    def item(self, array: Value, index: Value | int) -> Value:
        """Load an element of an array of pointers."""
        return self.load(self.address(array, index, "ptr"), "ptr")

    # ---- arguments and results ---------------------------------------------------------------------------------------
    def check_state(self) -> None:
        """Check that the fast path is open: the workspace is free, nobody traces, and the variables are the table's and
        free."""
        is_taken, is_gated, now = (self.load(self.word(w), "i64") for w in (Word.TAKEN, Word.GATE, Word.GENERATION))
        self.inputs = self.word(Word.INPUTS, "i64")
        bad = self.either([is_taken, is_gated, self.op("xor", now, self.word(Word.EXPECTED, "i64")),
                           self.op("xor", self.count_given, self.inputs)])
        locks, lock_list = self.word(Word.LOCKS, "i64"), self.word(Word.LOCK_LIST)
        self.require(self.compare("eq", bad, 0), self.slow)
        with self.loop(locks) as lock:
            is_held = self.load(self.item(lock_list, lock), "i64")
            self.require(self.compare("eq", is_held, 0), self.slow)

    def take_inputs(self) -> None:
        self.ndarray, self.tensors = self.word(Word.NDARRAY), self.address(self.table, WORD * Word.TENSORS)
        with self.loop(self.inputs) as number:
            self.take(self.item(self.objects, number), number, READABLE)

    def take(self, object: Value, number: Value, flags: int) -> None:
        """Store the object's data pointer as tensor `number`; take the slow path if the object does not fit."""
        data = self.call(self.array_data.pointer, "ptr", self.tensor(number), object, self.ndarray, constant("i32", flags))
        self.require(self.compare("ne", data, NULL), self.slow)
        self.store(data, self.address(self.at, number, "ptr"))

    def make_results(self, drop: Block) -> None:
        """Allocate new result arrays, as NumPy does."""
        may_make, empty, increment = self.word(Word.MAY_ALLOCATE, "i64"), self.word(Word.EMPTY), self.word(Word.INCREMENT)
        self.require(self.compare("ne", may_make, 0), self.slow)
        with self.loop(self.outputs) as out:
            number = self.op("add", self.inputs, out)
            tensor = self.tensor(number)
            dtype, rank = self.load(tensor, TENSOR_DTYPE), self.cast("trunc", self.load(tensor, TENSOR_RANK), "i32")
            extents = self.load(tensor, TENSOR_EXTENTS)
            self.call(increment, "void", dtype)
            made = self.call(empty, "ptr", rank, extents, dtype, constant("i32", 0))
            self.require(self.compare("ne", made, NULL), drop(out))
            self.store(made, self.address(self.results, out, "ptr"))
            self.store(self.load(made, ARRAY_DATA), self.address(self.at, number, "ptr"))

    def take_results(self) -> None:
        """Take the results from `out`, the only keyword: an array, or a tuple of arrays."""
        several, single, look = self.blocks("several", "single", "look")
        self.require(self.compare("eq", self.load(self.names, TUPLE_COUNT), 1), self.slow)
        keyword = self.load(self.names, Member(ITEMS))
        self.require(self.compare("eq", keyword, self.word(Word.OUT)), self.slow)
        place = self.address(self.objects, self.count_given, "ptr")
        value = self.load(place, "ptr")
        self.branch(self.compare("eq", self.load(value, OBJECT_TYPE), self.word(Word.TUPLE)), several, single)
        self.enter(several)
        count = self.load(value, TUPLE_COUNT)
        self.jump(look(self.address(value, ITEMS), count))
        self.enter(single)
        self.jump(look(place, 1))
        found, length = self.enter(look, "ptr", "i64")
        self.require(self.compare("eq", length, self.outputs), self.slow)
        with self.loop(self.outputs) as out:
            object = self.item(found, out)
            self.take(object, self.op("add", self.inputs, out), WRITABLE)
            self.store(object, self.address(self.results, out, "ptr"))
        self.require(self.call(self.are_disjoint.pointer, "i1", self.tensors, self.at, self.inputs, self.all), self.slow)
        increment = self.word(Word.INCREMENT)
        with self.loop(self.outputs) as out:
            self.call(increment, "void", self.item(self.results, out))

    # ---- the run -----------------------------------------------------------------------------------------------------
    def run(self, drop: Block) -> None:
        """Copy the addresses into the frame and run; return the results, alone or in a tuple."""
        fault, drop_all, pack = self.blocks("fault", "drop.all", "pack")
        frame = self.word(Word.FRAME)
        self.copy(frame, self.at, self.op("shl", self.all, 3))
        bound, bound_list = self.word(Word.BOUND, "i64"), self.word(Word.BOUND_LIST)
        nbytes = self.op("shl", bound, 3)
        self.copy(self.address(frame, self.all, "i64"), bound_list, nbytes)
        status = self.call(self.word(Word.RUN), "i32", frame)
        self.require(self.compare("eq", status, 0), fault)
        self.require(self.compare("eq", self.word(Word.IN_TUPLE, "i64"), 0), pack)
        self.give(self.load(self.results, "ptr"))
        self.enter(pack)
        packed = self.call(self.word(Word.NEW_TUPLE), "ptr", self.outputs)
        self.require(self.compare("ne", packed, NULL), drop_all)
        self.copy(self.address(packed, ITEMS), self.results, self.op("shl", self.outputs, 3))
        self.give(packed)
        self.enter(fault)
        self.raise_fault(status, drop_all)
        self.go_on(drop_all)
        self.jump(drop(self.outputs))

    def raise_fault(self, status: Value, failed: Block) -> None:
        """Turn a fault of the run into an exception."""
        new_int, call, fault = self.word(Word.NEW_INT), self.word(Word.CALL), self.word(Word.FAULT)
        number = self.call(new_int, "ptr", self.cast("sext", status, "i64"))
        self.require(self.compare("ne", number, NULL), failed)
        self.call(call, "ptr (ptr, ...)", fault, number, NULL)
        self.call(self.word(Word.DECREMENT), "void", number)

    def drop_results(self, drop: Block) -> None:
        """Release the results that the caller will not get, as many as the block's parameter says."""
        count, = self.enter(drop, "i64")
        decrement = self.word(Word.DECREMENT)
        with self.loop(count) as out:
            self.call(decrement, "void", self.item(self.results, out))
        self.give(NULL)


def text() -> str:
    """Return the module."""
    return Caller().text()


engine = Later(lambda: Engine(text(), host()))
"""Machine code of the function, made once per process by the first thread that asks: its address outlives every call."""


@functools.cache
def caller() -> int:
    """Return the address of the function; 0 if the layout of objects is not known."""
    return engine().address(ENTRY) if is_known() else 0
