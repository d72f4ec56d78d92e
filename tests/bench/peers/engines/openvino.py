"""OpenVINO's CPU plugin on the .tflite, f32 as f32 (its default where the machine has bf16 units is bf16), one stream."""
from __future__ import annotations

import numpy as np
import openvino as ov

from ..task import Loaded, Task


def load(task: Task) -> Loaded:
    core, arrays = ov.Core(), task.inputs()
    core.set_property({"CACHE_DIR": f"{task.kept}/openvino"})
    model = core.read_model(task.file("tflite"))
    if any(x.get_partial_shape().is_dynamic for x in model.inputs):
        model.reshape({x: a.shape for x, a in zip(model.inputs, arrays, strict=True)})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": task.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for index, array in enumerate(arrays):
        request.set_input_tensor(index, ov.Tensor(array, shared_memory=True))
    infer = super(ov.InferRequest, request).infer  # without the wrapper that reads every output into an array
    infer({}, True, False)
    return Loaded(lambda: infer({}, True, False),
                  lambda: [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))], arrays)
