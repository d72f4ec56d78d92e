"""Regions: operations are recorded, compiled as one program, and give what they give one by one."""
from __future__ import annotations

import threading

import numpy as np
import pytest
from tosaic import Problem

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.ones((4, 2), np.float32)


def test_a_region_gives_what_its_operations_give(rt):
    x, w, b = rt.tensor(X), rt.tensor(W), rt.tensor(np.float32(0.5))
    with rt.capture() as region:
        y = x @ w + b
        z = y.sum(axis=0)
        assert not y.is_ready and y.shape == (3, 2) and z.metadata.shape == (2,)
    assert np.allclose(y.get(), X @ W + 0.5) and np.allclose(z.get(), (X @ W + 0.5).sum(0))
    assert np.allclose((x @ w + b).get(), y.get()) and len(region.steps) == 3 and len(region.inputs) == 3


def test_only_what_is_still_wanted_is_computed(rt):
    x = rt.tensor(X)
    with rt.capture() as region:
        y = (x + x) * x
        x - x
    compiled = region.compile(y)
    assert np.allclose(y.get(), 2 * X * X) and len(compiled.lowered.kernels.kernels) == 1


def test_a_region_is_a_function_of_its_inputs(rt):
    x, w = rt.tensor(X), rt.tensor(W)
    with rt.capture() as region:
        y = x @ w
    both, only = region.compile(y), region.compile(y, inputs=[x])
    assert np.allclose(both(X + 1, W * 2), (X + 1) @ (W * 2)) and np.allclose(only(X + 1), (X + 1) @ W)


def test_shape_errors_are_raised_while_recording(rt):
    x = rt.tensor(X)
    with pytest.raises(Problem, match="matmul"), rt.capture():
        y = x + x
        x @ x
    assert "the region was left by an error" in y.error.message


def test_what_is_not_compiled_is_refused_in_a_region(rt):
    with pytest.raises(Problem, match="unique cannot be recorded"), rt.capture():
        rt.run("unique", rt.tensor(X))


def test_an_error_as_input_is_the_result(rt):
    bad = rt.run("async.noop", rt.tensor(X))
    bad.wait()
    rt.cancel()
    error = rt.run("add", bad, bad)
    rt.restart()
    with rt.capture():
        y = error + bad
        z = bad * 2
    assert y.error is error.error and np.array_equal(z.get(), 2 * X)


def test_an_input_that_becomes_an_error_spoils_what_needs_it_alone(rt):
    rt.register("test.fail", lambda call: 1 / 0, lambda inputs, _: inputs, is_long=True)
    x, bad = rt.tensor(X), rt.run("test.fail", rt.tensor(X))
    with rt.capture():
        y, z = x + bad, x + x
    assert y.error is bad.error and np.array_equal(z.get(), 2 * X)


def test_other_threads_run_as_ever(rt):
    x, found = rt.tensor(X), []
    with rt.capture() as region:
        thread = threading.Thread(target=lambda: found.append((x + x).is_ready))
        thread.start()
        thread.join()
        y = x + x
        assert not y.is_ready
    assert found == [True] and len(region.steps) == 1 and y.is_ready


def test_a_region_inside_a_region_is_its_own(rt):
    x = rt.tensor(X)
    with rt.capture() as outer:
        with rt.capture() as inner:
            y = x + x
        z = y * x
    assert len(outer.steps) == len(inner.steps) == 1 and np.array_equal(z.get(), 2 * X * X)


def test_after_a_region_operators_run_at_once(rt):
    x = rt.tensor(X)
    with rt.capture():
        x + x
    assert (x + x).is_ready and (x + x).is_ready and rt.quick


def test_shapes_and_axes_are_constants_of_a_region(rt):
    x, shape, axis = rt.tensor(np.arange(6, dtype=np.float32)), rt.tensor(np.array([2, 3])), rt.tensor(np.array([0], np.int32))
    with rt.capture() as region:
        y = rt.run("tf.Sum", rt.run("tosa.reshape", x, shape) * 2, axis)
    assert y.tolist() == [6, 10, 14]
    assert region.compile(y, inputs=[x])(np.ones(6, np.float32)).tolist() == [4, 4, 4]
