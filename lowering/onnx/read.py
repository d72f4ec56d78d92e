"""An ONNX model as a module of `onnx` operations: its graph is the function `main`, its own functions are inlined where they
are called, subgraphs are regions, weights are `onnx.Constant` operations whose data stays in the mapped file.
"""
from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...runtime import limits
from ...runtime.errors import Position, Problem, Source
from ..dialects.onnx.element_types import element_of
from ..dialects.onnx.node import CONSTANT, NO_VALUE, NONE, OPSETS, PREFIX, PRODUCER, UNTYPED, OnnxOp
from ..dialects.onnx.operators import OPERATORS
from ..dialects.tosa.custom import IMPLEMENTATIONS
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.types import F32, I64, OpaqueType, TensorType, Type
from ..text.attributes import Attribute, Dense, Number, Numbers
from .cut_weights import cut_weights
from .function_bodies import function_body, inferred_types
from .tensors import STRING, Weights

AI_ONNX = ("", "ai.onnx")
DEEPEST = 64
"""Maximum nesting depth of functions that call each other, and of subgraphs in subgraphs."""
Scope = dict[str, Value]


def read_model(data: bytes | memoryview, name: str, folder: Path | None = None) -> Module:
    """Return the module of a file's bytes; files with weights are looked for in `folder`. Raise a Problem if the file is no
    ONNX model."""
    onnx = the_package()
    view = memoryview(data)
    cut = cut_weights(view)
    try:
        model = onnx.ModelProto.FromString(cut.message)
    except Exception as error:  # protobuf's own
        raise Problem(f"{name} is no ONNX model: {error}", kind="file") from None
    check_texts(model, name)
    if not model.HasField("graph"):
        raise Problem(f"{name} is no ONNX model: it has no graph", kind="file")
    return ModelReader(model, Weights(view, cut, folder), name).module()


def check_texts(message: Any, name: str) -> None:
    """Raise a Problem if a name is not UTF-8; protobuf gives such a name as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            if wrong := next((each for each in ([value] if isinstance(value, str | bytes) else value)
                              if isinstance(each, bytes)), None):
                raise Problem(f"{name} is no ONNX model: {wrong!r}, its {field.name}, is not UTF-8", kind="file")
        elif field.type == field.TYPE_MESSAGE:
            for each in value if isinstance(value, Iterable) else [value]:
                check_texts(each, name)


def the_package() -> Any:
    try:
        import onnx
    except ImportError:
        raise Problem("reading an ONNX model needs the package onnx", kind="argument",
                      help='pip install "tosaic[onnx]"') from None
    return onnx


class ModelReader:
    """The translation of one model into a module."""

    def __init__(self, model: Any, weights: Weights, name: str) -> None:
        self.model, self.weights, self.name = model, weights, name
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.operations: list[Operation] = []
        self.types: dict[str, Type] = {}
        self.depth = self.nodes = 0
        self.written = sum(len(graph.node) for graph in (model.graph, *model.functions))

    def module(self) -> Module:
        graph = self.model.graph
        self.note_types(graph)
        weights = {t.name for t in graph.initializer}
        inputs = [v for v in graph.input if v.name not in weights]
        arguments = tuple(Value(v.name, type_of(v.type)) for v in inputs)
        repeated = {v.name for v in inputs if [w.name for w in inputs].count(v.name) > 1}
        if repeated:
            raise Problem(f"two inputs are called {repeated.pop()}", kind="model")
        body = self.body(graph, arguments, {v.name: v for v in arguments})
        results = tuple({"onnx.name": v.name, **dimensions(v.type)} for v in graph.output)
        function = Function("main", body, tuple(v.type for v in body.yields),
                            argument_attributes=tuple(dimensions(v.type) for v in inputs), result_attributes=results)
        place = Position(Source(self.name, ""), 1, 1)
        return Module((function,), (), graph.name or None, self.attributes(), place)

    def attributes(self) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {OPSETS: self.opsets(self.model.opset_import)}
        if self.model.producer_name:
            found[PRODUCER] = f"{self.model.producer_name} {self.model.producer_version}".strip()
        if self.model.ir_version:
            found["onnx.ir_version"] = Number(int(self.model.ir_version), I64)
        metadata = {p.key: p.value for p in self.model.metadata_props}
        return found | ({"onnx.metadata": metadata} if metadata else {})

    def opsets(self, imports: Any) -> dict[str, Attribute]:
        return {o.domain or "ai.onnx": Number(int(o.version), I64) for o in imports}

    def note_types(self, graph: Any) -> None:
        """Record the types that the file declares for values."""
        for value in (*graph.value_info, *graph.output):
            self.types[value.name] = type_of(value.type)

    # ---- graphs ------------------------------------------------------------------------------------------------------
    def body(self, graph: Any, arguments: tuple[Value, ...], scope: Scope) -> Block:
        """Return the block of a graph; `scope` maps the names that the graph may use."""
        if self.depth > DEEPEST:
            raise Problem(f"graphs and functions are nested more than {DEEPEST} deep", kind="level")
        outer, self.operations, self.depth = self.operations, [], self.depth + 1
        for tensor in graph.initializer:
            scope[tensor.name] = self.constant(tensor.name, self.weights.constant(tensor))
        for sparse in graph.sparse_initializer:
            raise Problem(f"{sparse.values.name} is a sparse tensor", kind="unsupported", help="write it as a dense one")
        for number, node in enumerate(graph.node):
            self.node(node, number, scope)
        yields = tuple(self.used(scope, v.name, "an output") for v in graph.output)
        operations, self.operations, self.depth = tuple(self.operations), outer, self.depth - 1
        return Block(arguments, operations, yields)

    def constant(self, name: str, value: Attribute) -> Value:
        type = value.type if isinstance(value, Dense) else getattr(value, "type", UNTYPED)
        array = value.array if isinstance(value, Dense) else None
        result = Value(name, type, None, array)
        self.operations.append(Operation(OnnxOp(spelling=CONSTANT, properties={"value": value}), (), (result,)))
        return result

    def used(self, scope: Scope, name: str, what: str) -> Value:
        if name not in scope:
            raise Problem(f"{name!r}, {what}, is not there: no node before gives it", kind="ssa",
                          help="the nodes of a graph stand in the order in which they are computed")
        return scope[name]

    # ---- nodes -------------------------------------------------------------------------------------------------------
    def node(self, node: Any, number: int, scope: Scope) -> None:
        self.count_node()
        domain = "" if node.domain in AI_ONNX else node.domain
        what = f"operand of node {node.name or number} ({node.op_type})"
        operands = [self.used(scope, name, what) if name else self.left_out() for name in trimmed(node.input)]
        called = self.functions.get((node.domain, node.op_type)) or self.standard_body(node, domain)
        if called is not None:
            self.inline(called, node, operands, scope)
            return
        properties, regions = self.properties(node, scope)
        if node.name:
            properties["onnx.node"] = node.name
        names = list(trimmed(node.output))
        results = tuple(Value(name or f"unused_{number}_{n}", self.types.get(name, UNTYPED))
                        for n, name in enumerate(names))
        spelling = f"{PREFIX}{domain + '.' if domain else ''}{node.op_type}"
        self.operations.append(Operation(OnnxOp(spelling=spelling, properties=properties), tuple(operands), results,
                                         tuple(regions), self.own_opsets))
        for name, value in zip(names, results):
            if name in scope:
                raise Problem(f"{name!r} is given by two nodes, the second is {node.name or number} ({node.op_type})",
                              kind="ssa")
            if name:
                scope[name] = value

    def count_node(self) -> None:
        """Count one more node, of the graph or of a function that is inlined."""
        self.nodes += 1
        limits.check_nodes(self.nodes)
        if self.nodes > limits.most_expanded(self.written):
            raise limits.expanded("functions", "let functions that call others several times do so once")

    def standard_body(self, node: Any, domain: str) -> Any | None:
        """Return the function that ONNX defines an operator by, if the operator has no class here."""
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        if name in OPERATORS or (domain, node.op_type) in IMPLEMENTATIONS:
            return None
        imports = self.own_opsets.get(OPSETS) or self.opsets(self.model.opset_import)
        found = imports.get(domain or "ai.onnx") if isinstance(imports, dict) else None
        if not isinstance(found, Number):
            return None
        return function_body(node, int(found.value), self.value_types)

    @functools.cached_property
    def inferred(self) -> dict[str, Any]:
        return inferred_types(self.model)

    def value_types(self) -> dict[str, Any]:
        return self.inferred

    own_opsets: Mapping[str, Attribute] = {}
    """Operator-set versions of the function that is being inlined, where they differ from the model's."""

    def left_out(self) -> Value:
        result = Value("none", NONE)
        self.operations.append(Operation(OnnxOp(spelling=NO_VALUE, properties={}), (), (result,)))
        return result

    def properties(self, node: Any, scope: Scope) -> tuple[dict[str, Attribute], list[Block]]:
        """Return the attributes of a node, and its subgraphs in the order of their names (If: else_branch, then_branch)."""
        found: dict[str, Attribute] = {}
        graphs: dict[str, Block] = {}
        for attribute in node.attribute:
            match attribute.type:
                case 5:
                    graphs[attribute.name] = self.subgraph(attribute.g, scope)
                case 10:
                    raise Problem(f"{attribute.name} of node {node.name} is a list of graphs", kind="unsupported")
                case _:
                    found[attribute.name] = self.attribute(attribute)
        return found, [graphs[name] for name in sorted(graphs)]

    def subgraph(self, graph: Any, scope: Scope) -> Block:
        arguments = tuple(Value(v.name, type_of(v.type)) for v in graph.input)
        outer, self.types = self.types, {}
        self.note_types(graph)
        block = self.body(graph, arguments, scope | {v.name: v for v in arguments})
        self.types = outer
        return block

    def attribute(self, attribute: Any) -> Attribute:
        """Return an attribute that is no graph."""
        match attribute.type:
            case 1:
                return Number(float(attribute.f), F32)
            case 2:
                return Number(int(attribute.i), I64)
            case 3:
                return text(attribute.s)
            case 4:
                return self.weights.constant(attribute.t)
            case 6:
                return Numbers(tuple(map(float, attribute.floats)), F32)
            case 7:
                return Numbers(tuple(map(int, attribute.ints)), I64)
            case 8:
                return tuple(map(text, attribute.strings))
            case 9:
                return tuple(map(self.weights.constant, attribute.tensors))
            case 13:
                return type_of(attribute.tp)
            case other:
                raise Problem(f"the attribute {attribute.name} is of a kind ({other}) that has no place here",
                              kind="unsupported")

    # ---- functions ---------------------------------------------------------------------------------------------------
    def inline(self, function: Any, node: Any, operands: Sequence[Value], scope: Scope) -> None:
        """Inline the body of a function of the model in place of its call."""
        if self.depth > DEEPEST:
            raise Problem(f"functions call each other more than {DEEPEST} deep", kind="level")
        given = {a.name: a for a in node.attribute}
        inner: Scope = dict(zip(function.input, operands))
        for name in function.input[len(operands):]:
            inner[name] = self.left_out()
        outer, self.types = (self.types, self.own_opsets), {}
        if (own := self.opsets(function.opset_import)) != self.opsets(self.model.opset_import):
            self.own_opsets = {OPSETS: own}
        self.depth += 1
        for number, each in enumerate(function.node):
            self.node(bound(each, given, {a.name: a for a in function.attribute_proto}), number, inner)
        self.depth -= 1
        self.types, self.own_opsets = outer
        for name, wanted in zip(function.output, node.output):
            if wanted:
                scope[wanted] = self.used(inner, name, f"an output of the function {function.name}")


def bound(node: Any, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return a node of a function, with the values from the call for those attributes that refer to the function's."""
    if not any(a.ref_attr_name for a in node.attribute):
        return node
    found = type(node)()
    found.CopyFrom(node)
    del found.attribute[:]
    for attribute in node.attribute:
        value = attribute
        if attribute.ref_attr_name:
            value = given.get(attribute.ref_attr_name, defaults.get(attribute.ref_attr_name))
        if value is not None:
            found.attribute.append(value)
            found.attribute[-1].name = attribute.name
    return found


def trimmed(names: Sequence[str]) -> Sequence[str]:
    """Return the names without the omitted ones at the end."""
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return found


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def type_of(proto: Any) -> Type:
    """Return the type of a value as the file declares it."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            tensor = proto.tensor_type
            if tensor.elem_type == STRING:
                return OpaqueType("!onnx.string")
            if not tensor.elem_type:
                return UNTYPED
            try:
                element = element_of(tensor.elem_type)
            except Problem:
                return OpaqueType(f"!onnx.element{tensor.elem_type}")
            return TensorType(extents(tensor), element)
        case "sequence_type":
            return OpaqueType("!onnx.sequence")
        case "optional_type":
            return OpaqueType("!onnx.optional")
        case None:
            return UNTYPED
        case other:
            return OpaqueType(f"!onnx.{other.removesuffix('_type')}")


def extents(tensor: Any) -> tuple[int | None, ...] | None:
    """Return the shape of a tensor: None for an extent that has only a name, or that Paddle writes as -1."""
    if not tensor.HasField("shape"):
        return None
    return tuple(int(d.dim_value) if d.HasField("dim_value") and d.dim_value >= 0 else None for d in tensor.shape.dim)


def dimensions(proto: Any) -> Mapping[str, Attribute]:
    """Return the names of an input's dynamic extents, as an attribute of the argument. Paddle calls every unknown extent
    `?`."""
    if proto.WhichOneof("value") != "tensor_type":
        return {}
    names = tuple(str(d.dim_param) if any(map(str.isalnum, d.dim_param)) else "" for d in proto.tensor_type.shape.dim)
    return {"onnx.dimensions": names} if any(names) else {}
