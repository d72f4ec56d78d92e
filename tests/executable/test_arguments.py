"""What is checked before native code sees an address, and what the messages say."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.runtime.arena import address, empty
from tosaic.runtime.arguments import Tensor
from tosaic.runtime.errors import Problem
from tosaic.runtime.executable import Executable

from .programs import Programs, add, copy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def added() -> Executable:
    p = Programs()
    x, y, r = p.input("x", (2, 3)), p.input("y", (2, 3)), p.output("sum", (2, 3))
    return p.load(p.compute(r, add, x, y))


@pytest.fixture(scope="module")
def inverted() -> Executable:
    """Copies a bool; used for how bytes are read."""
    p = Programs("flags")
    x, r = p.input("x", (4,), "bool"), p.output("r", (4,), "bool")
    return p.load(p.compute(r, copy, x))


def message(executable: Executable, *arguments: Any, out: Any = None) -> str:
    with pytest.raises(Problem) as caught:
        executable(*arguments, out=out)
    assert caught.value.kind == "argument"
    return str(caught.value)


def test_arrays_are_taken_in_order_and_by_name(added: Executable) -> None:
    assert np.array_equal(added(X, X * 2)[0], X * 3)
    assert np.array_equal(added({"y": X, "x": X * 4})[0], X * 5)


def test_the_executable_prints_its_signature(added: Executable) -> None:
    assert repr(added) == "<Executable main(x: tensor<2x3xf32>, y: tensor<2x3xf32>) -> (sum: tensor<2x3xf32>)>"


def test_a_wrong_number_of_inputs_is_refused(added: Executable) -> None:
    assert message(added, X) == ("error[argument]: main takes 2 inputs, got 1\n"
                                 "  help: its inputs: x: tensor<2x3xf32>, y: tensor<2x3xf32>")


def test_an_unknown_name_and_a_missing_one_are_refused(added: Executable) -> None:
    assert message(added, {"x": X, "z": X}) == (
        "error[argument]: main has no input named z\n  help: its inputs: x: tensor<2x3xf32>, y: tensor<2x3xf32>")
    assert message(added, {"x": X}) == (
        "error[argument]: input y of main is missing\n  help: its inputs: x: tensor<2x3xf32>, y: tensor<2x3xf32>")


def test_another_dtype_is_refused_and_both_types_are_named(added: Executable) -> None:
    assert message(added, X, X.astype(np.float64)) == (
        "error[argument]: input y of main must be tensor<2x3xf32>, got tensor<2x3xf64>\n"
        "  help: pass an array of dtype float32")
    assert "got tensor<2x3xcomplex64>" in message(added, X.astype(np.complex64), X)


def test_another_shape_is_refused(added: Executable) -> None:
    assert message(added, X, X[:1]) == (
        "error[argument]: input y of main must be tensor<2x3xf32>, got tensor<1x3xf32>\n"
        "  help: pass an array of shape (2, 3)")
    assert message(added, X.T.copy(), X) == (
        "error[argument]: input x of main must be tensor<2x3xf32>, got tensor<3x2xf32>\n"
        "  help: the number of elements is right: array.reshape(2, 3), if their order is")


@pytest.mark.parametrize(("value", "text"), [
    (3, "int 3"), ((1.0, 2.0), "tuple (1.0, 2.0)"), (None, "None"), ("abc", "str 'abc'"),
    (tuple(range(100)), "tuple (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11...")])
def test_what_is_no_array_is_refused(added: Executable, value: Any, text: str) -> None:
    assert message(added, X, value) == (
        f"error[argument]: input y of main must be an array of tensor<2x3xf32>, got {text}\n"
        "  help: pass numpy.asarray(..., dtype='float32'), of shape (2, 3)")


def test_a_masked_array_is_refused(added: Executable) -> None:
    assert message(added, np.ma.masked_less(X, 2), X) == (
        "error[argument]: input x of main is a masked array\n"
        "  help: say what stands for the masked elements: array.filled(value)")


def test_an_object_that_cannot_give_its_array_is_refused(added: Executable) -> None:
    class Broken:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("on another device")

        def __repr__(self) -> str:
            return "Broken()"

    assert message(added, Broken(), X) == (
        "error[argument]: input x of main must be an array of tensor<2x3xf32>, got Broken Broken(), which NumPy cannot "
        "take: on another device\n  help: pass a NumPy array")


def test_what_gives_an_array_without_a_copy_is_taken(added: Executable) -> None:
    class Holder:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return X

    frozen = X.copy()
    frozen.flags.writeable = False
    view = memoryview(X)
    assert np.array_equal(added(Holder(), frozen)[0], X * 2)
    assert np.array_equal(added(view, X)[0], X * 2)


def test_numpy_scalars_are_tensors_of_rank_0() -> None:
    p = Programs("scalar")
    x, r = p.input("x", (), "float64"), p.output("r", (), "float64")
    executable = p.load(p.compute(r, copy, x))
    result, = executable(np.float64(2.5))
    assert result.shape == () and result == 2.5
    assert message(executable, 2.5).startswith(
        "error[argument]: input x of scalar must be an array of tensor<f64>, got float 2.5")


def test_any_byte_but_0_is_true(inverted: Executable) -> None:
    x = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert inverted(x)[0].view(np.uint8).tolist() == [0, 1, 1, 1]


def test_brain_floats_go_in_and_out() -> None:
    p = Programs("brain")
    x, r = p.input("x", (3,), "bfloat16"), p.output("r", (3,), "bfloat16")
    executable = p.load(p.compute(r, copy, x))
    import ml_dtypes
    value = np.array([1.5, -2, 300], ml_dtypes.bfloat16)
    assert np.array_equal(executable(value)[0], value)
    assert "must be tensor<3xbf16>, got tensor<3xf16>" in message(executable, value.astype(np.float16))


def test_element_types_that_no_dtype_tells_are_printed_as_given() -> None:
    assert str(Tensor("w", "int8", (2, 2), "i4")) == "w: tensor<2x2xi4>"


# ---- out -------------------------------------------------------------------------------------------------------------
def test_out_receives_the_results_and_is_returned(added: Executable) -> None:
    for out in (np.zeros_like(X),), [np.zeros_like(X)]:
        assert added(X, X, out=out)[0] is out[0]
        assert np.array_equal(out[0], X * 2)
    single = np.zeros_like(X)
    assert added(X, X, out=single)[0] is single
    named = {"sum": np.zeros_like(X)}
    assert added(X, X, out=named)[0] is named["sum"]


def test_out_at_any_address_of_the_elements_alignment_is_right(added: Executable) -> None:
    memory = np.zeros(64, np.float32)
    for start in range(16):
        out = memory[start:start + 6].reshape(2, 3)
        added(X, X, out=out)
        assert np.array_equal(out, X * 2)
        memory[start:start + 6] = 0
        assert not memory.any()


@pytest.mark.parametrize(("out", "text", "help"), [
    ((), "main gives 1 output, got 0 in out", "its outputs: sum: tensor<2x3xf32>"),
    ({"total": X}, "main has no output named total", "its outputs: sum: tensor<2x3xf32>"),
    ([[1.0]], "out for sum of main must be an array of tensor<2x3xf32> to write to, got list [1.0]",
     "pass numpy.empty((2, 3), 'float32')"),
    (np.zeros((2, 3)), "out for sum of main must be tensor<2x3xf32>, got tensor<2x3xf64>",
     "pass an array of dtype float32"),
    (np.zeros((2, 6), np.float32)[:, ::2],
     "out for sum of main is not C-contiguous: its strides are (24, 8) bytes for shape (2, 3)",
     "pass numpy.ascontiguousarray(array)"),
    (np.frombuffer(bytes(24), np.float32).reshape(2, 3), "out for sum of main is read-only",
     "pass an array that may be written, or a copy")])
def test_a_wrong_out_is_refused(added: Executable, out: Any, text: str, help: str) -> None:
    assert message(added, X, X, out=out) == f"error[argument]: {text}\n  help: {help}"


def test_out_must_not_share_memory_with_an_input(added: Executable) -> None:
    memory = np.zeros(12, np.float32)
    x, overlapping, behind = (memory[i:i + 6].reshape(2, 3) for i in (0, 5, 6))
    assert message(added, X, x, out=overlapping) == (
        "error[argument]: out for sum of main shares memory with input y\n"
        "  help: pass an array of its own for each output")
    added(x, x, out=behind)


def test_outputs_must_not_share_memory_with_each_other() -> None:
    p = Programs("twice")
    x, a, b = p.input("x"), p.output("a"), p.output("b")
    executable = p.load(p.compute(a, copy, x), p.compute(b, copy, x))
    value, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    assert message(executable, value, out=(out, out)) == (
        "error[argument]: out for b of twice shares memory with output a\n"
        "  help: pass an array of its own for each output")
    assert all(np.array_equal(r, value) for r in executable(value))


def test_large_results_start_at_a_cache_line() -> None:
    p = Programs("large")
    x, r = p.input("x", (1 << 15,)), p.output("r", (1 << 15,))
    executable = p.load(p.compute(r, copy, x))
    results = [executable(np.zeros(1 << 15, np.float32))[0] for _ in range(5)]
    assert all(r.__array_interface__["data"][0] % 64 == 0 for r in results)


@pytest.mark.parametrize("place", [0, 16, 64, 2048, 3904, 4032])
def test_very_large_results_do_not_follow_an_input_closely(place: int) -> None:
    """By the lower bits of their addresses, where a load would wait for the store before."""
    p = Programs("very large")
    x, y, r = p.input("x", (1 << 18,)), p.input("y", (1 << 18,)), p.output("r", (1 << 18,))
    executable = p.load(p.compute(r, add, x, y))
    inputs = [empty((1 << 18,), np.float32, 4096, offset) for offset in (place, (place + 3900) % 4096)]
    for array in inputs:
        array[...] = 1
    result, = executable(*inputs)
    assert (result == 2).all() and address(result) % 64 == 0
    assert not any(0 < (address(result) - address(x)) % 4096 < 256 for x in inputs)
