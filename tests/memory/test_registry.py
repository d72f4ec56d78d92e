"""Algorithms by name: those of other packages, what they are given, and what is said about broken ones."""
from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence

import pytest
from tosaic.lowering.memory.algorithms.registry import GROUP, algorithm, names
from tosaic.lowering.memory.algorithms.run import ALGORITHMS, allocate, find_algorithm
from tosaic.lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, with_conflicts
from tosaic.lowering.memory.planner import Memory
from tosaic.runtime.errors import Problem

from .brute_force import Plan

POOLS = (PoolInfo("sram", 100), PoolInfo("dram"))
BUFFERS = with_conflicts([BufferInfo("a", 10, 16, live=((0, 1),)), BufferInfo("b", 20, 16, live=((1, 2),)),
                          BufferInfo("c", 40, 16, live=((2, 3),))])

STACKED = """\
from tosaic.lowering.memory.buffers import PoolAllocation, aligned

LOADED = True

def stacked(buffers, pools):
    found, end = {}, 0
    for b in buffers:
        offset = aligned(end, b.alignment)
        found[b.name], end = PoolAllocation(pools[-1].name, offset), offset + b.size_bytes
    return found
"""


@pytest.fixture
def packages(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder of installed packages; algorithms that are loaded from it are forgotten again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("tosaic.lowering.memory.algorithms.registry.ALGORITHMS", dict(ALGORITHMS))
    return tmp_path


def install(folder: pathlib.Path, package: str, source: str, *points: str) -> None:
    """A package of one module with these entry points."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *points, ""]))


def test_an_installed_package_offers_an_algorithm(packages: pathlib.Path) -> None:
    install(packages, "stacking-planner", STACKED, "stacked = stacking_planner:stacked")
    assert names() == ["exact", "greedy_by_conflicts", "greedy_by_size", "hill_climb", "portfolio", "stacked"]
    import sys
    assert "stacking_planner" not in sys.modules  # only when it is named
    found = allocate(BUFFERS, POOLS, "stacked")
    assert {n: (p.pool, p.byte_offset) for n, p in found.items()} == {"a": ("dram", 0), "b": ("dram", 16), "c": ("dram", 48)}
    assert Memory("stacked").algorithm_name == "stacked"


def test_an_algorithm_that_does_not_exist_is_refused_with_those_that_do(packages: pathlib.Path) -> None:
    install(packages, "one-planner", STACKED, "one = one_planner:stacked")
    with pytest.raises(Problem) as error:
        find_algorithm("two")
    assert str(error.value) == ("error[option]: there is no planner's algorithm named two\n  help: there are exact, "
                                "greedy_by_conflicts, greedy_by_size, hill_climb, one, portfolio")


@pytest.mark.parametrize("source, point, message", [
    ("raise RuntimeError('no licence')", "broken_planner:f",
     "the planner's algorithm mine of package broken-planner (broken_planner:f) cannot be loaded: RuntimeError: no licence"),
    ("", "broken_planner:f", "the planner's algorithm mine of package broken-planner (broken_planner:f) cannot be loaded: "
     "AttributeError: module 'broken_planner' has no attribute 'f'"),
    ("", "absent_planner:f", "the planner's algorithm mine of package broken-planner (absent_planner:f) cannot be loaded: "
     "ModuleNotFoundError: No module named 'absent_planner'"),
    ("f = 3", "broken_planner:f", "the planner's algorithm mine of package broken-planner (broken_planner:f) is int and no "
     "function"),
    ("def f(buffers): return {}", "broken_planner:f", "the planner's algorithm mine cannot be called with buffers and pools: "
     "too many positional arguments"),
])
def test_a_broken_entry_point_is_a_problem_that_names_its_package(packages: pathlib.Path, source: str, point: str,
                                                                  message: str) -> None:
    install(packages, "broken-planner", source, f"mine = {point}")
    import sys
    sys.modules.pop("broken_planner", None)
    with pytest.raises(Problem) as error:
        Memory("mine")
    assert error.value.message == message and error.value.kind == "option" and error.value.help


def test_two_packages_may_not_offer_the_same_name(packages: pathlib.Path) -> None:
    install(packages, "first-planner", STACKED, "stacked = first_planner:stacked")
    install(packages, "second-planner", STACKED, "stacked = second_planner:stacked")
    with pytest.raises(Problem, match="several packages offer a planner's algorithm named stacked: first-planner, second-plan"):
        find_algorithm("stacked")


def test_a_package_may_register_its_algorithm_itself(packages: pathlib.Path) -> None:
    source = STACKED.replace("def stacked", "from tosaic.lowering.memory.algorithms import registry\n\n"
                             "@registry.algorithm('registered')\ndef stacked")
    install(packages, "registering-planner", source, "registered = registering_planner:stacked")
    assert allocate(BUFFERS, POOLS, "registered")["c"].byte_offset == 48


# ---- what an algorithm is given --------------------------------------------------------------------------------------
def test_an_algorithm_may_ask_for_the_memory_pressure() -> None:
    seen = []

    def asking(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], *, memory_pressure: int) -> Plan:
        seen.append((memory_pressure, [p.size_hint_bytes for p in pools]))
        ends = itertools.accumulate((64 for _ in buffers), initial=0)
        return {b.name: PoolAllocation("dram", end) for b, end in zip(buffers, ends)}

    allocate(BUFFERS, POOLS, asking)
    assert seen == [(60, [100, None])]  # b and c are live together; alignment does not count


def test_the_memory_pressure_of_conflicts_alone_is_that_of_a_clique() -> None:
    seen = []

    def asking(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], memory_pressure: int) -> Plan:
        seen.append(memory_pressure)
        return allocate(buffers, pools, "greedy_by_size")

    allocate([BufferInfo("a", 10, 16, conflicts=frozenset("bc")), BufferInfo("b", 20, 16, conflicts=frozenset("c")),
              BufferInfo("c", 5), BufferInfo("d", 30, conflicts=frozenset("a"))], POOLS, asking)
    assert seen == [40]


def test_a_function_that_cannot_be_called_so_is_not_registered() -> None:
    with pytest.raises(Problem, match="the planner's algorithm odd cannot be called with buffers and pools: missing a"):
        @algorithm("odd")
        def odd(buffers: Sequence[BufferInfo], pools: Sequence[PoolInfo], colour: str) -> Plan:
            return {}
    assert "odd" not in ALGORITHMS
    with pytest.raises(Problem, match="cannot be called with buffers and pools"):
        allocate(BUFFERS, POOLS, lambda buffers: {})
