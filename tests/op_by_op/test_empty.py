"""Tensors without elements, as `unique`, `nonzero` and indices give them: operators take them, and nothing is compiled."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import Problem, TensorHandle

Z = np.zeros((0, 3), np.float32)
X = np.arange(12, dtype=np.float32).reshape(4, 3)
HANDLERS = pytest.mark.parametrize("handler", ["cpu", "reference"])

SAME_AS_NUMPY = {
    "add": lambda z, x: z + z, "a number": lambda z, x: z * 2, "broadcast": lambda z, x: z + x[:1], "negate": lambda z, x: -z,
    "compare": lambda z, x: z < z, "astype": lambda z, x: z.astype(np.int32), "sum of all": lambda z, x: z.sum(),
    "sum to nothing": lambda z, x: z.sum(axis=1), "sum of nothing": lambda z, x: z.sum(axis=0),
    "sum kept": lambda z, x: z.sum(axis=0, keepdims=True), "max to nothing": lambda z, x: z.max(axis=1),
    "matmul": lambda z, x: z @ x.T, "matmul of nothing": lambda z, x: z.T @ z, "transpose": lambda z, x: z.T,
    "reshape": lambda z, x: z.reshape(3, 0), "ravel": lambda z, x: z.ravel(), "slice": lambda z, x: x[:0],
    "slice behind the end": lambda z, x: x[7:, 1], "slice of nothing": lambda z, x: z[:, 0],
    "and back": lambda z, x: z.sum(axis=0) + x[0]}


@HANDLERS
@pytest.mark.parametrize("case", SAME_AS_NUMPY)
def test_operators_on_tensors_without_elements_give_what_numpy_gives(rt, handler, case):
    rt.use(handler)
    function = SAME_AS_NUMPY[case]
    found, wanted = function(rt.tensor(Z), rt.tensor(X)), function(Z, X)
    assert found.metadata is not None and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert np.array_equal(found.get(), wanted)


@HANDLERS
@pytest.mark.parametrize("op, operands, attributes, wanted", [
    ("concatenate", [Z, X], {"axis": 0}, X), ("stack", [Z, Z], {}, np.stack([Z, Z])), ("take", [X, np.zeros(0, np.int32)],
     {"axis": 0}, Z),
    ("where", [Z > 0, Z, Z], {}, Z), ("softmax", [Z], {}, Z), ("exp", [Z], {}, Z), ("prod", [Z], {"axis": 0}, np.ones(3, "f4")),
    ("all", [Z > 0], {"axis": 0}, np.ones(3, bool)), ("any", [Z > 0], {"axis": 0}, np.zeros(3, bool)),
    ("mean", [Z], {"axis": 0}, np.full(3, np.nan, "f4")), ("expand_dims", [Z], {"axis": 0}, Z[None]), ("logsumexp", [Z],
     {"axis": 0}, np.full(3, -np.inf, "f4")),
    ("tosa.add", [Z, Z], {}, Z), ("tosa.reduce_sum", [Z], {"axis": 0}, np.zeros((1, 3), "f4")),
    ("tosa.concat", [Z, X], {"axis": 0}, X),
    ("tosa.pad", [Z], {"padding": [1, 0, 0, 0]}, np.zeros((1, 3), "f4")), ("tosa.transpose", [Z], {"perms": [1, 0]}, Z.T)])
def test_operations_on_tensors_without_elements(rt, handler, op, operands, attributes, wanted):
    rt.use(handler)
    found = rt.run(op, *operands, **attributes)
    assert found.metadata is not None and found.dtype == wanted.dtype
    assert np.array_equal(found.get(), wanted, equal_nan=True) and found.shape == wanted.shape


@pytest.mark.parametrize("op, attributes, message", [
    ("max", {"axis": 0}, "max: zero-size array to reduction operation maximum"),
    ("argmax", {"axis": 0}, "argmax: attempt to get argmax"),
    ("reshape", {"shape": [2, 2]}, "cannot reshape array of size 0"), ("sum", {"axis": 5}, "axis 5"),
    ("tosa.reduce_max", {"axis": 0}, "tosa.reduce_max: zero-size array")])
def test_what_there_is_not_of_nothing_is_an_error_at_once(rt, diagnostics, op, attributes, message):
    pending, resolve = TensorHandle.pending(rt.tensor(Z).metadata)
    with pytest.raises(Problem, match=message) as caught:
        rt.run(op, pending, **attributes)
    assert caught.value.kind in ("shape", "argument") and len(diagnostics) == 1
    resolve.set(Z)


def test_shapes_that_do_not_broadcast_are_an_error(rt):
    with pytest.raises(Problem, match="add"):
        rt.tensor(Z) + rt.tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(Problem):
        rt.tensor(Z) @ rt.tensor(X)


def test_results_that_depend_on_data_feed_operators_whatever_they_find(rt):
    for x in (np.zeros(4, np.float32), np.array([0, 2, 0, 3], np.float32)):
        places = rt.run("nonzero", rt.tensor(x)) + 1
        assert np.array_equal(places.get(), np.nonzero(x)[0] + 1)
        assert rt.run("unique", rt.tensor(x[x > 0])).sum().item() == x.sum()
    assert rt.run("unique", rt.tensor(Z)).shape == (0,)


def test_no_code_is_made_of_nothing(rt, monkeypatch):
    from tosaic.jit.stages import Traced

    def compile(*_, **__):
        raise AssertionError("it is compiled")

    monkeypatch.setattr(Traced, "compile", compile)
    z = rt.tensor(Z)
    assert (z + z).shape == (0, 3) and z.sum().item() == 0.0 and np.array_equal((z.T @ z).get(), np.zeros((3, 3)))


def test_a_region_refuses_tensors_without_elements(rt):
    with pytest.raises(Problem, match="add cannot be recorded: a tensor here has no elements"), rt.capture():
        rt.tensor(Z) + rt.tensor(Z)
    with pytest.raises(Problem, match="getitem cannot be recorded"), rt.capture():
        rt.tensor(X)[:0]
