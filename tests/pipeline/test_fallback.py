"""Faults that are planted in passes and strategies: the model compiles with less, gives the right values, and a warning names
the operator and what was given up. No such warning is left unseen: elsewhere it is an error.
"""
from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, get_args

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Lowered, Traced
from tosaic.lowering import pipeline
from tosaic.lowering.fallback import Luxury, without
from tosaic.lowering.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.memory import planner
from tosaic.lowering.memory.check.verify import require_sound
from tosaic.lowering.row_tiling import row_order
from tosaic.lowering.schedule.contraction.contraction_strategies import ContractionStrategy
from tosaic.lowering.schedule.window.window import Window
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from ..fuse.graphs import Graph, conv
from ..fuzz.generators.functions import RECIPES, Case, case
from ..fuzz.oracles.native import check_native
from ..fuzz.oracles.reference import Expected

schedule = importlib.import_module("tosaic.lowering.schedule.schedule")  # the package has a function of that name
TINY = replace(tosaic.target("x86-64-v3"), l2_bytes=1 << 10, block_bytes=1 << 20)
LUXURIES = get_args(Luxury)
Plant = Callable[[pytest.MonkeyPatch], None]


def network() -> Module:
    """A depthwise convolution, a window with a stride above its extent, and what is fused into it."""
    g, numbers = Graph(), np.random.default_rng(0)

    def whole(*shape: int) -> np.ndarray:
        return numbers.integers(-3, 4, shape).astype(np.float32)

    x = conv(g, g.input(1, 24, 16, 8), whole(3, 3, 8, 1), whole(8), name="depthwise_conv2d", pad=(1, 1, 1, 1))
    y = conv(g, x, whole(8, 1, 1, 8), whole(8), stride=(2, 2), pad=(0, 1, 0, 1))
    return g.module(g.op("abs", y), g.op("reduce_sum", y, axis=3))


def fails(*_: Any, **__: Any) -> NoReturn:
    raise KeyError("planted")


def plant_rows(patch: pytest.MonkeyPatch) -> None:
    """Tasks leave rows out, as they once did."""
    true = row_order.starts
    patch.setattr(row_order, "starts", lambda group, low, before=None: [r + 2 * (low > 0) for r in true(group, low)])


def plant_bounds(patch: pytest.MonkeyPatch) -> None:
    """The loops of windows go an element too far."""
    true = Window.lower

    def lower(self: Window, b: Any, rows: Any) -> None:
        true(self, b, rows)
        b.store(self.nest.out, self.nest.index.of(self.nest.out.size), b.load(self.nest.out, self.nest.index.of(0)))

    patch.setattr(Window, "lower", lower)


WAYS: Callable[..., Any] = schedule.ways
FAULTS: dict[str, tuple[Plant, str, str]] = {
    "rows": (plant_rows, "several threads", "verify-loops"),
    "bounds": (plant_bounds, LUXURIES[-1], "verify-loops"),
    "strategy": (lambda patch: patch.setattr(ContractionStrategy, "lower", fails), LUXURIES[-1], "in the loops of"),
    "tiling": (lambda patch: patch.setattr(schedule, "ways", lambda *given, **named: (
        fails() if given[2] != "never" else WAYS(*given, **named))), "tiling by rows", "schedule"),
    "fusion": (lambda patch: patch.setattr(fuse, "fuse_rows", fails), "fusion", "fuse"),
    "sharing": (lambda patch: patch.setattr(planner, "share", fails), "buffers that share bytes", "plan"),
}
"""A fault that is planted, the last thing that is given up, and what the warning names."""


def compiled_with_warnings(module: Module, options: tosaic.CompileOptions) -> tuple[Lowered, list[str]]:
    with pytest.warns(RuntimeWarning, match="tosaic compiles main without") as caught:
        lowered = Traced(module, "main").lower(options)
    return lowered, [str(w.message) for w in caught]


@pytest.mark.parametrize("name", FAULTS)
def test_a_model_compiles_in_spite_of_a_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, given_up, named = FAULTS[name]
    module = network()
    plant(monkeypatch)
    lowered, (said,) = compiled_with_warnings(module, tosaic.CompileOptions(target=TINY, threads=2))
    given = said.removeprefix("tosaic compiles main without ").split(": ")[0]
    assert given.endswith(given_up) and named in said and "a fault of tosaic, not of the model" in said
    x = np.random.default_rng(1).integers(-4, 5, (1, 24, 16, 8)).astype(np.float32)
    for actual, right in zip(lowered.compile()(x), Interpreter(module, "main", InterpreterVariables())(x), strict=True):
        np.testing.assert_array_equal(actual, right)


def test_a_wrong_plan_is_a_fault_though_another_order_has_a_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    options = tosaic.CompileOptions(TINY)
    program, true, seen = Traced(network(), "main").lower(options).program, planner.verify, list[Any]()

    def verify(found: Any, of: Any) -> None:
        seen.append(of)
        if len(seen) == 1:
            require_sound(["planted"])
        true(found, of)

    monkeypatch.setattr(planner, "verify", verify)
    with pytest.raises(Problem, match="the memory plan is wrong: planted"):
        planner.smallest_plan((program, program), options.memory)
    seen.clear()
    _, (said,) = compiled_with_warnings(network(), options)
    assert "without buffers that share bytes: plan: the memory plan is wrong: planted" in said


def test_a_rewritten_graph_that_is_wrong_is_not_rewritten() -> None:
    """A pass for speed that names no operand of an operation."""
    def broken(state: pipeline.State) -> pipeline.State:
        function = state.graph.function("main")
        return replace(state, module=replace(state.graph, functions=(replace(
            function, body=replace(function.body, operations=function.body.operations[1:])),)))

    passes = tuple(replace(p, run=broken) if p.name == "pad-pools" else p for p in pipeline.PASSES)
    with pytest.warns(RuntimeWarning, match="without rewrites that are for speed: verify-rewritten"):
        assert pipeline.run(pipeline.start(network(), "main", tosaic.CompileOptions(TINY)), passes).plan


def test_the_first_error_is_raised_where_nothing_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "lower_all", fails)
    with pytest.raises(KeyError, match="planted"):
        Traced(network(), "main").lower(tosaic.CompileOptions(TINY))


def test_an_error_of_the_users_is_raised_at_once() -> None:
    memory = tosaic.Memory(pools=(tosaic.Pool("small", 16),))
    with pytest.raises(Problem, match="small"):
        Traced(network(), "main").lower(tosaic.CompileOptions(TINY, memory=memory))
    with pytest.raises(Problem, match="the memory plan is wrong"):
        Traced(network(), "main").lower(tosaic.CompileOptions(TINY, memory=tosaic.Memory(algorithm=lambda *_: {})))


def with_less(made: Case, count: int) -> Lowered:
    """A case compiled without the first luxuries."""
    state = pipeline.start(made.module, "main", tosaic.CompileOptions(threads=2))
    for luxury in LUXURIES[:count]:
        state = without(state, luxury)
    found = pipeline.run(state)
    assert found.kernels and found.plan
    return Lowered(Traced(made.module, "main"), found.graph, found.kernels, found.program, found.plan, found.target,
                   found.threads, found.options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RECIPES)
def test_every_operator_compiles_with_less(name: str) -> None:
    """All that can be given up, and all but plain loops."""
    number = list(RECIPES).index(name)
    made = case(7000 + number, 4, name)
    expected = Expected.of(made.module, made.calls)
    for count in (len(LUXURIES) - number % 2,):
        check_native(with_less(made, count), made.calls, expected, f"{name}, without {LUXURIES[:count]}")


def test_the_warning_is_an_error_in_the_tests(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(fuse, "fuse_rows", fails)
    assert any(re.match("error:tosaic compiles", line) for line in request.config.getini("filterwarnings"))
    with pytest.raises(RuntimeWarning, match="without fusion"):
        Traced(network(), "main").lower(tosaic.CompileOptions(TINY, threads=2))
