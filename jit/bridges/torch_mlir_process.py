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


class Wrong(Exception):
    """What is wrong with a model or its arguments: a message, the kind of the problem, what to do."""


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.path[:] = request["path"]
    answer: dict[str, Any] = {"diagnostics": []}
    try:
        lower(request, answer)
    except Wrong as wrong:
        answer["problem"] = wrong.args
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
        make_constants(module)
    answer["step"] = "write"
    write(module, request["result"], request["is_text"])
    handler.detach()


def taker(found: list[dict[str, Any]], error: str) -> Callable[[Any], bool]:
    """A handler that keeps errors, where they are, and what is said with them."""
    def take(diagnostic: Any) -> bool:
        if str(diagnostic.severity) == error and len(found) < MOST_DIAGNOSTICS:
            texts = [diagnostic.message, str(diagnostic.location), *(note.message for note in diagnostic.notes)]
            message, location, *notes = [text[:MOST_CHARACTERS] for text in texts]
            found.append({"message": message, "location": location, "notes": notes})
        return True
    return take


def make_constants(module: Any) -> None:
    """Constants of tensors that are left in another dialect become TOSA's."""
    from torch_mlir import ir
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "arith.constant" and isinstance(operation.results[0].type, ir.RankedTensorType):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for operation in found:
        with ir.InsertionPoint(operation), operation.location:
            new = ir.Operation.create("tosa.const", [operation.results[0].type],
                                      attributes={"values": operation.attributes["value"]})
        operation.results[0].replace_all_uses_with(new.results[0])
        operation.erase()


def write(module: Any, path: str, is_text: bool) -> None:
    if is_text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(module.get_asm(enable_debug_info=False, print_generic_op_form=True))
    else:
        with open(path, "wb") as file:
            module.write_bytecode(file)


# ---- PyTorch: a module in bytecode, of torch-mlir's own dialect ------------------------------------------------------------
def read_torch(request: Mapping[str, Any], context: Any, answer: dict[str, Any]) -> Any:
    from torch_mlir import ir
    with open(request["source"], "rb") as file:
        return ir.Module.parse(file.read(), context).operation


# ---- ONNX ------------------------------------------------------------------------------------------------------------------
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
REFUSED = {"float64": "which TOSA does not have",
           **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "whose upper half would become negative")}


def read_onnx(request: Mapping[str, Any], context: Any, answer: dict[str, Any]) -> Any:
    import onnx
    from torch_mlir.extras import onnx_importer

    model = loaded(request["source"])
    with_shapes(model.graph, request["shapes"])
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True))
    graph = info.main_graph
    check(graph.graph_proto)
    graph.graph_proto.name = "main"
    answer["inputs"] = [described(value) for value in graph.input_map.values()]
    answer["results"] = [described(value) for value in graph.graph_proto.output]
    module = info.create_module(context=context).operation
    onnx_importer.NodeImporter.define_function(graph, module).import_all()
    return module


def loaded(path: str) -> Any:
    import onnx
    try:
        model = onnx.load(path)
    except Exception as error:
        raise Wrong(f"it is no ONNX model, or is damaged: {error}", "file", None) from None
    if not model.graph.output or not model.opset_import:
        raise Wrong("it is no ONNX model: there is no graph in it", "file", None)
    return model


def described(value: Any) -> tuple[str, list[int | None], str]:
    """Name, extents (None: open) and element type of an input or an output."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise Wrong(f"{value.name} is no tensor", "unsupported", "inputs and outputs must be tensors")
    if not tensor.HasField("shape"):  # torch-mlir would take its rank for 0
        raise Wrong(f"the rank of {value.name} is not known", "unsupported", "give the inputs' shapes: shapes={...}")
    extents = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return value.name, extents, element(tensor.elem_type)


def element(number: int) -> str:
    """NumPy's name of an ONNX element type."""
    import onnx
    return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)


def check(graph: Any) -> None:
    """Refuse what torch-mlir would lower to something else: random numbers become constants, unsigned integers signed ones."""
    for node in graph.node:
        if node.op_type in RANDOM:
            raise Wrong(f"node {node.name or node.output[0]}, {node.op_type}, makes random numbers, a graph has none",
                        "unsupported", "make them an input")
    types = [(value.name, value.type.tensor_type.elem_type) for value in (*graph.input, *graph.output, *graph.value_info)]
    types += [(tensor.name, tensor.data_type) for tensor in graph.initializer]
    for name, number in types:
        if number and element(number) in REFUSED:
            raise Wrong(f"{name} is {element(number)}, {REFUSED[element(number)]}", "unsupported",
                        "make the model one of float32, or of signed integers")


def with_shapes(graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Give inputs their shapes, and names of extents their values; what follows from shapes is then inferred anew."""
    if not shapes:
        return
    named: dict[str, int] = {}
    inputs = {value.name: value.type.tensor_type for value in graph.input}
    for name, extents in shapes.items():
        if name not in inputs:
            raise Wrong(f"the model has no input named {name}", "argument", f"its inputs: {', '.join(inputs)}")
        if not inputs[name].HasField("shape"):
            for _ in extents:
                inputs[name].shape.dim.add()
        dims = inputs[name].shape.dim
        if len(dims) != len(extents) or any(d.HasField("dim_value") and d.dim_value != n for d, n in zip(dims, extents)):
            raise Wrong(f"input {name} cannot be of shape {extents}", "argument", "its extents in the model: " + ", ".join(
                str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims))
        named.update((dim.dim_param, extent) for dim, extent in zip(dims, extents) if dim.dim_param)
        for dim, extent in zip(dims, extents):
            dim.dim_value = extent
    del graph.value_info[:]
    for dim in (d for value in (*graph.input, *graph.output) for d in value.type.tensor_type.shape.dim):
        if dim.dim_param in named:
            dim.dim_value = named[dim.dim_param]
    for dim in (d for value in graph.output for d in value.type.tensor_type.shape.dim if d.dim_param):
        dim.ClearField("dim_param")


READERS: dict[str, Callable[[Mapping[str, Any], Any, dict[str, Any]], Any]] = {"torch": read_torch, "onnx": read_onnx}

if __name__ == "__main__":
    main()
