"""Values that are made when they are first asked for: once, by one thread, and anew in the child of a fork."""
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tosaic.runtime.later import Later

from .children import in_child, needs_fork


def test_eight_threads_that_ask_at_once_get_one_value() -> None:
    start = threading.Barrier(8, timeout=60)
    value = Later(object)

    def ask() -> object:
        start.wait()
        return value()

    with ThreadPoolExecutor(8) as pool:
        assert len({id(f.result(60)) for f in [pool.submit(ask) for _ in range(8)]}) == 1


def test_after_a_failure_the_next_call_tries_again() -> None:
    tries = iter([lambda: 1 / 0, lambda: 7])
    value = Later(lambda: next(tries)())
    with pytest.raises(ZeroDivisionError):
        value()
    assert value() == value() == 7


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_makes_what_a_thread_of_its_parent_was_making() -> None:
    inside, go = threading.Event(), threading.Event()
    thread = threading.current_thread()

    def make() -> int:
        if threading.current_thread() is thread:
            return 1
        inside.set()
        assert go.wait(120)
        return 2

    value = Later(make)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(value)
        assert inside.wait(60)
        try:
            assert in_child(lambda: value() == 1 == value(), seconds=20)
        finally:
            go.set()
        assert found.result(60) == 2 == value()
