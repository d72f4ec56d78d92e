"""A conversion as users have it: torch-mlir in a new process, which is given the way to its packages."""
from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tosaic
from tosaic.jit.models.torch_mlir import process
from tosaic.jit.models.torch_mlir.to_tosa import ConversionRequest

pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")


def test_a_module_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra `torch`)")
    module, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU()), torch.ones(2, 8)
    np.testing.assert_allclose(tosaic.from_torch(module, x)(x), module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
@pytest.mark.parametrize("first", ["tensorflow", pytest.param("torch_mlir.ir", marks=pytest.mark.long)])
def test_pytorch_and_tensorflow_in_one_process(first: str) -> None:
    """In a process of their own: two LLVMs that find each other's options end it."""
    pytest.importorskip("torch", reason="PyTorch is not installed (the extra `torch`)")
    code = f"""
import {first}, numpy, tensorflow, torch, tosaic
x = numpy.ones((1, 2), numpy.float32)
module, function = torch.nn.ReLU(), tensorflow.function(lambda x: x * 2)
print(tosaic.from_torch(module, torch.zeros(1, 2))(x).tolist(), tosaic.from_tensorflow(function, x)(x).tolist())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[[1.0, 1.0]] [[2.0, 2.0]]\n"


def test_the_process_is_told_all_in_its_last_argument(tmp_path: pathlib.Path) -> None:
    request = ConversionRequest(tmp_path / "m.mlirbc", "m")
    *command, told = request.command(tmp_path / "result", True)
    assert command == [sys.executable, "-S", process.__file__]
    fields = json.loads(told)
    assert fields.pop("path") and fields == {
        "source": str(tmp_path / "m.mlirbc"), "result": str(tmp_path / "result"), "is_text": True}
