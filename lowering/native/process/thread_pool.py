"""The code of the process's thread pool, which `runtime/threads.py` starts and compiled programs receive. It needs only
pthreads and Linux's futex, so that no compiler has to be present.

One job runs at a time. Its state is one word: the number of workers inside (8 bits), whether the job is open, and its number. A
late worker finds the job closed, and the caller never waits for a thread that has not begun: tasks are claimed one by one, by
any thread that is there, each thread first those that it had in the job before. Idle workers poll the word for a while, and
then sleep on it. A job ends with a barrier: the caller waits (`join`) until no worker is inside. A worker that has read a new
word, even by an exchange that it lost, first checks whether the pool has stopped: the stop's word is the last.
tests/threads/test_pool_protocol.py runs this text in every interleaving.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping

from ....runtime.later import Later
from ....runtime.records import dataclass
from ....runtime.threads import MOST, PoolCode
from ...machine_code.codegen import Engine
from ...machine_code.llvm_writer import (
    NULL,
    OWN_ATTRIBUTES,
    Function,
    Member,
    Operand,
    Value,
    attribute_group,
    constant,
    module,
)
from ...target.presets import host
from ...target.target import Target
from ..llvm import aarch64, x86

RUN, STOP = "pool.parallel", "pool.stop"
"""Names of the functions that the runtime calls."""
NEEDED = frozenset({"pthread_create", "pthread_join", "pthread_sigmask", "syscall", "memset"})


# ---- memory ----------------------------------------------------------------------------------------------------------
STATE = Member(0, "i32")
UNCLAIMED, TASK, ARGUMENT, TASKS, LIMIT = Member(64, "i64"), Member(72), Member(80), Member(88, "i64"), Member(96, "i64")
FLOAT_MODE = 104
SLEEPERS, BUSY, STARTED, REFUSED = Member(128, "i32"), Member(192, "i32"), Member(196, "i32"), Member(200, "i32")
STOPPED, SPIN, WAITING = Member(204, "i32"), Member(208, "i32"), Member(212, "i32")
SLOTS, SLOT_BYTES = 256, 32
"""Layout of a pool's memory: the state word, the job (with the caller's float mode, which its workers adopt), and the threads.
`UNCLAIMED` has a bit for each task."""

POOL, NUMBER, THREAD, SEEN = Member(0), Member(8, "i64"), Member(16), Member(24, "i32")
"""Layout of a worker's slot: the pool, the worker's number, its thread, and the job before the first that it may join."""

VIEW_POOL, VIEW_LIMIT = Member(0), Member(8, "i64")
"""Layout of the view that a program receives: the pool, and the number of threads that it may use."""

INSIDE, OPEN, JOB_SHIFT = 255, 256, 9
"""Fields of the state word: the mask of the workers inside, the bit of an open job, the shift of the job's number."""

assert SLOTS + SLOT_BYTES * MOST <= 4096


# ---- the machine -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Processor:
    """The parts of a pool that depend on the processor family: the number of the futex system call, the pause of a spin loop,
    and how to save and restore the float mode (None: the family has no float mode that C programs change)."""
    futex: int
    pause: Callable[[Function], None] | None = None
    save_float_mode: Callable[[Function, Value], None] | None = None
    restore_float_mode: Callable[[Function, Value], None] | None = None


PROCESSORS = {"x86": Processor(202, x86.pause, x86.save_float_mode, x86.restore_float_mode),
              "aarch64": Processor(98, aarch64.pause, aarch64.save_float_mode, aarch64.restore_float_mode),
              "riscv": Processor(98)}
"""Processor families by architecture."""

WAIT, WAKE = 128, 129
"""Futex operations, private to one process."""
EVERYBODY = (1 << 31) - 1
JOIN_SPIN = 20_000
"""Number of pauses of a caller before it sleeps until the last worker has left."""
SET_SIGNALS, SIGNALS_BYTES = 2, 128
"""Argument with which pthread_sigmask sets a mask, and bytes of a mask."""


def is_supported() -> bool:
    """True if this process can have a pool."""
    return sys.platform == "linux" and host().architecture in PROCESSORS and "64" in host().triple.split("-")[0]


# ---- functions -------------------------------------------------------------------------------------------------------
class PoolFunction(Function):
    """A function of the pool for one family of processors."""

    def __init__(self, processor: Processor, declared: dict[str, str], name: str, returns: str, params: Mapping[str, str],
                 linkage: str = "internal ") -> None:
        super().__init__(name, returns, params, declared, linkage)
        self.processor = processor

    def wait(self, word: Value, value: Value) -> None:
        """Sleep while the word has the value."""
        self.call_c("syscall", "i64", constant("i64", self.processor.futex), word, constant("i32", WAIT), value, NULL,
                    variadic=True)

    def wake(self, word: Value, count: Operand) -> None:
        """Wake `count` of the threads that sleep at `word`."""
        number = count if isinstance(count, Value) else constant("i32", count)
        self.call_c("syscall", "i64", constant("i64", self.processor.futex), word, constant("i32", WAKE), number, variadic=True)

    def pause(self) -> None:
        if self.processor.pause is not None:
            self.processor.pause(self)


def working(processor: Processor, declared: dict[str, str]) -> PoolFunction:
    """`work(pool, start)`: run tasks that nobody has claimed, from task number `start` on, until none is left."""
    f = PoolFunction(processor, declared, "work", "void", {"pool": "ptr", "start": "i64"})
    pool, start = f.params
    look, done = f.blocks("look", "done")
    unclaimed = f.address(pool, UNCLAIMED.offset)
    task, argument = f.load(pool, TASK), f.load(pool, ARGUMENT)
    f.go_on(look)
    left = f.load(unclaimed, "i64", "acquire")
    f.require(f.compare("ne", left, 0), done)
    turned = f.intrinsic("llvm.fshr.i64", "i64", [left, left, start])
    first = Value("i64", f.intrinsic("llvm.cttz.i64", "i64", [("i64", turned), ("i1", "true")]))
    number = f.op("and", f.op("add", first, start), 63)
    bit = f.op("shl", 1, number)
    before = f.update("and", unclaimed, f.op("xor", bit, -1), "acq_rel")
    f.require(f.compare("ne", f.op("and", before, bit), 0), look)
    f.call(task, "void", argument, number)
    f.jump(look)
    f.enter(done)
    f.give()
    return f


def worker(processor: Processor, declared: dict[str, str], work: Value) -> PoolFunction:
    """`worker(slot)`: the main function of a worker thread."""
    f = PoolFunction(processor, declared, "worker", "ptr", {"slot": "ptr"})
    idle, watch, pause, sleep, asleep, wait, awake = f.blocks("idle", "watch", "pause", "sleep", "asleep", "wait", "awake")
    new, look, inside, wake, end = f.blocks("new", "look", "inside", "wake", "end")
    slot, = f.params
    pool, number, seen = f.load(slot, POOL), f.load(slot, NUMBER), f.load(slot, SEEN)
    spin = f.load(pool, SPIN)
    f.jump(idle(seen))

    last, = f.enter(idle, "i32")
    f.jump(watch(0))
    i, = f.enter(watch, "i32")
    state = f.load(pool, STATE, "acquire")
    f.branch(f.compare("eq", f.op("lshr", state, JOB_SHIFT), last), pause, new(state))
    f.enter(pause)
    f.pause()
    following = f.op("add", i, 1)
    f.branch(f.compare("slt", following, spin), watch(following), sleep)
    f.enter(sleep)
    sleepers = f.address(pool, SLEEPERS.offset)
    f.update("add", sleepers, constant("i32", 1), "seq_cst")
    f.go_on(asleep)
    state = f.load(pool, STATE, "seq_cst")
    f.branch(f.compare("eq", f.op("lshr", state, JOB_SHIFT), last), wait, awake)
    f.enter(wait)
    f.wait(pool, state)
    f.jump(asleep)
    f.enter(awake)
    f.update("sub", sleepers, constant("i32", 1), "seq_cst")
    f.jump(new(state))

    word, = f.enter(new, "i32")
    f.branch(f.compare("ne", f.load(pool, STOPPED, "acquire"), 0), end, look)
    f.enter(look)
    job = f.op("lshr", word, JOB_SHIFT)
    f.require(f.compare("ne", f.op("and", word, OPEN), 0), idle(job))
    active = f.cast("zext", f.op("and", word, INSIDE), "i64")
    room = f.op("sub", f.load(pool, LIMIT, "monotonic"), 1)
    f.require(f.compare("slt", active, room), idle(job))
    other, entered = f.exchange(pool, word, f.op("add", word, 1), "acq_rel acquire")
    f.branch(entered, inside, new(other))
    f.enter(inside)
    tasks, limit = f.load(pool, TASKS), f.load(pool, LIMIT)
    start = f.op("and", f.op("udiv", f.op("mul", tasks, number), limit), 63)
    if processor.restore_float_mode is not None:
        processor.restore_float_mode(f, f.address(pool, FLOAT_MODE))
    f.call(work, "void", pool, start)
    before = f.update("sub", pool, constant("i32", 1), "seq_cst")
    is_last = f.compare("eq", f.op("and", before, INSIDE), 1)
    is_waited = f.compare("ne", f.load(pool, WAITING, "seq_cst"), 0)
    f.branch(f.op("and", is_last, is_waited), wake, idle(job))
    f.enter(wake)
    f.wake(pool, EVERYBODY)
    f.jump(idle(job))
    f.enter(end)
    f.give(NULL)
    return f


def starting(processor: Processor, declared: dict[str, str], worker: Value) -> PoolFunction:
    """`start(pool, wanted)`: start workers until there are `wanted`; they block all signals, which are for the program's
    threads."""
    f = PoolFunction(processor, declared, "start", "void", {"pool": "ptr", "wanted": "i32"})
    pool, wanted = f.params
    next, refuse, unblock, end = f.blocks("next", "refuse", "unblock", "end")
    every, old = f.room(SIGNALS_BYTES, "i8", 8), f.room(SIGNALS_BYTES, "i8", 8)
    f.require(f.compare("eq", f.load(pool, REFUSED), 0), end)
    f.fill(every, -1, SIGNALS_BYTES)
    set_signals = constant("i32", SET_SIGNALS)
    f.call_c("pthread_sigmask", "i32", set_signals, every, old)
    f.go_on(next)
    i = f.load(pool, STARTED)
    f.require(f.compare("slt", i, wanted), unblock)
    index = f.cast("zext", i, "i64")
    slot = f.address(f.address(pool, SLOTS), f.op("mul", index, SLOT_BYTES))
    seen = f.op("lshr", f.load(pool, STATE, "monotonic"), JOB_SHIFT)
    f.keep(pool, slot, POOL)
    f.keep(f.op("add", index, 1), slot, NUMBER)
    f.keep(seen, slot, SEEN)
    failed = f.call_c("pthread_create", "i32", f.address(slot, THREAD.offset), NULL, worker, slot)
    f.require(f.compare("eq", failed, 0), refuse)
    f.keep(f.op("add", i, 1), pool, STARTED)
    f.jump(next)
    f.enter(refuse)
    f.keep(1, pool, REFUSED)
    f.go_on(unblock)
    f.call_c("pthread_sigmask", "i32", set_signals, old, NULL)
    f.go_on(end)
    f.give()
    return f


def running(processor: Processor, declared: dict[str, str], work: Value, start: Value) -> PoolFunction:
    """`pool.parallel(view, task, argument, tasks)`: call task(argument, number) for each number below `tasks`."""
    f = PoolFunction(processor, declared, RUN, "void", {"view": "ptr", "task": "ptr", "argument": "ptr", "tasks": "i64"}, "")
    view, task, argument, tasks = f.params
    serial, begin, publish, wake, own, next, done = f.blocks("serial", "begin", "publish", "wake", "own", "next", "done")
    join, pause, sleep, asleep, wait, awake, leave = f.blocks("join", "pause", "sleep", "asleep", "wait", "awake", "leave")
    pool, limit = f.load(view, VIEW_POOL), f.load(view, VIEW_LIMIT)
    is_worth_it = f.compare("sge", limit, 2), f.compare("sge", tasks, 2), f.compare("sle", tasks, MOST)
    f.require(f.every(is_worth_it), serial)
    busy = f.address(pool, BUSY.offset)
    _, is_free = f.exchange(busy, constant("i32", 0), 1, "acquire monotonic")
    f.require(is_free, serial)
    wanted = f.op("sub", f.cast("trunc", limit, "i32"), 1)
    f.branch(f.compare("slt", f.load(pool, STARTED), wanted), begin, publish)
    f.enter(begin)
    f.call(start, "void", pool, wanted)

    f.go_on(publish)
    for value, member in ((task, TASK), (argument, ARGUMENT), (tasks, TASKS)):
        f.keep(value, pool, member)
    if processor.save_float_mode is not None:
        processor.save_float_mode(f, f.address(pool, FLOAT_MODE))
    f.keep(limit, pool, LIMIT, "monotonic")
    f.keep(f.op("lshr", -1, f.op("sub", 64, tasks)), pool, UNCLAIMED, "release")
    job = f.op("and", f.load(pool, STATE, "monotonic"), -(1 << JOB_SHIFT))
    f.update("xchg", pool, f.op("add", job, (1 << JOB_SHIFT) + OPEN), "seq_cst")
    f.branch(f.compare("sgt", f.load(pool, SLEEPERS, "seq_cst"), 0), wake, own)
    f.enter(wake)
    f.wake(pool, wanted)
    f.go_on(own)
    f.call(work, "void", pool, constant("i64", 0))
    f.update("and", pool, constant("i32", ~OPEN), "seq_cst")

    f.jump(join(0))
    i, = f.enter(join, "i32")
    inside = f.op("and", f.load(pool, STATE, "acquire"), INSIDE)
    f.branch(f.compare("eq", inside, 0), leave, pause)
    f.enter(pause)
    f.pause()
    following = f.op("add", i, 1)
    f.branch(f.compare("slt", following, JOIN_SPIN), join(following), sleep)
    f.enter(sleep)
    f.keep(1, pool, WAITING, "seq_cst")
    f.go_on(asleep)
    state = f.load(pool, STATE, "seq_cst")
    f.branch(f.compare("eq", f.op("and", state, INSIDE), 0), awake, wait)
    f.enter(wait)
    f.wait(pool, state)
    f.jump(asleep)
    f.enter(awake)
    f.keep(0, pool, WAITING, "seq_cst")
    f.go_on(leave)
    f.store(constant("i32", 0), busy, "release")
    f.give()

    f.enter(serial)
    f.branch(f.compare("sgt", tasks, 0), next(0), done)
    number, = f.enter(next, "i64")
    f.call(task, "void", argument, number)
    following = f.op("add", number, 1)
    f.branch(f.compare("slt", following, tasks), next(following), done)
    f.enter(done)
    f.give()
    return f


def stopping(processor: Processor, declared: dict[str, str]) -> PoolFunction:
    """`pool.stop(pool)`: end the workers, and make every later job run serially. While a job runs, do nothing and return 1;
    else return 0."""
    f = PoolFunction(processor, declared, STOP, "i32", {"pool": "ptr"}, "")
    pool, = f.params
    is_running, = f.blocks("running")
    _, is_free = f.exchange(f.address(pool, BUSY.offset), constant("i32", 0), 1, "acquire monotonic")
    f.require(is_free, is_running)
    f.keep(1, pool, STOPPED, "seq_cst")
    f.update("add", pool, constant("i32", 1 << JOB_SHIFT), "seq_cst")
    f.wake(pool, EVERYBODY)
    count = f.cast("zext", f.load(pool, STARTED), "i64")
    with f.loop(count) as i:
        slot = f.address(f.address(pool, SLOTS), f.op("mul", i, SLOT_BYTES))
        f.call_c("pthread_join", "i32", f.load(slot, THREAD), NULL)
    f.give(constant("i32", 0))
    f.enter(is_running)
    f.give(constant("i32", 1))
    return f


def module_text(target: Target) -> str:
    """Return the pool's module for a machine."""
    processor, declared = PROCESSORS[target.architecture], dict[str, str]()
    work = working(processor, declared)
    thread = worker(processor, declared, work.pointer)
    start = starting(processor, declared, thread.pointer)
    functions = [work, thread, start, running(processor, declared, work.pointer, start.pointer), stopping(processor, declared)]
    return module(target.triple, declared.values(), *(f.definition() for f in functions), [attribute_group(*OWN_ATTRIBUTES)])


engine = Later(lambda: Engine(module_text(host()), host(), NEEDED))
"""Machine code of the pool, made once per process by the first thread that asks: its addresses outlive every call."""


@functools.cache
def thread_pool() -> PoolCode | None:
    """Return the pool's functions in this process; None if it can have no pool, and programs run serially."""
    if not is_supported():
        return None
    return PoolCode(engine().address(RUN), engine().address(STOP), engine())
