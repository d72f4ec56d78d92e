"""Dataclasses, named tuples and classes of one's own as arguments and results, and arguments with open extents."""
from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Linear:
    weight: Any
    bias: Any = None
    activation: str = field(default="relu", metadata={"static": True})


@dataclass(slots=True)
class State:
    layers: list[Linear]
    step: Any = 0
    total: Any = field(default=0, init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.layers[0].weight, np.ndarray), "traced tensors do not come here"


class Point:
    def __init__(self, x: Any, y: Any, unit: str) -> None:
        self.x, self.y, self.unit = x, y, unit


tosaic.register_tree(Point, lambda p: ((p.x, p.y), p.unit), lambda unit, xy: Point(*xy, unit), ("x", "y"))


@tosaic.jit
def update(state: State, x: Any) -> State:
    for layer in state.layers:
        x = x * layer.weight if layer.bias is None else x * layer.weight + layer.bias
        x = tosaic.ops.relu(x) if layer.activation == "relu" else -x
    state.step, state.total = state.step + 1, x
    return state


def test_dataclasses_go_in_and_out() -> None:
    state = update(State([Linear(X), Linear(X + 1, np.float32(2), "negative")], np.int32(4)), X)
    assert type(state) is State and type(state.layers[1]) is Linear and state.step == 5
    assert state.layers[1].activation == "negative" and state.layers[0].bias is None
    np.testing.assert_array_equal(state.total, -(np.maximum(X * X, 0) * (X + 1) + 2))


def test_static_fields_are_part_of_the_signature() -> None:
    update.cache_clear()
    for activation in ("relu", "negative", "relu"):
        update(State([Linear(X, None, activation)]), X)
    assert update.cache_info().compiles == 2
    with pytest.raises(tosaic.TypeProblem, match="what is static in a Linear cannot be a key"):
        update(State([Linear(X, None, ["relu"])]), X)  # type: ignore[arg-type]


def test_registered_classes_go_in_and_out_with_the_names_of_their_parts() -> None:
    @tosaic.jit
    def mirrored(point: Point) -> dict[str, Any]:
        return {"point": Point(point.y, point.x, point.unit), "pair": Pair(point.x, Point(1, point.y, "m"))}

    found = mirrored(Point(X, X + 1, "cm"))
    np.testing.assert_array_equal(found["point"].x, X + 1)
    assert found["point"].unit == "cm" and type(found["pair"]) is Pair and found["pair"].second.unit == "m"
    assert mirrored.trace(Point(X, X, "cm")).inputs == ("point_x: tensor<2x3xf32>", "point_y: tensor<2x3xf32>")
    assert update.trace(State([Linear(X)]), X).inputs[0] == "state_layers_0_weight: tensor<2x3xf32>"


def test_trees_are_the_state_of_branches_and_loops() -> None:
    def function(x: Any) -> Any:
        start = Point(x, 0, "s")
        end = tosaic.while_loop(lambda p: p.y < 3, lambda p: Point(p.x * 2, p.y + 1, p.unit), start)
        return tosaic.cond(end.x.sum() > 0, lambda p: p, lambda p: Point(-p.x, p.y, p.unit), end)

    found = tosaic.jit(function)(X)
    np.testing.assert_array_equal(found.x, X * 8)
    assert found.y == 3 and found.unit == "s"


def test_wrong_registrations_are_problems() -> None:
    with pytest.raises(tosaic.TypeProblem, match="takes a class, not an int"):
        tosaic.register_tree(3, len, len)  # type: ignore[arg-type, type-var]
    with pytest.raises(tosaic.ValueProblem, match="Point has been registered already"):
        tosaic.register_tree(Point, lambda p: ((), None), lambda s, c: Point(0, 0, ""))

    class Odd:
        pass

    tosaic.register_tree(Odd, lambda o: [], lambda s, c: Odd())  # type: ignore[arg-type, return-value]
    with pytest.raises(tosaic.TypeProblem, match="flatten of Odd gives a list"):
        tosaic.jit(lambda x: x)(Odd())


# ---- open extents --------------------------------------------------------------------------------------------------
@tosaic.jit
def scaled(x: Any, options: dict[str, Any]) -> Any:
    return x * options["by"] + x.shape[0]


OPEN = tosaic.TensorSpec((None, 3)), {"by": tosaic.TensorSpec(())}


def test_open_extents_are_compiled_for_the_shapes_of_each_call() -> None:
    scaled.cache_clear()
    step = scaled.compile(*OPEN)
    by = np.float32(2)
    for rows in (2, 5, 2):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(step(x, by), x * 2 + rows)
        np.testing.assert_array_equal(step(x, options_by=by), step({"x": x, "options_by": by}))
    assert scaled.cache_info().compiles == 2
    assert step.inputs[0].shape == (None, 3) and repr(step).startswith("<Compiled scaled(x: tensor<?x3xf32>")
    out = np.empty((2, 3), np.float32)
    assert step(X, by, out=out) is out
    assert step.specialize({"x": (5, 3)}).report().arena >= 0  # type: ignore[attr-defined]
    assert scaled.cache_info().compiles == 2


def test_what_does_not_fit_the_specification_is_refused() -> None:
    step: Any = scaled.compile(*OPEN)
    for x, kind, text in ((X[:, :2], ValueError, "must be tensor<?x3xf32>, got tensor<2x2xf32>"),
                          (X[0], ValueError, "got tensor<3xf32>"), (X.astype(np.int32), TypeError, "got tensor<2x3xi32>")):
        with pytest.raises(tosaic.Problem) as found:
            step(x, np.float32(1))
        assert isinstance(found.value, kind) and text in str(found.value)
    with pytest.raises(tosaic.TypeProblem, match="did you mean options_by"):
        step(X, options_bi=1.0)
    with pytest.raises(tosaic.TypeProblem, match="input options_by of scaled is missing"):
        step(X)
    with pytest.raises(tosaic.ValueProblem, match="its shape must be given"):
        step.specialize({})


def test_a_graph_has_no_open_extents() -> None:
    for stage in (scaled.trace, scaled.lower):
        with pytest.raises(tosaic.ValueProblem, match="code is made for the shapes of each call"):
            stage(*OPEN)
    with pytest.raises(tosaic.ValueProblem, match="specialize"):
        scaled.compile(*OPEN).report()


# ---- calls by name -------------------------------------------------------------------------------------------------
def test_inputs_are_given_in_order_and_by_name() -> None:
    model = tosaic.load("func.func @main(%left: tensor<2x3xf32>, %right: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
                        "  %0 = tosa.sub %left, %right : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
                        "  return %0 : tensor<2x3xf32>\n}")
    for call in (model, model.main, model.main.compile(), model.main.on_floats):
        for _ in range(2):  # the first call, and the quick one
            for found in (call(X, X + 1), call(X, right=X + 1), call(right=X + 1, left=X), call({"right": X + 1, "left": X})):
                np.testing.assert_array_equal(found, np.full((2, 3), -1))
        with pytest.raises(tosaic.TypeProblem, match="did you mean right"):
            call(X, rigth=X)
        with pytest.raises(tosaic.TypeProblem, match="gets input left twice"):
            call(X, left=X)
