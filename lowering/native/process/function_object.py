"""The code behind built-in function objects: called by CPython with an array of objects, it checks them, writes their
addresses into the frame of a compiled program, and runs it, without a line of Python. One function serves all programs; what
it does follows from a table (`runtime/function_object.py`), which is the data of an array that CPython hands it as `self`.

Whatever is not exactly as the table says (another type, another layout, a keyword but `out`, a variable that is in use) goes
on to the table's slow callable with the same arguments.
"""
from __future__ import annotations

import functools

from ....runtime.function_object import MOST, TENSOR_WORDS, Word
from ....runtime.later import Later
from ....runtime.python_layout import COUNT, DATA, DTYPE, EXTENTS, FLAGS, ITEMS, RANK, TYPE, is_known
from ...machine_code.codegen import Engine
from ...target.presets import host

READABLE, WRITABLE = 0x0101, 0x0501
"""NumPy's flags: C-contiguous and aligned, and writable."""

FITS = f"""
; The data of %object if it is an array as the tensor at %tensor (dtype, rank, extents, bytes), else null.
define internal ptr @fits(ptr %tensor, ptr %object, ptr %ndarray, i32 %wanted) {{
  %type.at = getelementptr i8, ptr %object, i64 {TYPE}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %dtypes, label %no
dtypes:
  %dtype.at = getelementptr i8, ptr %object, i64 {DTYPE}
  %dtype = load ptr, ptr %dtype.at
  %its.dtype = load ptr, ptr %tensor
  %same.dtype = icmp eq ptr %dtype, %its.dtype
  br i1 %same.dtype, label %flags, label %no
flags:
  %flags.at = getelementptr i8, ptr %object, i64 {FLAGS}
  %all = load i32, ptr %flags.at
  %some = and i32 %all, %wanted
  %has = icmp eq i32 %some, %wanted
  br i1 %has, label %ranks, label %no
ranks:
  %rank.at = getelementptr i8, ptr %object, i64 {RANK}
  %rank32 = load i32, ptr %rank.at
  %rank = sext i32 %rank32 to i64
  %its.rank.at = getelementptr i64, ptr %tensor, i64 1
  %its.rank = load i64, ptr %its.rank.at
  %same.rank = icmp eq i64 %rank, %its.rank
  br i1 %same.rank, label %extents, label %no
extents:
  %extents.at = getelementptr i8, ptr %object, i64 {EXTENTS}
  %shape = load ptr, ptr %extents.at
  %its.extents.at = getelementptr i64, ptr %tensor, i64 2
  %its.shape = load ptr, ptr %its.extents.at
  br label %next
next:
  %d = phi i64 [0, %extents], [%d.next, %same]
  %more = icmp ult i64 %d, %rank
  br i1 %more, label %compare, label %yes
compare:
  %n.at = getelementptr i64, ptr %shape, i64 %d
  %n = load i64, ptr %n.at
  %its.n.at = getelementptr i64, ptr %its.shape, i64 %d
  %its.n = load i64, ptr %its.n.at
  %same.n = icmp eq i64 %n, %its.n
  br i1 %same.n, label %same, label %no
same:
  %d.next = add i64 %d, 1
  br label %next
yes:
  %data.at = getelementptr i8, ptr %object, i64 {DATA}
  %data = load ptr, ptr %data.at
  ret ptr %data
no:
  ret ptr null
}}
"""

APART = f"""
; Whether the tensors from number %first on lie apart from each other and from those before; %at has their addresses.
define internal i1 @apart(ptr %tensors, ptr %at, i64 %first, i64 %count) {{
  br label %outer
outer:
  %j = phi i64 [%first, %0], [%j.next, %done]
  %more = icmp ult i64 %j, %count
  br i1 %more, label %begin, label %yes
begin:
  %start.at = getelementptr i64, ptr %at, i64 %j
  %start = load i64, ptr %start.at
  %jw = mul i64 %j, {TENSOR_WORDS}
  %jw3 = add i64 %jw, 3
  %size.at = getelementptr i64, ptr %tensors, i64 %jw3
  %size = load i64, ptr %size.at
  %end = add i64 %start, %size
  br label %inner
inner:
  %i = phi i64 [0, %begin], [%i.next, %next]
  %left = icmp ult i64 %i, %j
  br i1 %left, label %look, label %done
look:
  %its.start.at = getelementptr i64, ptr %at, i64 %i
  %its.start = load i64, ptr %its.start.at
  %iw = mul i64 %i, {TENSOR_WORDS}
  %iw3 = add i64 %iw, 3
  %its.size.at = getelementptr i64, ptr %tensors, i64 %iw3
  %its.size = load i64, ptr %its.size.at
  %its.end = add i64 %its.start, %its.size
  %below = icmp ult i64 %start, %its.end
  %above = icmp ult i64 %its.start, %end
  %shared = and i1 %below, %above
  br i1 %shared, label %no, label %next
next:
  %i.next = add i64 %i, 1
  br label %inner
done:
  %j.next = add i64 %j, 1
  br label %outer
yes:
  ret i1 1
no:
  ret i1 0
}}
"""


def word(name: str, number: Word, type: str = "ptr") -> str:
    """Load a word of the table."""
    return (f"  %{name}.at = getelementptr i64, ptr %table, i64 {int(number)}\n"
            f"  %{name} = load {type}, ptr %{name}.at")


def loop(name: str, count: str, before: str, body: str, latch: str) -> str:
    """A loop of %NAME from 0 to before %count, entered from block `before`; its `body` ends in block `latch` and goes on to
    block NAME.end."""
    return f"""
{name}.head:
  %{name} = phi i64 [0, %{before}], [%{name}.next, %{latch}]
  %{name}.more = icmp ult i64 %{name}, %{count}
  br i1 %{name}.more, label %{name}.body, label %{name}.end
{name}.body:
{body}
  %{name}.next = add i64 %{name}, 1
  br label %{name}.head
{name}.end:"""


def tensor(name: str, number: str) -> str:
    """The address of a tensor's words."""
    return (f"  %{name}.words = mul i64 {number}, {TENSOR_WORDS}\n"
            f"  %{name} = getelementptr i64, ptr %tensors, i64 %{name}.words")


def checked(name: str, number: str, objects: str, wanted: int) -> str:
    """One turn of the loop %NAME: the object of that number in the list fits the tensor %NUMBER, or the call is slow; its data
    go to the tensor's place. Ends in block NAME.fits."""
    return f"""
{tensor(f"{name}.tensor", number)}
  %{name}.object.at = getelementptr ptr, ptr {objects}, i64 %{name}
  %{name}.object = load ptr, ptr %{name}.object.at
  %{name}.data = call ptr @fits(ptr %{name}.tensor, ptr %{name}.object, ptr %ndarray, i32 {wanted})
  %{name}.is.null = icmp eq ptr %{name}.data, null
  br i1 %{name}.is.null, label %slow, label %{name}.fits
{name}.fits:
  %{name}.place = getelementptr ptr, ptr %at, i64 {number}
  store ptr %{name}.data, ptr %{name}.place"""


def ready() -> str:
    """Nothing stands in the way: the workspace is free, nobody traces, the variables are those of the table and free."""
    return f"""
{word("taken", Word.TAKEN)}
  %is.taken = load i64, ptr %taken
{word("gate", Word.GATE)}
  %is.gated = load i64, ptr %gate
{word("generation", Word.GENERATION)}
  %now = load i64, ptr %generation
{word("expected", Word.EXPECTED, "i64")}
  %changed = xor i64 %now, %expected
  %bad.0 = or i64 %is.taken, %is.gated
  %bad.1 = or i64 %bad.0, %changed
{word("inputs", Word.INPUTS, "i64")}
  %miscounted = xor i64 %count, %inputs
  %bad = or i64 %bad.1, %miscounted
  %is.ready = icmp eq i64 %bad, 0
{word("locks", Word.LOCKS, "i64")}
{word("lock.list", Word.LOCK_LIST)}
  br i1 %is.ready, label %ready, label %slow
ready:
  br label %lock.head""" + loop("lock", "locks", "ready", """
  %lock.at = getelementptr ptr, ptr %lock.list, i64 %lock
  %lock.word = load ptr, ptr %lock.at
  %is.held = load i64, ptr %lock.word
  %is.free = icmp eq i64 %is.held, 0
  br i1 %is.free, label %lock.free, label %slow
lock.free:""", "lock.free")


def inputs() -> str:
    return f"""
{word("ndarray", Word.NDARRAY)}
  %tensors = getelementptr i64, ptr %table, i64 {int(Word.TENSORS)}
  br label %in.head""" + loop("in", "inputs", "lock.end", checked("in", "%in", "%objects", READABLE), "in.fits")


def new_results() -> str:
    """Results of their own, as NumPy makes them."""
    return f"""
{word("outputs", Word.OUTPUTS, "i64")}
  %all = add i64 %inputs, %outputs
  %is.given = icmp ne ptr %names, null
  br i1 %is.given, label %given, label %new
new:
{word("may.make", Word.MAY_ALLOCATE, "i64")}
{word("empty", Word.EMPTY)}
{word("increment", Word.INCREMENT)}
  %makes = icmp ne i64 %may.make, 0
  br i1 %makes, label %make, label %slow
make:
  br label %out.head""" + loop("out", "outputs", "make", f"""
  %out.number = add i64 %inputs, %out
{tensor("out.tensor", "%out.number")}
  %out.dtype = load ptr, ptr %out.tensor
  %out.rank.at = getelementptr i64, ptr %out.tensor, i64 1
  %out.rank = load i64, ptr %out.rank.at
  %out.rank32 = trunc i64 %out.rank to i32
  %out.extents.at = getelementptr i64, ptr %out.tensor, i64 2
  %out.extents = load ptr, ptr %out.extents.at
  call void %increment(ptr %out.dtype)
  %out.object = call ptr %empty(i32 %out.rank32, ptr %out.extents, ptr %out.dtype, i32 0)
  %out.failed = icmp eq ptr %out.object, null
  br i1 %out.failed, label %drop, label %out.made
out.made:
  %out.keep = getelementptr ptr, ptr %results, i64 %out
  store ptr %out.object, ptr %out.keep
  %out.data.at = getelementptr i8, ptr %out.object, i64 {DATA}
  %out.data = load ptr, ptr %out.data.at
  %out.place = getelementptr ptr, ptr %at, i64 %out.number
  store ptr %out.data, ptr %out.place""", "out.made") + "\n  br label %bind"


def given_results() -> str:
    """The only keyword is `out`: an array, or a tuple of arrays."""
    return f"""
given:
  %names.count.at = getelementptr i8, ptr %names, i64 {COUNT}
  %names.count = load i64, ptr %names.count.at
  %is.one = icmp eq i64 %names.count, 1
  br i1 %is.one, label %keyword, label %slow
keyword:
  %keyword.at = getelementptr i8, ptr %names, i64 {ITEMS}
  %keyword.name = load ptr, ptr %keyword.at
{word("out.name", Word.OUT)}
  %is.out = icmp eq ptr %keyword.name, %out.name
  br i1 %is.out, label %what, label %slow
what:
  %value.at = getelementptr ptr, ptr %objects, i64 %count
  %value = load ptr, ptr %value.at
  %value.type.at = getelementptr i8, ptr %value, i64 {TYPE}
  %value.type = load ptr, ptr %value.type.at
{word("tuple", Word.TUPLE)}
  %is.tuple = icmp eq ptr %value.type, %tuple
  br i1 %is.tuple, label %several, label %single
several:
  %value.count.at = getelementptr i8, ptr %value, i64 {COUNT}
  %value.count = load i64, ptr %value.count.at
  %value.items = getelementptr i8, ptr %value, i64 {ITEMS}
  br label %look
single:
  br label %look
look:
  %list = phi ptr [%value.items, %several], [%value.at, %single]
  %length = phi i64 [%value.count, %several], [1, %single]
  %is.right = icmp eq i64 %length, %outputs
  br i1 %is.right, label %take, label %slow
take:
  br label %res.head""" + loop("res", "outputs", "take", f"""
  %res.number = add i64 %inputs, %res{checked("res", "%res.number", "%list", WRITABLE)}
  %res.keep = getelementptr ptr, ptr %results, i64 %res
  store ptr %res.object, ptr %res.keep""", "res.fits") + f"""
  %are.apart = call i1 @apart(ptr %tensors, ptr %at, i64 %inputs, i64 %all)
  br i1 %are.apart, label %hold, label %slow
hold:
{word("increase", Word.INCREMENT)}
  br label %held.head""" + loop("held", "outputs", "hold", """
  %held.at = getelementptr ptr, ptr %results, i64 %held
  %held.object = load ptr, ptr %held.at
  call void %increase(ptr %held.object)""", "held.body") + "\n  br label %bind"


def run() -> str:
    """The addresses into the frame, and off."""
    return f"""
bind:
{word("frame", Word.FRAME)}
  %at.size = shl i64 %all, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %at, i64 %at.size, i1 false)
{word("bound", Word.BOUND, "i64")}
{word("bound.list", Word.BOUND_LIST)}
  %bound.size = shl i64 %bound, 3
  %bound.place = getelementptr i64, ptr %frame, i64 %all
  call void @llvm.memcpy.p0.p0.i64(ptr %bound.place, ptr %bound.list, i64 %bound.size, i1 false)
{word("run", Word.RUN)}
  %status = call i32 %run(ptr %frame)
  %went.well = icmp eq i32 %status, 0
  br i1 %went.well, label %answer, label %fault
answer:
{word("in.tuple", Word.IN_TUPLE, "i64")}
  %is.in.tuple = icmp ne i64 %in.tuple, 0
  br i1 %is.in.tuple, label %pack, label %only
only:
  %first = load ptr, ptr %results
  ret ptr %first
pack:
{word("new.tuple", Word.NEW_TUPLE)}
  %packed = call ptr %new.tuple(i64 %outputs)
  %no.tuple = icmp eq ptr %packed, null
  br i1 %no.tuple, label %drop.all, label %fill
fill:
  %packed.items = getelementptr i8, ptr %packed, i64 {ITEMS}
  %results.size = shl i64 %outputs, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %packed.items, ptr %results, i64 %results.size, i1 false)
  ret ptr %packed"""


def failures() -> str:
    """A fault of the run becomes an exception; results that nobody will see are dropped."""
    return f"""
fault:
{word("new.int", Word.NEW_INT)}
{word("call", Word.CALL)}
{word("fault.callable", Word.FAULT)}
  %status64 = sext i32 %status to i64
  %number = call ptr %new.int(i64 %status64)
  %number.failed = icmp eq ptr %number, null
  br i1 %number.failed, label %drop.all, label %raise
raise:
  %raised = call ptr (ptr, ...) %call(ptr %fault.callable, ptr %number, ptr null)
{word("release", Word.DECREMENT)}
  call void %release(ptr %number)
  br label %drop.all
drop.all:
  br label %drop
drop:
  %left = phi i64 [%out, %out.body], [%outputs, %drop.all]
{word("decrement", Word.DECREMENT)}
  br label %gone.head""" + loop("gone", "left", "drop", """
  %gone.at = getelementptr ptr, ptr %results, i64 %gone
  %gone.object = load ptr, ptr %gone.at
  call void %decrement(ptr %gone.object)""", "gone.body") + f"""
  ret ptr null
slow:
{word("slow.callable", Word.SLOW)}
{word("vectorcall", Word.VECTORCALL)}
  %slowly = call ptr %vectorcall(ptr %slow.callable, ptr %objects, i64 %count, ptr %names)
  ret ptr %slowly"""


def text() -> str:
    """The module: `ptr @tosaic.call(ptr %self, ptr %objects, i64 %count, ptr %names)`, as METH_FASTCALL | METH_KEYWORDS."""
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{FITS}{APART}
define ptr @tosaic.call(ptr %self, ptr %objects, i64 %count, ptr %names) {{
  %at = alloca [{MOST} x ptr]
  %results = alloca [{MOST} x ptr]
  %table.at = getelementptr i8, ptr %self, i64 {DATA}
  %table = load ptr, ptr %table.at{ready()}{inputs()}{new_results()}{given_results()}{run()}{failures()}
}}
"""


engine = Later(lambda: Engine(text(), host()))
"""The machine code of the function, made once for the process, whichever thread asks: its address outlives every call."""


@functools.cache
def caller() -> int:
    """The address of the function; 0 where the layout of objects is not known."""
    return engine().address("tosaic.call") if is_known() else 0
