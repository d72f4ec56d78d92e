"""What the bridges to PyTorch and ONNX run in a process of its own: torch-mlir's passes, down to TOSA.

torch-mlir is native code that may abort, so that what it does to a model must not end the user's process. The request is one
JSON object in the first argument (`Request` in `torch_mlir`), the answer one on the standard output; the module lies in a file.
Nothing of tosaic is imported here.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PIPELINES = {
    "torch": "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline{extra-library=},"
             "torch-backend-to-tosa-backend-pipeline",
    "onnx": "torch-onnx-to-torch-backend-pipeline,torch-backend-to-tosa-backend-pipeline"}
MOST_DIAGNOSTICS = 20
MOST_CHARACTERS = 2000
"""Of one diagnostic: MLIR prints an operation with its constants."""


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.path[:] = request["path"]
    answer: dict[str, Any] = {"diagnostics": []}
    try:
        lower(request, answer)
    except Exception as error:
        answer["failure"] = f"{type(error).__name__}: {error}"[:MOST_CHARACTERS]
    print(json.dumps(answer))


def lower(request: Mapping[str, Any], answer: dict[str, Any]) -> None:
    """Write the module as TOSA; `answer` learns at once what there is to say."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.passmanager import PassManager

    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(taker(answer["diagnostics"], str(ir.DiagnosticSeverity.ERROR)))
    answer["step"] = "read"
    module = READERS[request["kind"]](request, context, answer)
    answer["step"] = "lower"
    with context:
        PassManager.parse(f"builtin.module({PIPELINES[request['kind']]},strip-debuginfo)").run(module)
    answer["step"] = "write"
    write(module, request["result"], request["is_text"])
    handler.detach()


def taker(found: list[dict[str, Any]], error: str) -> Callable[[Any], bool]:
    """A handler that keeps errors, where they are, and what is said with them."""
    def take(diagnostic: Any) -> bool:
        if str(diagnostic.severity) == error and len(found) < MOST_DIAGNOSTICS:
            found.append({"message": diagnostic.message[:MOST_CHARACTERS], "location": str(diagnostic.location)[:MOST_CHARACTERS],
                          "notes": [note.message[:MOST_CHARACTERS] for note in diagnostic.notes]})
        return True
    return take


def write(module: Any, path: str, is_text: bool) -> None:
    if is_text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(module.get_asm(enable_debug_info=False))
    else:
        with open(path, "wb") as file:
            module.write_bytecode(file)


# ---- PyTorch: a module in bytecode, of torch-mlir's own dialect ------------------------------------------------------------
def read_torch(request: Mapping[str, Any], context: Any, answer: dict[str, Any]) -> Any:
    from torch_mlir import ir
    with open(request["source"], "rb") as file:
        return ir.Module.parse(file.read(), context).operation


# ---- ONNX ------------------------------------------------------------------------------------------------------------------
def read_onnx(request: Mapping[str, Any], context: Any, answer: dict[str, Any]) -> Any:
    import onnx
    from torch_mlir.extras import onnx_importer

    model = onnx.load(request["source"])
    if not model.graph.node and not model.graph.output:
        raise ValueError("the model has no graph")
    with_shapes(model.graph, request["shapes"])
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True))
    graph = info.main_graph
    graph.graph_proto.name = "main"
    answer["inputs"], answer["outputs"] = list(graph.input_map), [value.name for value in graph.graph_proto.output]
    module = info.create_module(context=context).operation
    onnx_importer.NodeImporter.define_function(graph, module).import_all()
    return module


def with_shapes(graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Give inputs their shapes, and names of extents their values everywhere; what follows from shapes is inferred anew."""
    named: dict[str, int] = {}
    inputs = {value.name: value.type.tensor_type.shape for value in graph.input}
    for name, extents in shapes.items():
        if name not in inputs:
            raise LookupError(f"the model has no input named {name}; it has {', '.join(inputs)}")
        dims = inputs[name].dim
        if len(dims) != len(extents):
            raise LookupError(f"input {name} has rank {len(dims)}, and {list(extents)} was given")
        named.update((dim.dim_param, extent) for dim, extent in zip(dims, extents) if dim.dim_param)
        for dim, extent in zip(dims, extents):
            dim.dim_value = extent
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in named:
                dim.dim_value = named[dim.dim_param]


READERS: dict[str, Callable[[Mapping[str, Any], Any, dict[str, Any]], Any]] = {"torch": read_torch, "onnx": read_onnx}

if __name__ == "__main__":
    main()
