"""Python's collector of cycles while a model is compiled: seldom, and as before afterwards."""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest
import tosaic
from tosaic.runtime import garbage_collection
from tosaic.runtime.garbage_collection import SELDOM, STARTS, seldom_collecting

TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_thresholds_are_as_before_when_the_last_compile_is_done() -> None:
    with seldom_collecting():
        with seldom_collecting():
            pass
        assert gc.get_threshold() == (SELDOM, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_thresholds_are_as_before_when_a_compile_fails() -> None:
    with pytest.raises(ValueError, match="wrong"), seldom_collecting():
        raise ValueError("wrong")
    assert gc.get_threshold() == (700, 10, 10)


def test_overlapping_compiles_of_threads_restore_once() -> None:
    begun, end = threading.Event(), threading.Event()

    def other() -> None:
        with seldom_collecting():
            begun.set()
            end.wait()

    with seldom_collecting():
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
    assert gc.get_threshold() == (SELDOM, 10, 10)
    end.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (SELDOM * 2, 5, 5)], ids=["off", "even less often"])
def test_what_a_program_has_chosen_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with seldom_collecting():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_what_a_program_chooses_meanwhile_stays() -> None:
    with seldom_collecting():
        gc.set_threshold(300, 3, 3)
    assert gc.get_threshold() == (300, 3, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_of_a_fork_has_what_was_before() -> None:
    with seldom_collecting():
        child = os.fork()
        if not child:
            os._exit(0 if gc.get_threshold() == (700, 10, 10) else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_reading_and_compiling_leave_the_collector_alone() -> None:
    tosaic.load(TEXT).main.compile()
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.isenabled()


def test_what_a_start_makes_is_taken_for_old_without_a_look_and_later_starts_are_looked_through(
        monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[int]()
    monkeypatch.setattr(garbage_collection, "_starts", 0)
    gc.unfreeze()  # the suite's own objects, which a start leaves frozen
    gc.callbacks.append(note := lambda phase, info: looks.append(info["generation"]) if phase == "start" else None)
    try:
        found = list[int]()
        for _ in range(STARTS + 1):
            gc.collect()
            looks.clear()
            with seldom_collecting():
                made = [[] for _ in range(2000)]
            made += [[] for _ in range(300)]  # more than a free list has, fewer than the usual threshold
            found.append(len(looks))
            del made
    finally:
        gc.callbacks.remove(note)
        gc.freeze()
    assert found == [0] * STARTS + [1]


def test_what_a_program_keeps_from_the_collector_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_starts", 0)
    gc.freeze()
    try:
        kept = gc.get_freeze_count()
        with seldom_collecting():
            made = [[] for _ in range(2000)]
        assert made and gc.get_freeze_count() > kept // 2
    finally:
        gc.unfreeze()
