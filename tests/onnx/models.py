"""Models of one node, held against ONNX Runtime (or results that the test gives) on both engines."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  NumPy knows bfloat16
import numpy as np
import tosaic
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tosaic.lowering.dialects.onnx.interpret import interpret

Arrays = Sequence[Any]


def one_node(op: str, inputs: Sequence[Any], attributes: Mapping[str, Any], opset: int, domain: str = "", outputs: int = 1,
             constants: Sequence[int] = ()) -> ModelProto:
    """A model of one node for inputs like these (None: left out), those numbered in `constants` bound to their values."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    infos = [helper.make_tensor_value_info(name, element(array), array.shape) for i, (name, array) in
             enumerate(zip(names, inputs)) if array is not None and i not in constants]
    bound = [numpy_helper.from_array(inputs[i], names[i]) for i in constants if inputs[i] is not None]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    graph = helper.make_graph([node], "one", infos, [helper.make_empty_tensor_value_info(r) for r in results], bound)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=min(10, helper.find_min_ir_version_for(
        [helper.make_opsetid("", opset)])) if opset < 24 else 10)


def element(array: Any) -> int:
    return TensorProto.BFLOAT16 if array.dtype.name == "bfloat16" else helper.np_dtype_to_tensor_dtype(array.dtype)


def runtime_results(model: ModelProto, arrays: Arrays) -> list[Any]:
    """What ONNX Runtime gives, its rewrites off."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)}))


def agree(model: ModelProto, arrays: Arrays, wanted: Arrays | None = None, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Both engines give what ONNX Runtime gives, in dtype, shape and value; `wanted` where it has no kernel."""
    right = runtime_results(model, arrays) if wanted is None else wanted
    found = tosaic.from_onnx(model)
    compiled = found(*arrays)
    for engine, results in (("interpreted", interpret(found.module, "main", arrays)), ("compiled", compiled)):
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) == len(right), engine
        for number, (a, b) in enumerate(zip(results, right)):
            a = np.asarray(a)
            assert (a.dtype, a.shape) == (b.dtype, b.shape), \
                f"{engine}, result {number}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            wide = np.float64 if b.dtype.kind in "fV" else b.dtype
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol, atol, err_msg=f"{engine}, result {number}")
