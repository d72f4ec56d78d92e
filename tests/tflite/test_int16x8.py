"""Operators on integers of two bytes have the elements of LiteRT's reference kernels, bit for bit."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from .files import Tensor
from .int16x8 import FAMILIES, Array, Draw, made, one

SEEDS = 3
OPTIMISED = ("SUM",)
"""The reference kernel adds without the scales, so that the optimised one is compared."""
UNEQUAL = {
    "SUM": "the kernel rounds twice, TOSA's sums are rescaled once",
    "RSQRT": "the kernel's root of integers is a series of its own; ours is that of float32, rounded",
    "RESIZE_BILINEAR": "the kernel rounds places to 1/1024 of a row, RESIZE has them exactly"}
"""What is not equal, and why."""
EVERY = np.arange(-1 << 15, 1 << 15).astype(np.int16)


def litert(data: bytes, inputs: list[Array], resolver: OpResolverType) -> Array:
    lite = Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    lite.allocate_tensors()
    for detail, array in zip(lite.get_input_details(), inputs, strict=True):
        lite.set_tensor(detail["index"], array)
    lite.invoke()
    found: Array = lite.get_tensor(lite.get_output_details()[0]["index"])
    return found


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.xfail(reason=UNEQUAL[kind])) if kind in UNEQUAL else kind for kind in FAMILIES])
def test_an_operator_has_the_elements_of_the_kernel(kind: str) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if kind in OPTIMISED else OpResolverType.BUILTIN_REF
    for seed in range(SEEDS):
        data, inputs = made(kind, seed)
        np.testing.assert_array_equal(tosaic.from_tflite(data)(*inputs), litert(data, inputs, resolver), f"seed {seed}")


@pytest.mark.parametrize("scale", [2.0 ** -12, 2.0 ** -11, 3.1e-4, 1e-4, 2e-3, 0.3])
@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
def test_sigmoid_functions_have_the_kernel_s_result_of_every_operand(kind: str, scale: float) -> None:
    operand, result = Tensor("x", EVERY.shape, "i16", None, scale), Tensor("y", EVERY.shape, "i16", None, 2.0 ** -15)
    data, _ = one(kind, [operand], result, (), Draw(0))
    np.testing.assert_array_equal(tosaic.from_tflite(data)(EVERY), litert(data, [EVERY], OpResolverType.BUILTIN_REF))
