"""Objects of other libraries as arguments of traced functions and of models' entries."""
from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.errors import Problem

X = np.arange(6, dtype=np.float32)
DOUBLES = """
func.func @main(%x: tensor<{}xf32>) -> tensor<{}xf32> {{
  %y = tosa.add %x, %x : (tensor<{}xf32>, tensor<{}xf32>) -> tensor<{}xf32>
  return %y : tensor<{}xf32> }}"""


class Dlpack:
    """A tensor of a library of which only DLPack is known."""

    def __init__(self, owner: Any, device: int = 1) -> None:
        self.owner, self.device = owner, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.owner.__dlpack__(**options)


def test_a_traced_function_takes_objects_by_their_own_types() -> None:
    @tosaic.jit
    def double(x: Any) -> Any:
        return x + x

    objects = {"float32": Dlpack(X), "uint8": bytes(range(6)), "int32": array.array("i", range(6)),
               "int16": (ctypes.c_int16 * 6)(*range(6)), "int8": memoryview(X.astype(np.int8))}
    for name, value in objects.items():
        result = double(value)
        assert result.dtype == name and result.tolist() == (X * 2).tolist()
    assert len(double.cache_info().signatures) == len(objects)
    assert double(X).tolist() == (X * 2).tolist() and len(double.cache_info().signatures) == len(objects)


def test_a_traced_function_sees_what_the_owner_writes() -> None:
    double = tosaic.jit(lambda x: x + x)
    memory = bytearray(6)
    assert double(memory).tolist() == [0] * 6
    memory[2] = 5
    assert double(memory).tolist() == [0, 0, 10, 0, 0, 0]


def test_objects_may_stand_in_nests_and_beside_arrays() -> None:
    @tosaic.jit
    def joined(state: Any, more: Any) -> Any:
        return {"sum": state["a"] + state["b"][0] * more}

    result = joined({"a": Dlpack(X), "b": [array.array("f", X)]}, X)
    assert result["sum"].tolist() == (X + X * X).tolist()


def test_strided_objects_are_copied_as_strided_arrays_are() -> None:
    double = tosaic.jit(lambda x: x + x)
    wide = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert double(Dlpack(wide[:, ::2])).tolist() == (2 * wide[:, ::2]).tolist()
    assert double(Dlpack(wide.T)).tolist() == (2 * wide.T).tolist()


def test_what_cannot_be_read_is_refused_with_what_to_do() -> None:
    double = tosaic.jit(lambda x: x + x)
    with pytest.raises(Problem) as caught:
        double(Dlpack(X, 2))
    assert "argument x of <lambda> is a Dlpack that cannot be read: its elements are on the device CUDA:0" in str(
        caught.value).replace("anonymous", "<lambda>")
    assert caught.value.help is not None and "tensor.cpu()" in caught.value.help
    with pytest.raises(Problem, match="is a str, which is no tensor"):
        double("text")
    assert double(b"").shape == (0,)


def test_entries_take_objects_and_write_to_them() -> None:
    model = tosaic.load(DOUBLES.format(*(6,) * 6))
    out = bytearray(24)
    for value in (Dlpack(X), X.tobytes(), array.array("f", X)):
        assert model.main(value).tolist() == (2 * X).tolist()
        assert model.main(x=value, out=out) is out
        assert np.frombuffer(out, np.float32).tolist() == (2 * X).tolist()
    compiled = model.main.compile()
    assert compiled(Dlpack(X), out=(out,)) is out


def test_entries_with_open_extents_take_objects_that_have_a_shape() -> None:
    model = tosaic.load(DOUBLES.format(*"??????"))
    assert model.main(Dlpack(X)).tolist() == (2 * X).tolist()
    assert model.main(array.array("f", X)).tolist() == (2 * X).tolist()
    with pytest.raises(Problem) as caught:
        model.main(X.tobytes())
    assert str(caught.value) == ("error[argument]: input x of main is a bytes, which has no shape\n"
                                 "  help: numpy.frombuffer(value, dtype).reshape(shape) has one")


def test_tensors_of_pytorch_are_arguments() -> None:
    torch = pytest.importorskip("torch")
    double = tosaic.jit(lambda x: x + x)
    for name in ("float32", "bfloat16", "int32", "int8"):
        tensor = torch.arange(6).to(getattr(torch, name))
        assert double(tensor).astype(np.float32).tolist() == (2 * X).tolist()
    shared = torch.from_dlpack(result := double(torch.arange(6.0)))
    shared[0] = 9
    assert result[0] == 9
    with pytest.raises(Problem) as caught:
        double(torch.zeros(3, requires_grad=True))
    assert caught.value.help == "pass tensor.detach()"
