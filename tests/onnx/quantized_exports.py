"""Exported networks as `onnxruntime.quantization` makes integers of them, in its five ways: scales that inputs give; scales by
tensor and by channel, as pairs of QuantizeLinear and DequantizeLinear; operators of integers; weights of four bits by block.

Weights with a sign have seven bits in static ways: the runtime multiplies them by bytes without one, and without VNNI the sum
of two such products saturates at 16 bits.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

WAYS = ("dynamic", "tensors", "channels", "operators", "blocks", "block pairs")
"""Blocks are MatMulNBits; block pairs are DequantizeLinear with a block size, of which opset 21 is the first."""
PAIRS = ("tensors", "channels")
STATIC = (*PAIRS, "operators")
LEAST_OPSET = {"channels": 13, "block pairs": 21}
TYPES = {"dynamic": ("QUInt8", "QInt8"), "tensors": ("QUInt8", "QInt8"), "channels": ("QInt8", "QInt8"),
         "operators": ("QUInt8", "QUInt8")}
"""Of activations and of weights."""
Arrays = dict[str, np.ndarray]


class Reader:
    """The arrays that static ways see first."""

    def __init__(self, calls: Sequence[Arrays]) -> None:
        self.rest = iter(calls)

    def get_next(self) -> Arrays | None:
        return next(self.rest, None)


def quantized(source: Path, target: Path, way: str, calls: Sequence[Arrays]) -> None:
    """Write a file's network as integers."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    logging.disable(logging.ERROR)
    prepared = source.with_name(f"{source.stem}-prepared.onnx")
    if not prepared.exists():
        prepare(source, prepared)
    if way.startswith("block"):
        return by_blocks(prepared, target, way)
    activation, weight = (QuantType[t] for t in TYPES[way])
    if way == "dynamic":
        return quantize_dynamic(prepared, target, weight_type=weight, reduce_range=True)
    form = QuantFormat.QOperator if way == "operators" else QuantFormat.QDQ
    quantize_static(prepared, target, Reader(calls), quant_format=form, per_channel=way == "channels",
                    activation_type=activation, weight_type=weight, reduce_range=weight == QuantType.QInt8)


def prepare(source: Path, target: Path) -> None:
    """As the tools advise: shapes inferred, constants folded; by ONNX's inference alone where the tools' own fails."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    try:
        quant_pre_process(source, target)
    except Exception:  # whatever their symbolic inference ends in
        quant_pre_process(source, target, skip_symbolic_shape=True)


def by_blocks(source: Path, target: Path, way: str) -> None:
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    form = QuantFormat.QOperator if way == "blocks" else QuantFormat.QDQ
    made = MatMulNBitsQuantizer(str(source), algo_config=DefaultWeightOnlyQuantConfig(
        block_size=16, is_symmetric=False, quant_format=form))
    made.process()
    made.model.save_model_to_file(str(target))


def last_step(path: str, output: str) -> float | None:
    """The scale of an output that a DequantizeLinear gives; None where it is computed in floats."""
    import onnx
    from onnx import numpy_helper
    graph = onnx.load(path).graph
    makers: dict[str, Any] = {name: node for node in graph.node for name in node.output}
    scales = {t.name: t for t in graph.initializer}
    node = makers.get(output)
    while node is not None and node.op_type in ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice"):
        node = makers.get(node.input[0])
    if node is None or node.op_type != "DequantizeLinear" or node.input[1] not in scales:
        return None
    return float(numpy_helper.to_array(scales[node.input[1]]).max())
