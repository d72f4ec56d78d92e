"""Tensors of numbers, of strings, and scalar ones, made from Python."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem
from tosaic.runtime.op_by_op.logging_handler import tensor_text

X = np.arange(4, dtype=np.float32).reshape(2, 2)


@pytest.mark.parametrize("given", [["a", "b"], [b"a", b"b"], np.array(["a", "b"]), np.array([b"a", b"b"]),
                                   np.array(["a", "b"], object)], ids=["text", "bytes", "U", "S", "object"])
def test_strings_are_a_tensor_of_bytes(rt, given):
    handle = rt.tensor(given)
    assert handle.get().tolist() == [b"a", b"b"] and handle.shape == (2,)
    assert tensor_text(handle) == 'StringHostTensor shape = [2], values = ["a", "b"]'
    assert str(handle.metadata) == "tensor<2xstring>"


def test_strings_are_kept_byte_by_byte_whatever_they_hold(rt, capsys):
    given = [["", "a\0", "ä"], [b"\xff", b"\x1b[2J", b"\0\0"]]
    handle = rt.tensor(given)
    assert handle.get().tolist() == [[b"", b"a\0", "ä".encode()], [b"\xff", b"\x1b[2J", b"\0\0"]]
    rt.run("print", handle, outputs=0)
    rt.wait()
    assert "\x1b" not in capsys.readouterr().out
    with pytest.raises(ValueError):
        handle.get()[0, 0] = b"x"


def test_strings_pass_through_operations_that_take_them(rt):
    rt.register("test.join", lambda call: np.array(b"".join(call.arrays[0].reshape(-1)), object))
    assert rt.run("test.join", rt.tensor(["a", "b"])).get().tolist() == b"ab"
    later = rt.run("async.noop", rt.tensor(["a", "b"]))
    assert rt.run("test.join", later).get().tolist() == b"ab"


@pytest.mark.parametrize("op", ["tosa.abs", "tf.Neg", "exp", "tosa.add", "tf.AddV2", "add"])
def test_an_operation_on_numbers_refuses_strings_at_the_callers_line(rt, op):
    operands = [rt.tensor(["a", "b"])] * (2 if "dd" in op else 1)
    with pytest.raises(Problem, match=f"operand 0 of {op} is tensor<2xstring>") as caught:
        rt.run(op, *operands)
    assert caught.value.position is not None and caught.value.position.source.name == __file__


@pytest.mark.parametrize("given", [["a", 1], [None], [{}], np.array([1, "a"], object)])
def test_what_is_neither_numbers_nor_strings_is_no_tensor(rt, given):
    with pytest.raises(Problem, match=r"a tensor of strings has the element|is no tensor"):
        rt.tensor(given)


def test_a_scalar_tensor_prints_one_value_and_is_taken_like_a_dense_one(rt):
    scalar = rt.scalar_tensor(2.5, (2, 2))
    assert tensor_text(scalar) == "ScalarHostTensor dtype = f32, shape = [2, 2], value = 2.500000e+00"
    for left, right in ((X, scalar), (scalar, X), (scalar, scalar), (X, X)):
        a, b = (v if isinstance(v, tosaic.TensorHandle) else rt.tensor(v) for v in (left, right))
        for op in ("add", "tosa.add", "tf.AddV2"):
            found = rt.run(op, a, b)
            assert np.array_equal(found.get(), np.asarray(a) + np.asarray(b))
            assert tensor_text(found).startswith("DenseHostTensor")


def test_a_scalar_tensor_becomes_a_dense_one_by_an_operation(rt):
    found = rt.run("to_dense", rt.scalar_tensor(7, (3,)))
    assert found.get().tolist() == [7, 7, 7] and tensor_text(found).startswith("DenseHostTensor dtype = i32")
    with pytest.raises(Problem, match="no numbers"):
        rt.run("to_dense", rt.tensor(["a"])).get()


@pytest.mark.parametrize("value, dtype, wanted", [(True, None, "bool"), (3, None, "int32"), (0.5, None, "float32"),
                                                  (1, "i8", "int8"), (1.5, "bf16", "bfloat16"), (1.5, np.float16, "float16")])
def test_a_scalar_tensor_has_the_type_that_is_asked_for(rt, value, dtype, wanted):
    assert rt.scalar_tensor(value, (2,), dtype).get().dtype.name == wanted


@pytest.mark.parametrize("type, dtype", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_half_floats_are_attributes_rounded_to_their_type(rt, type, dtype):
    attributes = OpAttrs()
    attributes.set("a", 1.0009765625 * 1.001, type)
    assert attributes.get("a", type) == float(dtype(1.0009765625 * 1.001))
    assert OpAttrs({"x": dtype(0.1), "l": [dtype(1), dtype(2)]}).get("x", type) == float(dtype(0.1))
    assert OpAttrs({"l": [dtype(1), dtype(2)]}).get_array("l", type) == (1.0, 2.0)
    assert OpAttrs({"x": dtype(0.5)}).freeze() != OpAttrs({"x": np.float32(0.5)}).freeze()
    with pytest.raises(Problem):
        attributes.set("b", "text", type)


def test_operators_take_half_floats_as_attributes(rt):
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.array([-2, -0.5, 0.25, 3], dtype)
        found = rt.run("tosa.clamp", x, min_val=dtype(-1), max_val=dtype(0.1))
        assert found.get().tolist() == np.clip(x.astype(np.float32), -1, np.float32(dtype(0.1))).tolist()
