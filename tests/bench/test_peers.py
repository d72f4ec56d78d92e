"""The comparison's own logic: ratios, what counts as the same result, rounds, workers that stand still, the tables."""
from __future__ import annotations

import itertools
import pathlib
import sys
from typing import Any

import numpy as np
import pytest

from .peers import environment, table
from .peers.cases import CASES, difference, given
from .peers.measure import ROUNDS, Bench, Outcome, Row, settle
from .peers.rescale import rescaled
from .peers.roster import MACHINE, PEERS
from .peers.task import Refused, Task
from .peers.worker import Batches
from .peers.workers import Worker, ended

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are stopped, bound and measured by Linux' means")
LOADED = {"load": 0.5, "load_mb": 100.0}


def row(**batches: list[float]) -> Row:
    """A row in which a call is 2 million operations, at a peak of 4 million a second."""
    outcomes = [Outcome(name, load=LOADED, batches=times) for name, times in batches.items()]
    return Row(CASES["lstm"], 1, 2_000_000, outcomes, 4e6, 4e6, "a unit")


def test_ratios_are_of_the_least_times_and_of_times_in_one_round() -> None:
    made = row(tosaic=[1.0, 2.0, 4.0], litert=[3.0, 2.0, 8.0])
    tosaic, litert = made.outcomes
    assert table.ratio(made, litert) == 2.0
    assert table.paired(made, litert) == 2.0
    assert table.ratio(made, tosaic) == table.paired(made, tosaic) == 1.0
    assert table.share(made, litert) == 0.25


def test_a_peak_is_the_best_that_the_run_showed_of_a_unit_on_as_many_threads() -> None:
    rows = [row(), row(), row(), row()]
    rows[1].peak_here, rows[2].threads, rows[3].case = 8e6, 2, CASES["chain"]
    settle(rows)
    assert [made.peak for made in rows] == [8e6, 8e6, 4e6, 4e6]
    assert rows[0].peak_here == 4e6


def test_a_peer_beside_nothing_has_no_ratio() -> None:
    made = row(tosaic=[], litert=[1.0])
    assert table.ratio(made, made.outcomes[1]) is None
    assert table.paired(made, made.outcomes[1]) is None


def test_the_best_peer_is_one_that_computes_the_same() -> None:
    made = row(tosaic=[1.0], litert=[3.0], openvino=[2.0], jax=[0.5])
    made.outcomes[2].difference, made.outcomes[3].refused = 0.1, "while running: ended by signal SIGSEGV"
    best = table.best(made)
    assert best is not None and best.peer == "litert"
    assert "differs by 0.1" in table.block(made)
    assert "- while running: ended by signal SIGSEGV" in table.block(made)


def test_a_peer_that_keeps_what_it_compiled_has_two_figures_or_only_the_second() -> None:
    made = row(tosaic=[1.0], litert=[2.0], iree=[3.0])
    made.outcomes[0].keeps = made.outcomes[2].keeps = True
    made.outcomes[0].cold = {"load": 1.5, "load_mb": 200.0}
    figures = [line.split()[6:8] for line in table.block(made).splitlines()[2:]]
    assert figures == [["1.500", "0.500"], ["0.500", "-"], ["-", "0.500"]]


def test_the_summary_has_a_line_for_each_row() -> None:
    made = row(tosaic=[1.0], litert=[2.0])
    made.outcomes[0].keeps, made.outcomes[0].cold = True, {"load": 1.5, "load_mb": 200.0}
    *_, last = table.summary([made]).splitlines()
    assert last == ("| LSTM 40-128-128 f32, a step | 1 | 1,000,000 us | 2,000,000 us | litert | 2.00 | 50% | 1.500 s | 0.500 s "
                    "| 200, 0 MB |")


def test_results_are_compared_by_size_and_nothing_hides() -> None:
    small, large = np.array([1, 2], np.int8), np.array([1.0, -4.0, 2.0], np.float32)
    assert difference([large, small], [small, large]) == 0
    assert difference([small + np.int8(3)], [small]) == 3
    assert difference([large * np.float32(1.5)], [large]) == 0.5
    assert difference([large], [small]) == float("inf")
    assert difference([large * np.float32("nan")], [large]) == float("inf")


def test_inputs_are_the_same_in_every_run() -> None:
    first, again = (given(CASES["okay_nabu"], [((1, 3, 40), "int8"), ((2,), "float32")]) for _ in range(2))
    assert [a.dtype.name for a in first] == ["int8", "float32"]
    assert all(np.array_equal(a, b) for a, b in zip(first, again))


def test_sums_are_rescaled_by_the_zero_points_and_scales(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "product.npz"
    np.savez(path, kernel=np.array([[1, 2], [3, -4]], np.int8), kernel_scale=np.array([0.5, 0.25]),
             input=np.array([0.5, 1.0]), output=np.array([0.125, -3.0]))
    x = np.array([[5, 7]], np.int64)
    sums = x @ np.array([[1, 2], [3, -4]]).T
    exact = np.array([[(4 * 1 + 6 * 2) * 0.25, (4 * 3 - 6 * 4) * 0.125]]) / 0.125 - 3
    assert np.array_equal(rescaled(sums.astype(np.int32), str(path)), np.clip(exact, -128, 127))


class Recorded:
    """A worker that answers at once; its second batch fails where it is told to."""

    def __init__(self, name: str, order: list[str], fails: bool = False) -> None:
        self.name, self.order, self.fails = name, order, fails

    def batch(self, seconds: float) -> dict[str, float]:
        if self.fails and self.name in self.order:
            raise Refused("gone")
        self.order.append(self.name)
        return {"calls": 1, "seconds": seconds, "run_mb": 1.0}


def rounds(names: list[str], failing: str = "") -> tuple[list[str], Row]:
    order: list[str] = []
    made = Row(CASES["lstm"], 1, 1, [Outcome(name) for name in names])
    made.outcomes[-1].load = {"work": 5, "unit": "a unit"}
    workers: list[Any] = [(outcome, Recorded(outcome.peer, order, outcome.peer == failing)) for outcome in made.outcomes]
    Bench(pathlib.Path(), (), 0.0, {}).go_round(workers, made)
    return order, made


def test_batches_go_round_and_no_worker_always_comes_after_the_same() -> None:
    names = ["tosaic", "litert", "openvino", "machine"]
    order, made = rounds(names)
    assert [len(outcome.batches) for outcome in made.outcomes] == [ROUNDS] * 3
    assert all(sorted(order[i:i + 4]) == sorted(names) for i in range(0, len(order), 4))
    assert len({before for before, after in itertools.pairwise(order) if after == "tosaic"}) >= 3
    assert order == rounds(names)[0] and made.peak == 5 / 0.010 and made.unit == "a unit"


def test_a_worker_that_fails_leaves_the_others_going() -> None:
    order, made = rounds(["tosaic", "litert", "machine"], failing="litert")
    assert order.count("tosaic") == ROUNDS
    assert made.outcomes[1].refused == "while running: gone"


def test_a_batch_is_as_many_calls_as_its_time_holds() -> None:
    calls = []
    batches = Batches(lambda: calls.append(0))
    batches.each = 0.001
    batches.timed = lambda count: calls.extend([0] * count) or 0.002  # type: ignore[assignment, func-returns-value]
    assert batches.run(0.010) == {"calls": 10, "seconds": 0.002}
    assert len(calls) == 11
    assert batches.run(0.010)["calls"] == 5


def state(worker: Worker) -> str:
    """A letter for what a process does, as in `ps`; T is stopped."""
    return pathlib.Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.sampled(4)
@linux
@pytest.mark.parametrize("bound", ["f32", "int8", "copy"])
def test_a_worker_measures_the_machine_and_stands_still_between_batches(bound: str, tmp_path: pathlib.Path) -> None:
    worker = Worker(MACHINE, Task("machine", "", bound, 1, {}, "", str(tmp_path), str(tmp_path / "results.npz")))
    try:
        try:
            loaded = worker.load()
        except Refused as reason:
            assert bound == "int8" and "no int8 unit" in str(reason)
            return
        assert state(worker) in "Tt"
        answer = worker.batch(0.001)
        assert state(worker) in "Tt"
        assert 1e8 < loaded["work"] / answer["seconds"] < 1e15
    finally:
        worker.close()


@linux
def test_a_worker_says_why_a_peer_refuses(tmp_path: pathlib.Path) -> None:
    task = Task("numpy", "product", "f32", 1, {"npz": "tf2onnx: too new"}, str(tmp_path / "x.npz"), str(tmp_path), "")
    np.savez(tmp_path / "x.npz", a00=np.zeros((2, 2), np.float32))
    worker = Worker(MACHINE, task)
    try:
        with pytest.raises(Refused, match="tf2onnx: too new"):
            worker.load()
    finally:
        worker.close()


def test_how_a_process_ended_is_said_by_name() -> None:
    assert ended(-11) == "ended by signal SIGSEGV"
    assert ended(3) == "ended with status 3"


def test_peers_say_what_they_never_take() -> None:
    assert PEERS["numpy"].refuses(CASES["chain"]) == "products alone"
    assert not PEERS["numpy"].refuses(CASES["product_512_f32"])
    assert PEERS["torch"].refuses(CASES["mobilenet_v2_i8"]) and not PEERS["torch"].refuses(CASES["product_512_i8"])


def test_a_peer_that_cannot_be_installed_is_missing_alone_and_tried_again(monkeypatch: pytest.MonkeyPatch,
                                                                           tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("TOSAIC_BENCH", str(tmp_path))
    environment.python("peers").parent.mkdir(parents=True)
    tried: list[str] = []

    def install(_: str, part: str) -> str:
        tried.append(part)
        return "pip: no such version" if part == "jax" else ""

    monkeypatch.setattr(environment, "install", install)
    assert environment.ensure("peers", ["numpy", "jax"]) == {"jax": "pip: no such version"}
    assert environment.ensure("peers", ["numpy", "jax"]) == {"jax": "pip: no such version"}
    assert tried == ["numpy", "jax", "jax"]
