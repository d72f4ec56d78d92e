"""The work queue's threads in many orders: every lock and every use of the list of tasks is delayed by a seed. No task is lost
or run twice, a shutdown ends, and no wait is for ever; planted faults are found by the same seeds."""
from __future__ import annotations

import threading
import time
from _thread import LockType, allocate_lock
from collections import Counter
from collections.abc import Callable

import pytest
from tosaic.runtime import later
from tosaic.runtime.later import Later
from tosaic.runtime.op_by_op import work_queue
from tosaic.runtime.op_by_op.work_queue import QueueState, WorkQueue
from tosaic.runtime.op_by_op.workers import blocked

from .delays import Delays, ends

SEEDS = range(12)


class Counted:
    """A task that notes that it has run."""

    def __init__(self, ran: Counter[int], number: int, body: Callable[[], object] = lambda: None) -> None:
        self.ran, self.number, self.body = ran, number, body

    def begin(self, _: object) -> object:
        self.body()
        self.ran[self.number] += 1
        return None


def delayed_queue(seed: int, threads: int, size: int, monkeypatch: pytest.MonkeyPatch) -> WorkQueue:
    delays = Delays(seed)
    monkeypatch.setattr(work_queue, "threading", delays.threading)
    monkeypatch.setattr(work_queue, "SimpleQueue", delays.Tasks)
    return WorkQueue(threads, size)


def added(queue: WorkQueue, task: Counted) -> bool:
    """Add a task; who cannot runs it, as callers of the queue do."""
    if queue.add(task):
        return True
    task.begin(None)
    return False


def many_tasks(queue: WorkQueue) -> None:
    """Three threads add tasks, and one of them shuts the queue down meanwhile."""
    ran: Counter[int] = Counter()

    def adder(first: int) -> None:
        for number in range(first, first + (12 if first else 3)):
            added(queue, Counted(ran, number))
        if first == 0:
            queue.shutdown()

    adders = [threading.Thread(target=adder, args=(100 * i,), daemon=True) for i in range(3)]
    for thread in adders:
        thread.start()
    for thread in adders:
        thread.join()
    queue.shutdown()
    assert len(ran) == 27 and set(ran.values()) == {1} and not len(queue)


def tasks_that_wait(queue: WorkQueue) -> None:
    """Each task waits for the next one, which is still in line: more of them than there are threads."""
    ran, locks = Counter[int](), [allocate_lock() for _ in range(6)]
    for lock in locks:
        lock.acquire()

    def step(number: int) -> None:
        if number < len(locks):
            with blocked(locks[number]):
                locks[number].acquire()
        if number:
            locks[number - 1].release()

    for number in range(len(locks) + 1):
        assert queue.add(Counted(ran, number, lambda n=number: step(n)))  # type: ignore[misc]
    queue.shutdown()
    assert set(ran.values()) == {1} and len(ran) == 7 and not queue.state.waits


def idle_threads(queue: WorkQueue) -> None:
    """The queue is shut down when its threads have nothing to do."""
    ran, last = Counter[int](), allocate_lock()
    last.acquire()
    for number in range(4):
        assert queue.add(Counted(ran, number, last.release if number == 3 else lambda: None))
    last.acquire()
    while queue.state.idle < queue.threads:
        time.sleep(0.001)
    queue.shutdown()
    assert len(ran) == 4 and set(ran.values()) == {1}


SCENES = {"many tasks": (many_tasks, 2, 5), "tasks that wait": (tasks_that_wait, 2, 100), "idle threads": (idle_threads, 2, 5)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCENES)
def test_no_order_of_threads_loses_a_task_or_hangs(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, threads, size = SCENES[name]
    queue = delayed_queue(seed, threads, size, monkeypatch)
    assert ends(lambda: scene(queue))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_end_of_a_program_wakes_what_waits_for_ever(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "PATIENCE", 0.05)
    queue, ran, lock = delayed_queue(seed, 1, 10, monkeypatch), Counter[int](), allocate_lock()
    lock.acquire()

    def wait() -> None:
        with blocked(lock):
            lock.acquire()

    assert queue.add(Counted(ran, 0, wait)) and queue.add(Counted(ran, 1))
    assert ends(queue.end) and ran == {0: 1, 1: 1}


# ---- planted faults --------------------------------------------------------------------------------------------------
def staffs_nobody(state: QueueState, lock: LockType) -> None:
    with state.lock:
        state.waits.add(lock)


def takes_no_last(state: QueueState) -> None:
    """A queue that is closed has nothing left for anyone."""


def closes_without_a_word(state: QueueState) -> None:
    state.is_closed = True


FAULTS = {"a thread that waits is not replaced": (QueueState, "block", staffs_nobody, "tasks that wait"),
          "a queue that is closed forgets what waits": (QueueState, "take_last", takes_no_last, "many tasks"),
          "nobody is woken for the end": (QueueState, "close", closes_without_a_word, "idle threads")}


@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, fault, scene_name = FAULTS[name]
    monkeypatch.setattr(owner, method, fault)
    scene, threads, size = SCENES[scene_name]

    def is_right(seed: int) -> bool:
        queue = delayed_queue(seed, threads, size, monkeypatch)
        try:
            return ends(lambda: scene(queue), 5)
        except AssertionError:
            return False
        finally:
            work_queue._live.discard(queue)

    assert not all(is_right(seed) for seed in SEEDS)


# ---- values that are made once ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
def test_a_value_is_made_once_whichever_threads_ask(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache's code, its source and the graphs of models are such values; one whose making fails is made by the next."""
    delays, made, got = Delays(seed), list[int](), list[int]()
    monkeypatch.setattr(later, "threading", delays.threading)

    def make() -> int:
        delays.delay()
        made.append(1)
        if len(made) < 3:
            raise OSError
        return len(made)

    value = Later(make)

    def ask() -> None:
        while True:
            try:
                got.append(value())
                return
            except OSError:
                pass

    def scene() -> None:
        threads = [threading.Thread(target=ask, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert ends(scene) and got == [3] * 6 and len(made) == 3 and not later._being_made
