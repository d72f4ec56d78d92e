"""Operators on integers of two bytes have the elements of LiteRT's reference kernels, bit for bit, but for two."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from .files import Tensor
from .int16x8 import FAMILIES, Array, Draw, made, one

SEEDS = 3
EVERY = np.arange(-1 << 15, 1 << 15).astype(np.int16)


def litert(data: bytes, inputs: list[Array], resolver: OpResolverType = OpResolverType.BUILTIN_REF) -> Array:
    lite = Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    lite.allocate_tensors()
    for detail, array in zip(lite.get_input_details(), inputs, strict=True):
        lite.set_tensor(detail["index"], array)
    lite.invoke()
    found: Array = lite.get_tensor(lite.get_output_details()[0]["index"])
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [kind for kind in FAMILIES if kind not in ("SUM", "RSQRT")])
def test_an_operator_has_the_elements_of_the_kernel(kind: str) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    for seed in range(SEEDS):
        data, inputs = made(kind, seed)
        np.testing.assert_array_equal(tosaic.from_tflite(data)(*inputs), litert(data, inputs), f"seed {seed}")


def test_a_sum_is_at_most_one_step_from_that_of_the_optimised_kernel() -> None:
    """The reference kernel adds without the scales. The optimised one multiplies by the scale in float32, ours in integers."""
    pytest.importorskip("tosa_converter_for_tflite")
    for seed in range(4 * SEEDS):
        data, inputs = made("SUM", seed)
        right = litert(data, inputs, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        np.testing.assert_allclose(tosaic.from_tflite(data)(*inputs).astype(int), right, rtol=0, atol=1, err_msg=f"seed {seed}")


def test_a_root_s_reciprocal_is_at_most_one_step_from_the_exact_number() -> None:
    """The kernel is many steps from it, because it keeps 20 bits behind the point whatever the scales are."""
    for seed in range(4 * SEEDS):
        data, (x,) = made("RSQRT", seed)
        lite = Interpreter(model_content=data)
        operand, result = (details()[0]["quantization"][0] for details in (lite.get_input_details, lite.get_output_details))
        right = np.round(1 / np.sqrt(x * operand) / result).clip(-1 << 15, (1 << 15) - 1)
        np.testing.assert_allclose(tosaic.from_tflite(data)(x).astype(int), right, rtol=0, atol=1, err_msg=f"seed {seed}")


@pytest.mark.parametrize("scale", [2.0 ** -12, 2.0 ** -11, 3.1e-4, 1e-4, 2e-3, 0.3])
@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
def test_sigmoid_functions_have_the_kernel_s_result_of_every_operand(kind: str, scale: float) -> None:
    operand, result = Tensor("x", EVERY.shape, "i16", None, scale), Tensor("y", EVERY.shape, "i16", None, 2.0 ** -15)
    data, _ = one(kind, [operand], result, (), Draw(0))
    np.testing.assert_array_equal(tosaic.from_tflite(data)(EVERY), litert(data, [EVERY]))
