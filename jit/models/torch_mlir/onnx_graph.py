"""An ONNX graph that is written anew, node by node, before torch-mlir sees it: what is known of its tensors, and what appends
nodes. Runs in the process of `torch_mlir_process`, so that nothing of tosaic is imported here.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

MOST_FOLDED = 1 << 16
"""Elements of operands and results of nodes that are computed here; larger ones are weights."""
NOT_FOLDED = frozenset({"DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear", "If", "Loop", "Scan", "Dropout",
                        "Bernoulli",
                        "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})
"""What a node is left for: torch-mlir knows it by the pattern, it has graphs of its own, or it is random."""


class Wrong(Exception):
    """What is wrong with a model or its arguments: a message, the kind of the problem, what to do."""

    @property
    def problem(self) -> tuple[Any, ...]:
        return self.args


class OnnxGraph:
    """The graph as it is written. `constants` are the tensors whose values are known, `shapes` those whose extents are, None
    for an extent that is open."""

    def __init__(self, proto: Any, opset: int, outer: OnnxGraph | None = None) -> None:
        import onnx
        self.onnx, self.proto, self.opset = onnx, proto, opset
        self.constants: dict[str, Array] = dict(outer.constants) if outer else {}
        self.shapes: dict[str, tuple[int | None, ...]] = dict(outer.shapes) if outer else {}
        self.types: dict[str, int] = dict(outer.types) if outer else {}
        self.nodes: list[Any] = []
        self.here: Any = None
        """The node that is written anew."""
        self.count: int = outer.count if outer else 0
        for value in (*proto.input, *proto.output, *proto.value_info):
            self.learn(value)
        for tensor in proto.initializer:
            self.shapes[tensor.name], self.types[tensor.name] = tuple(tensor.dims), tensor.data_type
            if np.prod(tensor.dims, dtype=np.int64) <= MOST_FOLDED and tensor.data_type != onnx.TensorProto.STRING:
                self.constants[tensor.name] = onnx.numpy_helper.to_array(tensor)

    def learn(self, value: Any) -> None:
        tensor = value.type.tensor_type
        if value.type.HasField("tensor_type"):
            self.types[value.name] = tensor.elem_type
            if tensor.HasField("shape"):
                self.shapes[value.name] = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)

    # ---- what is known -----------------------------------------------------------------------------------------------
    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the node that is written anew."""
        found = next((a for a in self.here.attribute if a.name == name), None)
        if found is None:
            return default
        value = self.onnx.helper.get_attribute_value(found)
        return value.decode() if isinstance(value, bytes) else value

    def operand(self, number: int) -> str:
        """The name of an operand; empty for one that is left out."""
        return self.here.input[number] if number < len(self.here.input) else ""

    def known(self, number: int) -> Array | None:
        """The value of an operand."""
        return self.constants.get(self.operand(number))

    def shape(self, number: int = 0) -> tuple[int | None, ...] | None:
        return self.shapes.get(self.operand(number))

    def element(self, number: int = 0) -> np.dtype[Any]:
        """The type of an operand's elements."""
        return np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(self.types[self.operand(number)]))

    def refuse(self, what: str, remedy: str = "compute it outside of the model or write it with other operators") -> Wrong:
        name = self.here.name or next(iter(self.here.output), "")
        return Wrong(f"node {name}, {self.here.op_type}, {what}", "unsupported", remedy)

    # ---- what is written ---------------------------------------------------------------------------------------------
    def fresh(self) -> str:
        self.count += 1
        return f"{self.here.output[0] if self.here.output else 'value'}/{self.count}"

    def constant(self, array: Array) -> str:
        """An initializer."""
        name = self.fresh()
        array = np.asarray(array)
        self.proto.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        self.constants[name], self.shapes[name] = array, array.shape
        self.types[name] = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        return name

    def add(self, kind: str, *operands: str, result: str | None = None, **attributes: Any) -> str:
        """Append a node of one result, which is called so."""
        name = self.fresh() if result is None else result
        self.nodes.append(self.onnx.helper.make_node(kind, list(operands), [name], name=self.here.name, **attributes))
        return name

    def again(self, operands: Sequence[str]) -> None:
        """Append the node itself on other operands."""
        node = self.onnx.NodeProto()
        node.CopyFrom(self.here)
        del node.input[:]
        node.input.extend(operands)
        self.nodes.append(node)

    def sizes(self, extents: Sequence[int]) -> str:
        return self.constant(np.array(extents, np.int64))

    def along(self, kind: str, x: str, axes: Sequence[int], result: str | None = None, keep: bool = True) -> str:
        """A reduction, whose axes are an operand or, in old versions, an attribute."""
        since = 13 if kind == "ReduceSum" else 18
        if self.opset >= since:
            return self.add(kind, x, self.sizes(axes), result=result, keepdims=int(keep))
        return self.add(kind, x, result=result, keepdims=int(keep), axes=list(axes))

    # ---- constants ---------------------------------------------------------------------------------------------------
    def fold(self, node: Any) -> bool:
        """Whether a node is computed here: its operands are known, or it asks for a shape that is."""
        found = self.computed(node)
        if found is None:
            return False
        self.here = node
        for name, array in zip(node.output, found):
            if name:
                self.proto.initializer.append(self.onnx.numpy_helper.from_array(array, name))
                self.constants[name], self.shapes[name] = array, array.shape
        return True

    def computed(self, node: Any) -> list[Array] | None:
        if node.domain not in ("", "ai.onnx") or node.op_type in NOT_FOLDED or any(a.type in (5, 10) for a in node.attribute):
            return None
        outputs = {value.name for value in self.proto.output}
        if outputs.intersection(node.output):  # torch-mlir wants a node for each
            return None
        shape = self.shapes.get(node.input[0]) if node.op_type == "Shape" else None
        if shape is not None and None not in shape:
            picked = {a.name: a.i for a in node.attribute}
            return [np.array(shape[picked.get("start", 0):picked.get("end", len(shape))], np.int64)]
        if not all(name == "" or name in self.constants for name in node.input):
            return None
        return self.evaluated(node)

    def evaluated(self, node: Any) -> list[Array] | None:
        from onnx.reference import ReferenceEvaluator
        try:
            run = ReferenceEvaluator(node, opsets={"": self.opset})
            with np.errstate(all="ignore"):
                found = run.run(None, {name: self.constants[name] for name in node.input if name})
        except Exception:  # of whatever kind: then the node is torch-mlir's
            return None
        right = all(isinstance(x, np.ndarray | np.generic) and np.size(x) <= MOST_FOLDED and np.asarray(x).dtype.kind in "iubf"
                    for x in found)
        return [np.asarray(x) for x in found] if right else None
