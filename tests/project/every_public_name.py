"""Every public name of tosaic, used as its pages use it, with the type that a checker must see. It is not run: `test_types`
has mypy check it, strictly, and finds what is missing here.
"""
# mypy: disallow-untyped-calls, disallow-any-generics, disallow-subclassing-any, disallow-untyped-decorators, warn-return-any
# mypy: no-implicit-reexport, strict-equality, extra-checks, warn-unused-ignores
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import numpy as np
import tosaic
from numpy.typing import NDArray
from tosaic import ops

Array = NDArray[Any]
Several = Array | tuple[Array, ...] | Any
X = np.ones((2, 3), np.float32)


# ---- functions -----------------------------------------------------------------------------------------------------
@tosaic.jit
def scaled(x: NDArray[np.float32], gain: float = 1.0) -> NDArray[np.float32]:
    return x * np.float32(gain)


@tosaic.jit(static=("axis",), options=tosaic.CompileOptions(threads=2))
def mean(x: Array, axis: int) -> tosaic.Tensor:
    return ops.mean(x, axis=axis)


@tosaic.jit
def pair(x: Array) -> tuple[tosaic.Tensor, tosaic.Tensor]:
    return ops.exp(x), tosaic.tosa.abs(x)


class Scale:
    @tosaic.jit
    def apply(self, x: Array, by: float) -> tosaic.Tensor:
        return ops.multiply(x, by)


def functions() -> None:
    assert_type(scaled(X), NDArray[np.float32])
    assert_type(scaled(X, gain=2.0), NDArray[np.float32])
    assert_type(mean(X, axis=1), Array)
    assert_type(pair(X), tuple[Array, Array])
    assert_type(Scale().apply(X, 2.0), Array)
    scaled("a")  # type: ignore[arg-type]  # parameters are the function's
    mean(X, axes=1)  # type: ignore[call-overload]
    assert_type(mean.trace(tosaic.TensorSpec((2, 3)), 1), tosaic.Traced)
    assert_type(mean.lower(X, 1), tosaic.Lowered)
    assert_type(mean.compile(X, 1), tosaic.Compiled[tosaic.Lowered])
    assert_type(mean.cache_info().compiles, int)
    again = tosaic.jit(lambda x: ops.relu(x), options=tosaic.CompileOptions())
    assert_type(again(X), Array)
    keep: tosaic.Jit[[Array], tuple[tosaic.Tensor, tosaic.Tensor]] = pair
    assert_type(keep.trace(X).function.name, str)


def inside(x: tosaic.Tensor) -> None:
    assert_type(x + 1, tosaic.Tensor)
    assert_type(x[0], tosaic.Tensor)
    assert_type(x.mean(axis=0), tosaic.Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(ops.softmax(x), tosaic.Tensor)
    assert_type(tosaic.tosa.conv2d(x, x, x, pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1)), tosaic.Tensor)
    assert_type(tosaic.tosa.rfft2d(x), tuple[tosaic.Tensor, tosaic.Tensor])
    assert_type(tosaic.cond(x.any(), lambda: x, lambda: ops.negative(x)), tosaic.Tensor)
    assert_type(tosaic.while_loop(lambda i: ops.less(i, 3), lambda i: ops.add(i, 1), 0), tosaic.Tensor)
    tosaic.check(x.all(), "all")


class Point:
    def __init__(self, x: Any, unit: str) -> None:
        self.x, self.unit = x, unit


tosaic.register_tree(Point, lambda p: ((p.x,), p.unit), lambda unit, x: Point(x[0], unit), ("x",))


# ---- models --------------------------------------------------------------------------------------------------------
def models() -> None:
    with tosaic.Limits(nodes=10_000, bytes=1 << 28, seconds=10):
        model = tosaic.load("model.mlir", level="8K", context=tosaic.Context("a"))
    assert_type(model, tosaic.Model)
    assert_type(model.main, tosaic.Entry)
    assert_type(model["main"], tosaic.Entry)
    assert_type(list(model), list[tosaic.Entry])
    assert_type(model(X), Several)
    assert_type(model.main(X), Several)
    assert_type(model.main(x=X), Several)
    assert_type(model.main.lower(), tosaic.Lowered)
    assert_type(model.main.trace(), tosaic.Traced)
    step = model.main.compile(tosaic.CompileOptions(memory=tosaic.Memory(pools=(tosaic.Pool("sram", 1 << 20),))))
    assert_type(step, tosaic.Compiled[tosaic.Lowered])
    assert_type(step(X), Several)
    assert_type(step(x=X, out=X), Several)
    assert_type(step.report().arena, int)
    assert_type(step.lowered.report().lower_bound, int)
    assert_type(step.lowered.show("loops"), str)
    assert_type(step.inputs[0].shape, tuple[int | None, ...] | None)
    assert_type(model.main.inputs[0].scale, float | Array | None)
    assert_type(model.main.specialize({"x": (2, 3)}), tosaic.Entry)
    assert_type(model.main.check([[X]]).agrees, bool)
    step.lowered.save("build", "m")
    assert_type(tosaic.compile("model.mlir", options=tosaic.CompileOptions(target=tosaic.target("cortex-m4"))),
                tosaic.Compiled[tosaic.Lowered])
    assert_type(tosaic.from_tflite("model.tflite"), tosaic.Model)
    assert_type(tosaic.from_onnx("model.onnx"), tosaic.Model)
    assert_type(tosaic.from_tensorflow(abs, X), tosaic.Model)
    assert_type(tosaic.from_torch(abs, X), tosaic.Model)
    assert_type(tosaic.onnx.InferenceSession("model.onnx").run(None, {"x": X}), list[Array])
    assert_type(tosaic.planner.algorithms(), list[str])


# ---- state and threads ---------------------------------------------------------------------------------------------
def state() -> None:
    total = tosaic.Variable("total", initial=0.0)
    assert_type(total.read(), tosaic.Tensor | Any)
    total.write(1.0)
    assert_type(tosaic.default_context, tosaic.Context)
    assert_type(tosaic.default_context.read("total"), np.ndarray[Any, np.dtype[Any]])
    tosaic.set_num_threads(2)
    assert_type(tosaic.get_num_threads(), int)
    assert_type(tosaic.__version__, str)


# ---- one operator at a time ----------------------------------------------------------------------------------------
def op_by_op(handler: tosaic.OpHandler) -> None:
    runtime = tosaic.CoreRuntime()
    handle = runtime.tensor(X)
    assert_type(handle, tosaic.TensorHandle)
    assert_type(handle + handle, tosaic.TensorHandle)
    assert_type(tosaic.OpAttrs(), tosaic.OpAttrs)


@tosaic.custom("domain", "twice")
class Twice(tosaic.Op):
    def infer(self, x: Any) -> Any:
        return x

    def reference(self, x: Any) -> Any:
        return x * 2


# ---- errors --------------------------------------------------------------------------------------------------------
def errors() -> Sequence[type[tosaic.Problem]]:
    try:
        models()
    except tosaic.Problem as problem:
        assert_type(problem.help, str | None)
        assert_type(problem.message, str)
    return (tosaic.TypeProblem, tosaic.ValueProblem, tosaic.IndexProblem, tosaic.KeyProblem, tosaic.AttributeProblem)
