"""The protocol of the pool of threads, proved state by state: what is run is the LLVM text that is compiled, and each planted
fault is found. The number of states is printed; `-m long` has larger scenes.
"""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.native.process import thread_pool
from tosaic.lowering.target.presets import target
from tosaic.runtime.threads import POOL_BYTES, SPIN, SPIN_WORD, PoolCode, ThreadPool

from .pool_mutations import FAULTS, ORDERS
from .pool_states import Found, Job, Scene, explore

ONE, TWO, THREE = Job(2, 2), Job(3, 2), Job(4, 3)
"""Jobs with one, two and three workers beside the caller."""
STRICT = {
    "two workers": Scene(((TWO, "stop"),), weak=False),
    "two workers, two jobs, one of one worker": Scene(((TWO, ONE, "stop"),), weak=False),
    "two workers that look twice, two jobs": Scene(((TWO, TWO, "stop"),), weak=False, spin=2),
    "threads that the system refuses": Scene(((TWO, TWO, "stop"),), weak=False, refuses=True),
    "stop at every point": Scene(((ONE, ONE, ONE), ("stop",)), weak=False),
    "two that stop": Scene(((ONE, "stop"), ("stop",)), weak=False),
    "three callers": Scene(((ONE,), (ONE,), ("stop",)), weak=False)}
WEAK = {
    "one worker": Scene(((ONE, "stop"),)),
    "one worker, three tasks": Scene(((Job(2, 3), "stop"),)),
    "one worker, two jobs": Scene(((ONE, ONE, "stop"),)),
    "one worker, stop at every point": Scene(((ONE,), ("stop",))),
    "a thread that the system may refuse": Scene(((ONE, ONE, "stop"),), refuses=True),
    "two callers": Scene(((ONE,), (ONE,)))}
LONG = {
    "two workers, two jobs, stop at every point": Scene(((TWO, TWO), ("stop",)), weak=False),
    "two workers, three jobs": Scene(((TWO, TWO, TWO, "stop"),), weak=False),
    "three workers": Scene(((THREE, "stop"),), weak=False),
    "two callers, as weak as may be, and stop": Scene(((ONE,), (ONE, "stop"))),
    "one worker, three jobs, as weak as may be": Scene(((ONE, ONE, ONE, "stop"),)),
    "two workers, as weak as may be": Scene(((TWO, "stop"),))}
SCENES = STRICT | WEAK


@pytest.fixture(scope="module")
def text() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_pool, "JOIN_SPIN", 1)
        return thread_pool.module_text(target("x86-64"))


def explored(text: str, scene: Scene, name: str, capsys: pytest.CaptureFixture[str]) -> Found:
    found = explore(text, scene)
    with capsys.disabled():
        print(f"\n{name}: {found.states} states", end="")
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SCENES)
def test_no_state_of_the_pool_is_wrong(text: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(text, SCENES[name], name, capsys)
    assert not found.wrong, (found.wrong, *found.steps)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_no_state_of_larger_scenes_is_wrong(text: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(text, LONG[name], name, capsys)
    assert not found.wrong, (found.wrong, *found.steps)


ELSEWHERE = {
    "there is always room": "two workers, two jobs, one of one worker", "a job wakes one worker": "two workers",
    "a job is not closed": "one worker, two jobs",
    "a job does not ask whether another one runs": "one worker, stop at every point",
    "the entrance to the pool": "two callers", "the exit from the pool": "two callers",
    "a thread is counted that could not be started": "threads that the system refuses", "stop wakes one worker": "two workers",
    "stop does not ask whether a job runs": "one worker, stop at every point"}
"""Scenes that show a fault; of the others, the smallest one."""


def with_fault(text: str, name: str) -> Found:
    """What is found of a fault in the scene that shows it."""
    changed = (FAULTS | ORDERS)[name](text)
    assert changed != text
    return explore(changed, SCENES[ELSEWHERE.get(name, "one worker")])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_in_the_protocol_is_found(text: str, name: str) -> None:
    found = with_fault(text, name)
    assert found.wrong


@pytest.mark.parametrize("name", ORDERS)
def test_each_order_that_the_text_needs_is_missed(text: str, name: str) -> None:
    """An access that asks for less shows a fault; of orders that only say more than is needed, there is none in the list."""
    assert with_fault(text, name).wrong


def test_the_steps_to_a_fault_are_told(text: str) -> None:
    """The first state without an end is that of the worker that has gone to sleep, before anybody stops the pool."""
    found = with_fault(text, "stop wakes nobody")
    assert found.wrong == "the calls cannot end"
    assert "pthread_create" in found.steps[0] and "worker, wait" in found.steps[-1]


@pytest.mark.parametrize("name", ("riscv64", "x86-64"))
def test_the_text_of_each_processor_has_the_same_states(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "JOIN_SPIN", 1)
    own = thread_pool.module_text(target(name))
    for scene in ("one worker", "two workers"):
        assert explore(own, SCENES[scene]) == explore(text, SCENES[scene])


def test_a_child_of_fork_begins_in_the_first_state() -> None:
    """Whatever the parent's threads were doing: nothing is left of it but how often workers look, so that what holds of a new
    pool holds of the child's."""
    pool = ThreadPool(PoolCode(0, 0, None))
    first, rng = pool.memory.copy(), np.random.default_rng(0)
    for _ in range(20):
        pool.memory[:] = rng.integers(0, 256, POOL_BYTES)
        pool.reset()
        np.testing.assert_array_equal(pool.memory, first)
    assert pool.words[SPIN_WORD] == SPIN and np.count_nonzero(pool.words) == 1
