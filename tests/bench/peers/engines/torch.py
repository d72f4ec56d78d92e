"""PyTorch, eager: the same mathematics in its own functions, with Keras' weights; networks come through ONNX (onnx2torch) as a
traced, frozen module optimised for inference. With the option `inductor`, `torch.compile` with frozen weights instead.

int8 products write i32: PyTorch has no product that rescales. Their results are rescaled for the comparison only.
"""
from __future__ import annotations

import importlib
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..rescale import rescaled
from ..task import Loaded, Refused, Task

Function = Callable[..., Any]


def imports(task: Task) -> None:
    """The converter imports torchvision, for two operators that no model here has."""
    if task.family == "network" and not task.is_quantised:
        operators, vision = types.ModuleType("torchvision.ops"), types.ModuleType("torchvision")
        operators.roi_align = vision.ops = operators  # type: ignore[attr-defined]
        sys.modules.update({"torchvision": vision, "torchvision.ops": operators})
        importlib.import_module("onnx2torch")
    if task.option == "inductor":
        importlib.import_module("torch._inductor.compile_fx")


def tensors(task: Task) -> dict[str, torch.Tensor]:
    with np.load(task.file("npz")) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays.files if arrays[name].dtype != np.float64}


def product(task: Task) -> Function:
    w = tensors(task)["kernel"]
    if task.is_quantised:
        return lambda x: torch._int_mm(x, w.T)
    out = torch.empty(w.shape)
    return lambda x: torch.matmul(x, w, out=out)


def chain(task: Task) -> Function:
    def run(x: torch.Tensor) -> torch.Tensor:
        x = torch.clamp_min(x * 1.5 + 0.25, 0.0)
        return torch.clamp_max(x * x - 0.125, 6.0)
    return run


def encoder(task: Task) -> Function:
    w = tensors(task)
    width, (_, heads, each) = w["up0"].shape[0], w["query0"].shape
    query, key, value = ((w[f"{n}0"].reshape(width, -1).T.contiguous(), w[f"{n}1"].reshape(-1))
                         for n in ("query", "key", "value"))
    out = w["output0"].reshape(-1, width).T.contiguous(), w["output1"]
    up, down = ((w[f"{n}0"].T.contiguous(), w[f"{n}1"]) for n in ("up", "down"))

    def run(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (F.linear(x, *weights).view(1, -1, heads, each).transpose(1, 2) for weights in (query, key, value))
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        y = F.layer_norm(x + F.linear(attended, *out), (width,), w["first0"], w["first1"], 1e-5)
        h = F.linear(F.gelu(F.linear(y, *up), approximate="tanh"), *down)
        return F.layer_norm(y + h, (width,), w["second0"], w["second1"], 1e-5)
    return run


def lstm(task: Task) -> Function:
    w, cells = tensors(task), []
    for layer in "01":
        cell = torch.nn.LSTMCell(w[f"kernel{layer}"].shape[0], 128)
        cell.weight_ih.copy_(w[f"kernel{layer}"].T)
        cell.weight_hh.copy_(w[f"recurrent{layer}"].T)
        cell.bias_ih.copy_(w[f"bias{layer}"])
        cell.bias_hh.zero_()
        cells.append(cell)
    states: list[Any] = [None, None]

    def run(x: torch.Tensor) -> torch.Tensor:
        x = x[0]
        for i, cell in enumerate(cells):
            states[i] = cell(x, states[i])
            x = states[i][0]
        return torch.softmax(F.linear(x, w["kernel"].T, w["bias"]), -1)
    return run


def network(task: Task) -> Function:
    """A module from ONNX."""
    if task.is_quantised:
        raise Refused("no way from an int8 .tflite")
    from onnx2torch import convert
    module = convert(task.file("onnx")).eval()
    if task.option:
        return module
    traced = torch.jit.freeze(torch.jit.trace(module, tuple(map(torch.from_numpy, task.inputs()))))
    return torch.jit.optimize_for_inference(traced)


FAMILIES: dict[str, Callable[[Task], Function]] = {
    "product": product, "chain": chain, "encoder": encoder, "lstm": lstm, "network": network,
    "transcendental": lambda task: lambda x: torch.exp(torch.tanh(x) * torch.sigmoid(x) * 0.5),
    "softmax": lambda task: lambda x: torch.softmax(x, -1),
    "layer_norm": lambda task: lambda x: F.layer_norm(x, x.shape[-1:], eps=1e-5)}


@torch.inference_mode()
def load(task: Task) -> Loaded:
    torch.set_num_threads(task.threads)
    warnings.simplefilter("ignore")
    logging.disable()
    function, inputs = FAMILIES[task.family](task), [torch.from_numpy(a) for a in task.inputs()]
    if task.option == "inductor":
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{task.kept}/inductor"
        import torch._inductor.config as config
        config.freezing = True
        function = torch.compile(function)
    last: list[Any] = []

    @torch.inference_mode()
    def call() -> None:
        last[:] = [function(*inputs)]

    def outputs() -> list[np.ndarray]:
        found = last[0] if isinstance(last[0], list | tuple) else last
        arrays = [tensor.numpy().copy() for tensor in found]
        return [rescaled(arrays[0], task.file("npz"))] if task.is_quantised else arrays

    call()
    return Loaded(call, outputs)
