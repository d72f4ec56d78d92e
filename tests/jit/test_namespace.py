"""`tosaic.tosa`: every operator of the table is a function of traced tensors."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.runtime.interpreter import interpret

generator = np.random.default_rng(0)
IMAGE = generator.standard_normal((1, 5, 5, 3)).astype(np.float32)
BYTES = generator.integers(-128, 128, (1, 5, 5, 3)).astype(np.int8)


def run(function: Any, *arrays: Any) -> Any:
    traced = tosaic.jit(function).trace(*arrays)
    results = interpret(traced.module, traced.function, arrays)
    return results[0] if len(results) == 1 else results


def test_every_operator_of_the_table_is_there() -> None:
    names = set(dir(tosaic.tosa))
    table = {name.removeprefix("tosa.") for name, op in OPERATORS.items()
             if name.startswith("tosa.") and not op.regions and not op.variable_effect}
    assert table - names == set() and len(names) > 60
    for name in names:
        function = getattr(tosaic.tosa, name)
        assert callable(function) and (function.__doc__ or name == "const_shape") and inspect.signature(function)


def test_a_function_has_the_signature_of_its_operator() -> None:
    assert str(inspect.signature(tosaic.tosa.transpose)).startswith("(x, *, perms")
    assert list(inspect.signature(tosaic.tosa.conv2d).parameters)[:3] == ["x", "weight", "bias"]


def test_operators_that_python_writes_otherwise_say_so() -> None:
    with pytest.raises(AttributeError, match=r"no operator cond_if, it is written tosaic\.cond"):
        print(tosaic.tosa.cond_if)
    with pytest.raises(AttributeError, match=r"no operator nothing\n"):
        print(tosaic.tosa.nothing)


def convolved(x: Any, weight: Any, stride: int = 1) -> Any:
    """A convolution without padding in NumPy: NHWC, weights OHWI."""
    outputs, height, width, _ = weight.shape
    rows, columns = (x.shape[1] - height) // stride + 1, (x.shape[2] - width) // stride + 1
    out = np.zeros((x.shape[0], rows, columns, outputs), x.dtype)
    for i in range(rows):
        for j in range(columns):
            patch = x[:, i * stride:i * stride + height, j * stride:j * stride + width]
            out[:, i, j] = np.tensordot(patch, weight, ((1, 2, 3), (1, 2, 3)))
    return out


def test_a_convolution_needs_only_what_differs_from_the_usual() -> None:
    weight = generator.standard_normal((4, 3, 3, 3)).astype(np.float32)
    plain = run(lambda x: tosaic.tosa.conv2d(x, weight, np.zeros(4)), IMAGE)
    np.testing.assert_allclose(plain, convolved(IMAGE, weight), rtol=1e-5, atol=1e-5)
    padded = run(lambda x: tosaic.tosa.conv2d(x, weight, [0.5], pad=(1, 1, 1, 1), stride=(2, 2)), IMAGE)
    wide = np.pad(IMAGE, ((0, 0), (1, 1), (1, 1), (0, 0)))
    np.testing.assert_allclose(padded, convolved(wide, weight, 2) + 0.5, rtol=1e-5, atol=1e-5)


def test_a_quantized_convolution_takes_zero_points() -> None:
    weight = generator.integers(-127, 128, (2, 1, 1, 3)).astype(np.int8)
    result = run(lambda x: tosaic.tosa.conv2d(x, weight, [10, 20], input_zp=-128), BYTES)
    assert result.dtype == np.int32
    expected = convolved(BYTES.astype(np.int32) + 128, weight.astype(np.int32)) + np.array([10, 20])
    np.testing.assert_array_equal(result, expected)


def test_rescale_and_table_take_lists() -> None:
    halved = run(lambda x: tosaic.tosa.rescale(x, [1 << 30], [31], to="i8"), BYTES)
    np.testing.assert_array_equal(halved, np.floor(BYTES / 2 + 0.5).astype(np.int8))
    table = np.arange(-128, 128)[::-1].astype(np.int8)
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.table(x, table), BYTES), ~BYTES)


def test_shapes_are_python_lists() -> None:
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.reshape(x, (25, -1)), IMAGE), IMAGE.reshape(25, 3))
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.slice(x, start=[0, 1, 1, 0], size=[1, 2, 3, 3]), IMAGE),
                                  IMAGE[:, 1:3, 1:4])
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.pad(x, [0, 0, 1, 1, 0, 0, 0, 0]), IMAGE),
                                  np.pad(IMAGE, ((0, 0), (1, 1), (0, 0), (0, 0))))
    doubled = run(lambda x: tosaic.tosa.resize(x, [2, 1, 2, 1], [0, 0], [1, 1], mode="nearest_neighbor"), IMAGE)
    assert doubled.shape == (1, 10, 10, 3)


def test_several_operands_and_numbers() -> None:
    twice = np.concatenate([IMAGE] * 2, 1)
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.concat(x, x, axis=1), IMAGE), twice)
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.concat([x, x], axis=1), IMAGE), twice)
    chosen = run(lambda x: tosaic.tosa.select(x > 0, 1.0, x), IMAGE)
    np.testing.assert_array_equal(chosen, np.where(IMAGE > 0, 1, IMAGE))
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.sub(1.0, x), IMAGE), 1 - IMAGE)
    np.testing.assert_array_equal(run(lambda x: tosaic.tosa.clamp(x, min_val=-1.0, max_val=1.0), IMAGE),
                                  np.clip(IMAGE, -1, 1))
    assert run(lambda x: tosaic.tosa.const([1, 2], "i8") + x, np.zeros(2, np.int8)).dtype == np.int8
    assert run(lambda x: tosaic.tosa.cast(x, to="i32"), IMAGE).dtype == np.int32


def test_wrong_uses_name_the_operator_and_the_line() -> None:
    def problem(function: Any) -> tosaic.Problem:
        with pytest.raises(tosaic.Problem) as found:
            run(function, IMAGE)
        assert found.value.position is not None and found.value.position.source.name == __file__
        return found.value

    assert problem(lambda x: tosaic.tosa.transpose(x)).message == "transpose needs the attribute perms"
    assert problem(lambda x: tosaic.tosa.conv2d(x)).message == "conv2d needs the operand weight"
    assert problem(lambda x: tosaic.tosa.abs(x, axis=1)).message == "abs has no attribute axis"
    assert problem(lambda x: tosaic.tosa.abs(x, x)).message == "abs takes 1 operands, not 2"
    text = problem(lambda x: tosaic.tosa.reduce_sum(x, axis="one")).message
    assert text == "attribute axis of reduce_sum is i32, not 'one'"
    assert "axis 7" in problem(lambda x: tosaic.tosa.reduce_sum(x, axis=7)).message
