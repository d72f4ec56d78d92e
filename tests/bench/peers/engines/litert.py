"""LiteRT with XNNPACK: timed at the native `Invoke` alone, inputs already in their tensors."""
from __future__ import annotations

from ai_edge_litert.interpreter import Interpreter

from ..task import Loaded, Task


def load(task: Task) -> Loaded:
    interpreter, arrays = Interpreter(task.file("tflite"), num_threads=task.threads), task.inputs()
    details = interpreter.get_input_details()
    for detail, array in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    return Loaded(interpreter._interpreter.Invoke, lambda: [interpreter.get_tensor(index) for index in outputs])
