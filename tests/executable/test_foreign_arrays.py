"""Objects of other libraries as inputs and outputs, over their own memory."""
from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tosaic.runtime.arena import address
from tosaic.runtime.errors import Problem
from tosaic.runtime.executable import Executable
from tosaic.runtime.foreign_arrays import borrowed

from .programs import Programs, copy

X = np.arange(6, dtype=np.float32)
BYTES = X.tobytes()


class Dlpack:
    """A tensor of a library of which only DLPack is known."""

    def __init__(self, owner: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.owner, self.device = owner, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.owner.__dlpack__(**options)


class Interface:
    """An object of which only NumPy's `__array_interface__` is known."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    @property
    def __array_interface__(self) -> Any:
        return self.owner.__array_interface__


class OldDlpack:
    """A bfloat16 tensor as libraries before DLPack 1.0 hand it over: a capsule without a version."""

    def __init__(self, owner: Any, strides: tuple[int, ...] | None = None) -> None:
        from tosaic.runtime import dlpack
        self.owner = owner
        shape = (ctypes.c_int64 * owner.ndim)(*owner.shape)
        strided = (ctypes.c_int64 * owner.ndim)(*strides) if strides else None
        self.tensor = dlpack.Tensor(owner.ctypes.data - 2, dlpack.Device(1, 0), owner.ndim, dlpack.Element(4, 16, 1), shape,
                                    strided, 2)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def mapped() -> mmap.mmap:
    memory = mmap.mmap(-1, 24)
    memory[:] = BYTES
    return memory


def six_floats() -> Any:
    return (ctypes.c_float * 6)(*X)


WRITABLE: dict[str, Callable[[], Any]] = {
    "dlpack": lambda: Dlpack(X.copy()), "interface": lambda: Interface(X.copy()), "bytearray": lambda: bytearray(BYTES),
    "memoryview": lambda: memoryview(X.copy()), "memoryview of bytes": lambda: memoryview(bytearray(BYTES)),
    "array.array": lambda: array.array("f", X), "mmap": mapped, "ctypes": six_floats}


@pytest.fixture(scope="module")
def copied() -> Executable:
    p = Programs("copied")
    x, r = p.input("x", (6,)), p.output("r", (6,))
    return p.load(p.compute(r, copy, x))


@pytest.fixture(scope="module")
def square() -> Executable:
    p = Programs("square")
    x, r = p.input("x", (2, 3)), p.output("r", (2, 3))
    return p.load(p.compute(r, copy, x))


def problem(call: Callable[[], Any]) -> str:
    with pytest.raises(Problem) as caught:
        call()
    assert caught.value.kind == "argument"
    return str(caught.value)


@pytest.mark.parametrize("kind", WRITABLE)
def test_an_object_is_read_where_it_is(copied: Executable, kind: str) -> None:
    value = WRITABLE[kind]()
    first = copied(value)[0]
    seen = borrowed(value)
    seen.view(np.uint8)[0:4] = np.frombuffer(np.float32(-7).tobytes(), np.uint8)
    assert first.tolist() == X.tolist() and copied(value)[0].tolist() == [-7, *X[1:]]


@pytest.mark.parametrize("kind", WRITABLE)
def test_an_object_is_written_where_it_is_and_is_the_result(copied: Executable, kind: str) -> None:
    out = WRITABLE[kind]()
    result, = copied(X + 1, out=out)
    assert result is out
    assert borrowed(out).tobytes() == (X + 1).tobytes()
    assert copied(X + 2, out={"r": out})[0] is out and borrowed(out).tobytes() == (X + 2).tobytes()


def test_what_is_read_only_goes_in_and_not_out(copied: Executable) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    for value in (BYTES, memoryview(BYTES), memoryview(frozen), Interface(frozen)):
        assert copied(value)[0].tolist() == X.tolist()
        assert problem(lambda v=value: copied(X, out=v)) == (  # type: ignore[misc]
            "error[argument]: out for r of copied is read-only\n  help: pass an array that may be written, or a copy")


def test_bytes_and_flat_arrays_have_the_shape_of_the_input(square: Executable) -> None:
    for value in (BYTES, bytearray(BYTES), mapped(), array.array("f", X)):
        assert square(value)[0].tolist() == X.reshape(2, 3).tolist()
    out = bytearray(24)
    square(BYTES, out=out)
    assert out == BYTES


def test_objects_of_another_size_or_type_are_refused(square: Executable) -> None:
    assert problem(lambda: square(BYTES[:20])) == (
        "error[argument]: input x of square must be tensor<2x3xf32>, got tensor<20xui8>\n"
        "  help: pass an array of dtype float32")
    assert "got tensor<6xi32>" in problem(lambda: square(array.array("i", range(6))))
    assert "got tensor<6xf32>" in problem(lambda: square(six_floats()))


def test_complex_arrays_are_pairs_of_floats() -> None:
    p = Programs("pairs")
    x, r = p.input("x", (3, 2)), p.output("r", (3, 2))
    executable = p.load(p.compute(r, copy, x))
    z = X.view(np.complex64)
    out = np.zeros_like(z)
    assert executable(z, out=out)[0] is out and np.array_equal(out, z)
    assert "got tensor<3xcomplex128>" in problem(lambda: executable(z.astype(np.complex128)))
    assert np.array_equal(executable(np.repeat(z, 2)[::2])[0].view(np.complex64)[..., 0], z)


def test_out_shares_no_memory_with_an_input_of_another_library(copied: Executable) -> None:
    memory = bytearray(BYTES)
    assert problem(lambda: copied(memory, out=memory)) == (
        "error[argument]: out for r of copied shares memory with input x\n"
        "  help: pass an array of its own for each output")


def test_a_tensor_on_a_device_is_refused_with_what_to_do(copied: Executable) -> None:
    for number, name in ((2, "CUDA"), (10, "ROCm"), (99, "of type 99")):
        text = problem(lambda n=number: copied(Dlpack(X, (n, 3))))  # type: ignore[misc]
        assert f"NumPy cannot take: its elements are on the device {name}:3\n  help: copy it to the CPU first: tensor." in text

    class OnlyCuda:
        __cuda_array_interface__: dict[str, Any] = {}

    assert "its elements are on a CUDA device\n  help: copy it to the CPU first" in problem(lambda: copied(OnlyCuda()))


def test_what_copies_is_no_output(copied: Executable) -> None:
    class Copies:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            if copy is False:
                raise ValueError("a copy is needed")
            return X.copy()

    assert copied(Copies())[0].tolist() == X.tolist()
    assert "NumPy cannot take: a copy is needed" in problem(lambda: copied(X, out=Copies()))


@pytest.mark.parametrize("strides", [None, (8, 1), (1, 2)])
def test_narrow_floats_come_by_dlpack(strides: tuple[int, int] | None) -> None:
    memory = np.arange(16).astype(ml_dtypes.bfloat16)
    owner = memory[:6].reshape(2, 3)
    found = borrowed(OldDlpack(owner, strides))
    expected = np.lib.stride_tricks.as_strided(owner, strides=[2 * s for s in strides] if strides else None)
    assert found.dtype == ml_dtypes.bfloat16 and address(found) == address(memory)
    assert np.array_equal(found, expected) and found.strides == expected.strides
    memory[0] = 100
    assert found[0, 0] == 100


def test_elements_without_a_dtype_are_refused() -> None:
    value = OldDlpack(np.zeros(4, np.int16))
    value.tensor.dtype.bits = 12
    from tosaic.runtime.foreign_arrays import Unreadable
    with pytest.raises(Unreadable, match="DLPack's type 4, 12 bits, 1 lanes"):
        borrowed(value)


def test_tensors_of_pytorch_go_in_and_out() -> None:
    torch = pytest.importorskip("torch")
    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "bool", "int64"):
        tensor = torch.arange(6).to(getattr(torch, name))
        p = Programs(name)
        x, r = p.input("x", (6,), name), p.output("r", (6,), name)
        executable = p.load(p.compute(r, copy, x))
        assert address(borrowed(tensor)) == tensor.data_ptr()
        out = torch.zeros_like(tensor)
        assert executable(tensor, out=out)[0] is out and torch.equal(out.float(), tensor.float())
    p = Programs("shared")
    x, r = p.input("x", (6,)), p.output("r", (6,))
    result, = p.load(p.compute(r, copy, x))(torch.arange(6.0))
    shared = torch.from_dlpack(result)
    shared[0] = 9
    assert result[0] == 9 and shared.data_ptr() == address(result)
    assert "help: pass tensor.detach()" in problem(lambda: p.load(p.compute(r, copy, x))(torch.zeros(6, requires_grad=True)))
