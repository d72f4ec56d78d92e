"""TensorFlow's operations by their names, op by op: every one that is a function of tensors, natively compiled, against what
the interpreter of the dialect says that it means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem
from tosaic.jit.op_by_op.tensorflow_operations import in_mlir
from tosaic.lowering.dialects.tf.legalizations import LEGALIZATIONS
from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf.references import REFERENCES
from tosaic.lowering.graph.graph import Operation, Value
from tosaic.lowering.graph.types import Array, tensor_type
from tosaic.lowering.rewrite.tensorflow.one_operation import is_function

from .tensorflow_cases import CASES, COMPLEX, CONV, DEPENDS_ON_DATA, IMAGE, OTHERS, F, G, I, i32


def executed(rt: tosaic.CoreRuntime, name: str, arrays: list[Array], attributes: dict[str, Any], count: int) -> list[Array]:
    results: list[Any] = [None] * count
    rt.execute(f"tf.{name}", "cpu", None, [rt.tensor(np.array(a, order="C")) for a in arrays], OpAttrs(attributes), results)
    return [r.get() for r in results]


def meaning(name: str, arrays: list[Array], attributes: dict[str, Any]) -> list[Array]:
    """What the dialect's interpreter says."""
    if name == "Const":
        return [attributes["value"]]
    properties = {k: in_mlir(k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()}
    count = attributes.get("num_split", attributes.get("num", 5 if "BatchNorm" in name else 1))
    if name in ("IdentityN", "ShapeN", "ConcatOffset", "TopKV2", "BroadcastGradientArgs"):
        count = 2
    if name == "Cast":
        return [arrays[0].astype(attributes["DstT"])]
    if name == "Bitcast":
        return [arrays[0].view(attributes["type"])]
    operands = tuple(Value(f"a{n}", tensor_type(a)) for n, a in enumerate(arrays))
    indices = {"ArgMax": np.int64, "ArgMin": np.int64} | dict.fromkeys(("Shape", "ShapeN", "Size", "Rank"), np.int32)
    type = tensor_type(np.zeros((), indices.get(name, arrays[-1].dtype)))
    operation = Operation(
        TensorFlowOp(spelling=f"tf.{name}", properties=properties), operands, tuple(Value(f"r{n}", type) for n in range(count))
    )
    with np.errstate(all="ignore"):
        found = REFERENCES[f"tf.{name}"](operation, *arrays)
    return [np.asarray(x) for x in (found if isinstance(found, tuple | list) else (found,))][:count]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_an_operation_of_tensorflow_gives_what_its_reference_gives(rt, name):
    arrays, attributes = CASES[name]
    right = meaning(name, arrays, attributes)
    found = executed(rt, name, arrays, attributes, len(right))
    for mine, wanted in zip(found, right, strict=True):
        assert (mine.dtype, mine.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(mine.astype(np.float64), wanted.astype(np.float64), rtol=2e-5, atol=2e-6)


def test_every_operation_of_tensorflow_that_is_a_function_of_tensors_has_a_case():
    names = {name.removeprefix("tf.") for name in LEGALIZATIONS if is_function(name)}
    assert names - COMPLEX - DEPENDS_ON_DATA - OTHERS == set(CASES)


@pytest.mark.parametrize("name", sorted(DEPENDS_ON_DATA))
def test_an_operation_without_a_lowering_says_so_at_the_callers_line(rt, name):
    with pytest.raises(Problem) as caught:
        rt.run(f"tf.{name}", F[0], F[0])
    assert f"tf.{name}" in caught.value.message and caught.value.position is not None
    assert caught.value.position.source.name == __file__


@pytest.mark.parametrize(
    "op, arrays, attributes, message",
    [
        ("tf.AddV2", [F, G[:, :3]], {}, "do not broadcast"),
        ("tf.MatMul", [F, G], {}, "tf.MatMul"),
        ("tf.AddV2", [F], {}, "1 operands"),
        ("tf.AddV2", [F, I], {}, "tf.AddV2"),
        ("tf.Split", [i32(1), F], {}, "needs the attribute num_split"),
        ("tf.Split", [i32(1), F], {"num_split": 3}, "tf.Split"),
        ("tf.Reshape", [F, i32(3, 3)], {}, "cannot be reshaped"),
        ("tf.Transpose", [F, i32(0, 0)], {}, "tf.Transpose"),
        ("tf.Sum", [F, i32(5)], {}, "axis 5"),
        ("tf.Conv2D", [IMAGE, IMAGE], CONV, "tf.Conv2D"),
        ("tf.Conv2D", [IMAGE, IMAGE], {}, "tf.Conv2D"),
        ("tf.RFFT", [F[0], i32([4])], {}, "complex"),
        ("tf.Cast", [F], {"DstT": len}, "DstT"),
    ],
)
def test_a_wrong_call_is_an_error_at_the_callers_line(rt, op, arrays, attributes, message):
    with pytest.raises(Problem, match=message) as caught:
        rt.run(op, *arrays, **attributes)
    assert caught.value.position is not None and caught.value.position.source.name == __file__


def test_a_signature_is_compiled_once(rt):
    for n in range(5):
        assert np.array_equal(rt.run("tf.AddV2", F, G + n).get(), F + (G + n))
        assert np.array_equal(rt.run("tf.Sum", F * n, i32([1])).get().shape, (2,))
    assert rt.cpu.kernels.compiles == 2


def test_a_region_takes_operations_of_tensorflow(rt):
    x, axis = rt.tensor(F), rt.tensor(i32([1]))
    with rt.capture() as region:
        y = rt.run("tf.Sum", rt.run("tf.Square", x) + 1, axis)
    assert np.allclose(y.get(), (F * F + 1).sum(1), rtol=1e-5)
    assert np.allclose(region.compile(y, inputs=[x])(G), (G * G + 1).sum(1), rtol=1e-5)


def test_pending_operands_and_axes_wait(rt):
    x, give_x = tosaic.TensorHandle.pending()
    axis, give_axis = tosaic.TensorHandle.pending()
    y = rt.run("tf.Sum", x, axis)
    give_x.set(F)
    give_axis.set(i32([0]))
    assert np.allclose(y.get(), F.sum(0), rtol=1e-5)
