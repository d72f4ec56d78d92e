"""An ONNX file -> torch-mlir's own dialect, in the process of `torch_mlir_process`: the file is read, given its shapes,
brought to operators that torch-mlir knows (`onnx_rewrites`), and imported. Nothing of tosaic is imported here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .onnx_graph import Wrong
from .onnx_rewrites import CHANGED_SINCE, WANTED_OPSET, converted, open_negative_extents, opset_of, rewrite

RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
REFUSED = {"float64": "which TOSA does not have",
           **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "whose upper half would become negative")}


def attempts(request: Mapping[str, Any]) -> Sequence[Any]:
    """Ways to read the model: as it is, and with operators of a newer version; old ones, which have other meanings, as newer
    ones where that can be."""
    def as_it_is(context: Any, answer: dict[str, Any]) -> Any:
        return imported(loaded(request["source"], request["shapes"]), context, answer)

    def newer(context: Any, answer: dict[str, Any]) -> Any:
        model = loaded(request["source"], request["shapes"])
        return imported(converted(model) or model, context, answer)

    import onnx
    try:
        version = opset_of(onnx.load(request["source"], load_external_data=False))
    except Exception:  # `loaded` says what is wrong with it
        version = WANTED_OPSET
    if version >= WANTED_OPSET:
        return [as_it_is]
    return [as_it_is, newer] if version >= CHANGED_SINCE else [newer]


def imported(model: Any, context: Any, answer: dict[str, Any]) -> Any:
    """The model in torch-mlir's own dialect."""
    from torch_mlir.extras import onnx_importer

    rewrite(model)
    info = onnx_importer.ModelInfo(inferred(model))
    graph = info.main_graph
    check(graph.graph_proto)
    graph.graph_proto.name = "main"
    answer["inputs"] = [described(value) for value in graph.input_map.values()]
    answer["results"] = [described(value) for value in graph.graph_proto.output]
    module = info.create_module(context=context).operation
    onnx_importer.NodeImporter.define_function(graph, module).import_all()
    return module


def inferred(model: Any) -> Any:
    import onnx
    return onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True)


def loaded(path: str, shapes: Mapping[str, Sequence[int]]) -> Any:
    """The model of a file, with these shapes of inputs and what follows from them."""
    import onnx
    try:
        model = onnx.load(path)
    except Exception as error:
        raise Wrong(f"it is no ONNX model, or is damaged: {error}", "file", None) from None
    if not model.graph.output or not model.opset_import:
        raise Wrong("it is no ONNX model: there is no graph in it", "file", None)
    open_negative_extents(model)
    with_shapes(model.graph, shapes)
    return inferred(model)


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
