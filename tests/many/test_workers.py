"""Functions on many items, on processes of this machine and on a Dask cluster: every item has one outcome, whatever happens to
the workers."""
from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.many.local_workers import LocalWorkers
from tosaic.jit.many.scheduler import workers_for
from tosaic.jit.many.workers import ATTEMPTS, Outcome

ITEMS = 12


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Functions that new processes can import."""
    Path(tmp_path, "example_work.py").write_text("""
import os, signal, pathlib, time
class Square:
    def __init__(self, folder): self.folder = folder
    def __call__(self, n):
        place = pathlib.Path(self.folder, "killed")
        if n == 3 and not place.exists():
            place.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if n == 5: raise ValueError("five")
        return n * n
class Alone:
    def __init__(self, path): self.path = path
    def note(self, what):
        with open(self.path, "a") as file: file.write(what)
    def __call__(self, n):
        from tosaic.jit.many.one_compile import alone
        with alone():
            self.note("(")
            time.sleep(0.02)
            self.note(")")
        return os.getpid()
def ends(n):
    if n == 1: os._exit(7)
    return n
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("example_work")
    sys.modules.pop("example_work")


def in_order(outcomes: Iterator[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda o: o.number)


def test_what_a_killed_process_had_is_run_again_and_every_item_has_one_outcome(module: Any, tmp_path: Path) -> None:
    with workers_for(None, 2) as workers:
        found = in_order(workers.run(module.Square(str(tmp_path)), range(ITEMS)))
    assert Path(tmp_path, "killed").exists()
    expected = [Outcome(n, n * n) if n != 5 else Outcome(5, None, "ValueError: five") for n in range(ITEMS)]
    assert found == expected


def test_an_item_that_ends_every_process_is_given_up_and_the_others_go_on(module: Any) -> None:
    workers = LocalWorkers(1)
    found = in_order(workers.run(module.ends, range(3)))
    assert found[1].error == f"{ATTEMPTS} processes that ran it ended, the last with exit status 7"
    assert [found[0].value, found[2].value] == [0, 2] and not workers.pids


def test_items_are_taken_as_workers_come_free(module: Any) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    run = LocalWorkers(1).run(module.ends, items())
    next(run)
    assert len(taken) < 10
    run.close()  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no lock of files that Python's library calls")
def test_one_process_of_a_machine_compiles_at_a_time(module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOSAIC_CACHE", str(tmp_path / "cache"))
    found = in_order(LocalWorkers(2).run(module.Alone(str(tmp_path / "log")), range(ITEMS)))
    assert len({o.value for o in found}) == 2
    assert (tmp_path / "log").read_text() == "()" * ITEMS


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="a Dask cluster needs the package distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
        yield cluster


def test_a_worker_of_a_cluster_that_is_killed_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "killed")

    def square(n: int) -> int:
        if n == 3 and not os.path.exists(place):
            open(place, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if n == 5:
            raise ValueError("five")
        return n * n

    with workers_for(cluster.scheduler_address, None) as workers:
        found = in_order(workers.run(square, range(ITEMS)))
    assert os.path.exists(place)
    assert found == [Outcome(n, n * n) if n != 5 else Outcome(5, None, "ValueError: five") for n in range(ITEMS)]


def test_a_model_goes_to_the_workers_of_a_cluster_once(cluster: Any) -> None:
    import numpy as np
    twice = tosaic.jit(lambda x: x + x)
    with workers_for(cluster.scheduler_address, None) as workers:
        found = in_order(workers.run(twice, [np.full(2, n, np.float32) for n in range(ITEMS)]))
    assert [o.value.tolist() for o in found] == [[2.0 * n] * 2 for n in range(ITEMS)]


def test_a_scheduler_that_is_not_there_is_a_problem_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="a Dask cluster needs the package distributed")
    monkeypatch.setattr("tosaic.jit.many.dask_workers.CONNECT_SECONDS", 0.2)
    with pytest.raises(tosaic.Problem, match="does not answer") as error, workers_for("tcp://127.0.0.1:9", None):
        pass
    assert "dask scheduler starts one" in str(error.value)
    with pytest.raises(tosaic.Problem, match="has its own workers"):
        workers_for("tcp://127.0.0.1:9", 2)
