"""ONNX Runtime on what tf2onnx makes of the .tflite, inputs and outputs bound."""
from __future__ import annotations

import numpy as np
import onnxruntime as ort

from ..task import Loaded, Task


def load(task: Task) -> Loaded:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = task.threads, 1, 4
    session = ort.InferenceSession(task.file("onnx"), options, providers=["CPUExecutionProvider"])
    binding, arrays = session.io_binding(), task.inputs()
    for node, array in zip(session.get_inputs(), arrays, strict=True):
        binding.bind_ortvalue_input(node.name, ort.OrtValue.ortvalue_from_numpy(array))
    for node in session.get_outputs():
        binding.bind_output(node.name, "cpu")
    session.run_with_iobinding(binding)
    results = binding.get_outputs()
    for node, value in zip(session.get_outputs(), results):
        binding.bind_ortvalue_output(node.name, value)
    return Loaded(lambda: session.run_with_iobinding(binding), lambda: [np.array(value.numpy()) for value in results], arrays)
