"""Operations: every operator by its name, NumPy's names, constant operands, attributes; cpu against reference."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs
from tosaic.jit.op_by_op import operations
from tosaic.lowering.dialects import tosa as _  # noqa: F401  fills the table
from tosaic.lowering.graph.operator import OPERATORS

R = np.random.default_rng(3)
F = R.standard_normal((1, 4, 4, 2)).astype(np.float32)
M = R.standard_normal((1, 3, 4)).astype(np.float32)
I = R.integers(-50, 50, (2, 3)).astype(np.int32)
B = R.integers(-100, 100, (2, 3)).astype(np.int8)

CASES = {
    "tosa.add": ([F, F], {}), "tosa.sub": ([F, F], {}), "tosa.mul": ([I, I], {}), "tosa.maximum": ([F, -F], {}),
    "tosa.abs": ([F], {}), "tosa.exp": ([F], {}), "tosa.sigmoid": ([F], {}), "tosa.negate": ([F], {}),
    "tosa.clamp": ([F], {"min_val": -0.5, "max_val": 0.5}), "tosa.greater": ([F, -F], {}), "tosa.select": ([F > 0, F, -F], {}),
    "tosa.reduce_sum": ([F], {"axis": 1}), "tosa.reduce_max": ([F], {"axis": 2}), "tosa.argmax": ([F], {"axis": 3}),
    "tosa.transpose": ([M], {"perms": [0, 2, 1]}), "tosa.reverse": ([M], {"axis": 1}), "tosa.concat": ([M, M], {"axis": 1}),
    "tosa.matmul": ([M, np.ascontiguousarray(M.transpose(0, 2, 1))], {}), "tosa.identity": ([M], {}),
    "tosa.reshape": ([M], {"shape": [4, 3]}), "tosa.tile": ([M], {"multiples": [1, 2, 1]}),
    "tosa.slice": ([M], {"start": [0, 1, 0], "size": [1, 2, 3]}), "tosa.pad": ([M], {"padding": [0, 0, 1, 1, 0, 2]}),
    "tosa.conv2d": ([F, R.standard_normal((3, 3, 3, 2)).astype(np.float32), np.zeros(3, np.float32)], {"pad": [1, 1, 1, 1]}),
    "tosa.max_pool2d": ([F], {"kernel": [2, 2], "stride": [2, 2], "pad": [0, 0, 0, 0]}),
    "tosa.cast": ([I], {"to": np.dtype(np.float32)}), "tosa.logical_left_shift": ([I, np.abs(I) % 8], {}),
    "add": ([F, F[0, 0]], {}), "matmul": ([I.astype(np.float32), M[0][:, :3]], {}), "softmax": ([F], {}), "where": ([B > 0,
    B, -B], {}),
    "concatenate": ([M, M, M], {"axis": 2}), "stack": ([I, I], {}), "sum": ([F], {"axis": [1, 2], "keepdims": True}),
    "transpose": ([F], {"axes": [3, 0, 1, 2]}), "broadcast_to": ([I], {"shape": [4, 2, 3]}), "astype": ([F],
    {"dtype": np.dtype(np.int8)}),
    "clip": ([F], {"low": -1.0, "high": 1.0}), "expand_dims": ([I], {"axis": 1}), "multiply": ([B, B], {}),
}


def call(rt, op, arrays, attributes, handler):
    results = [None]
    rt.execute(op, handler, None, [rt.tensor(np.ascontiguousarray(a)) for a in arrays], OpAttrs(attributes), results)
    return results[0].get()


@pytest.mark.parametrize("op", CASES)
def test_compiled_operations_agree_with_the_reference(rt, op):
    arrays, attributes = CASES[op]
    found, wanted = (call(rt, op, arrays, attributes, handler) for handler in ("cpu", "reference"))
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_every_operator_of_the_specification_is_known_but_those_with_state_or_regions(rt):
    unknown = {name for name in OPERATORS if name.startswith("tosa.") and not operations.knows(name)}
    assert unknown <= operations.STATEFUL


def test_every_numpy_name_is_known(rt):
    assert all(operations.knows(name) for name in tosaic.ops.__all__)


def test_a_shape_as_an_argument_is_known_when_compiling(rt):
    for shape in ([4, 3], [2, 6]):
        found = call(rt, "tosa.reshape", [M, np.array(shape, np.int64)], {}, "cpu")
        assert np.array_equal(found, M.reshape(shape))


def test_a_pending_shape_makes_the_metadata_come_later(rt):
    pending, resolve = tosaic.TensorHandle.pending()
    results = [None]
    rt.execute("tosa.reshape", "cpu", None, [rt.tensor(M), pending], None, results)
    assert results[0].metadata is None
    resolve.set(np.array([4, 3]))
    assert np.array_equal(results[0].get(), M.reshape(4, 3))


@pytest.mark.parametrize("op, arrays, attributes, message", [
    ("sum", [F], {"axis": 9}, "axis 9"), ("tosa.add", [F], {}, "tosa.add"), ("sum", [F], {"nonsense": 1}, "nonsense"),
    ("add", [F, F, F], {}, "add"), ("tosa.reduce_sum", [F], {}, "axis"), ("tosa.add", [F, I], {}, "tosa.add")])
def test_a_wrong_call_is_an_error_that_names_the_operation(rt, op, arrays, attributes, message):
    results = [None]
    rt.execute(op, "cpu", None, [rt.tensor(a) for a in arrays], OpAttrs(attributes), results)
    assert results[0].is_error and message in results[0].error.message


def test_several_results_come_as_a_tuple(rt):
    first, second = rt.run("split", rt.tensor(F), sections=2, axis=1, outputs=2)
    assert np.array_equal(first.get(), F[:, :2]) and np.array_equal(second.get(), F[:, 2:])
    values, counts = rt.run("unique", rt.tensor([3, 1, 3]), outputs=2, return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [1, 2]
