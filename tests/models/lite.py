"""LiteRT as the tests' second opinion: reference kernels, every tensor kept."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


class Lite:
    """A .tflite model in LiteRT's interpreter, with its reference kernels (its optimised ones round depthwise convolutions
    differently). Tensors of variables are never read: that ends the process."""

    def __init__(self, model: bytes, keep: bool = True) -> None:
        self.interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
                                       experimental_preserve_all_tensors=keep)
        self.interpreter.allocate_tensors()
        self.inputs = [d["index"] for d in self.interpreter.get_input_details()]
        self.outputs = [d["index"] for d in self.interpreter.get_output_details()]

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        for index, array in zip(self.inputs, arrays, strict=True):
            self.interpreter.set_tensor(index, array)
        self.interpreter.invoke()
        return tuple(self.interpreter.get_tensor(i) for i in self.outputs)

    def activations(self, dtypes: Sequence[type] = (np.int8,)) -> dict[str, np.ndarray]:
        """Every int8 tensor that an operator computed in the last call, by name."""
        return {name: self.interpreter.get_tensor(i) for i, name, dtype in self.computed if dtype in dtypes}

    @cached_property
    def computed(self) -> list[tuple[int, str, type]]:
        """Index, name and dtype of what operators compute. Asked for once: LiteRT makes them anew each time."""
        details = {d["index"]: d for d in self.interpreter.get_tensor_details()}
        found = (details[int(i)] for o in self.interpreter._get_ops_details() for i in o["outputs"])
        return [(d["index"], d["name"], d["dtype"]) for d in found]
