"""An ONNX graph while a pass rewrites it: the nodes so far, definitions and readers of values, new nodes and constants, and the
quantization parameters of QuantizeLinear and DequantizeLinear (`Steps`)."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....runtime.records import dataclass
from ...dialects.onnx.node import CONSTANT, NO_VALUE, PREFIX, UNTYPED, OnnxOp
from ...graph.foreign import find, spelling
from ...graph.graph import Module, Operation, Value
from ...graph.types import BY_STORAGE, I8, I64, UI8, Array, ElementType, TensorType
from ...text.attributes import Dense, Number

BYTES = (I8, UI8)
HALF = 128
AS_UNSIGNED = "tosaic.AsUnsigned"
"""The node between signed bytes and a reader that expects unsigned ones: rewrites produce signed integers."""
DEQUANTIZE = ("DequantizeLinear", "com.microsoft.DequantizeLinear")
QUANTIZE = ("QuantizeLinear", "com.microsoft.QuantizeLinear")


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Quantized integers, which represent (stored - zero) * scale. Both parameters are known: they are numbers, or lists along
    `axis` (which may count from the last)."""
    stored: Value
    element: ElementType
    scale: Array
    zero: Array
    axis: int | None
    was_unsigned: bool = False
    """True if they are signed bytes that represent unsigned ones."""

    @property
    def is_byte(self) -> bool:
        return self.element in BYTES

    @property
    def of_tensor(self) -> bool:
        """True if there is one scale for the whole tensor."""
        return self.axis is None

    def same(self, other: Steps) -> bool:
        """True if the same integers represent the same numbers."""
        return (self.element == other.element and self.of_tensor and other.of_tensor and self.scale == other.scale
                and self.zero == other.zero)

    @property
    def signed(self) -> Steps:
        """The same quantization with signed bytes, except for `stored`."""
        if self.element != UI8:
            return self
        return Steps(self.stored, I8, self.scale, np.asarray(self.zero.astype(np.int16) - HALF, np.int8), self.axis, True)

    def real(self, stored: Array) -> Array:
        """Return the numbers that integers represent, for one scale for the whole tensor."""
        return np.asarray((stored.astype(np.int32) - self.zero.astype(np.int32)).astype(np.float32) * self.scale, np.float32)

    def nearest(self, values: Array) -> Array:
        """Return the integers that represent numbers, for one scale for the whole tensor."""
        with np.errstate(all="ignore"):
            steps = np.rint(np.asarray(values, np.float32) / self.scale).astype(np.float64)
        found = np.clip(np.nan_to_num(steps) + self.zero.astype(np.float64), self.element.minimum, self.element.maximum)
        return np.asarray(found.astype(self.element.dtype))


class EditedGraph:
    """The nodes created so far. A value of the old graph keeps its identity, whichever node defines it, unless it is
    `replaced`."""

    def __init__(self, module: Module, readers: Mapping[Value, Sequence[Operation | None]]) -> None:
        self.module, self.readers = module, readers
        self.operations: list[Operation] = []
        self.definitions: dict[Value, Operation] = {}
        self.replaced: dict[Value, Value] = {}
        self.numbers = 0

    # ---- the existing graph ----------------------------------------------------------------------------------------------
    def maker(self, value: Value) -> Operation | None:
        return self.definitions.get(value)

    def made_by(self, value: Value, *names: str) -> Operation | None:
        """Return the node that defines a value, if its operator is one of these."""
        found = self.maker(value)
        return found if found is not None and name_of(found) in names else None

    def constant(self, value: Value) -> Array | None:
        """Return the data of a value, if the graph has it."""
        if value.constant is not None:
            return value.constant
        found = self.maker(value)
        return found.op.constant(()) if found is not None and isinstance(found.op, OnnxOp) else None

    def optional(self, operation: Operation, number: int) -> Value | None:
        """Return an operand; None if it is omitted."""
        if number >= len(operation.operands):
            return None
        value = operation.operands[number]
        return None if self.made_by(value, NO_VALUE.removeprefix(PREFIX)) is not None else value

    def has_one_reader(self, value: Value) -> bool:
        return len(self.readers.get(value, ())) == 1

    def steps(self, operation: Operation, stored: Value) -> Steps | None:
        """Return the quantization of the integers of a QuantizeLinear or DequantizeLinear; None if it is not known, or differs
        from block to block."""
        if len(operation.operands) < 2:
            return None
        zero_point, scale = self.optional(operation, 2), self.constant(operation.operands[1])
        zero = None if zero_point is None else self.constant(zero_point)
        if scale is None or scale.dtype != np.float32 or (zero_point is not None and zero is None):
            return None
        element = self.element(operation, zero_point, stored)
        if element is None or not element.is_integer or scale.ndim > 1 or find(operation, "block_size") is not None:
            return None
        zero = np.zeros(scale.shape, element.dtype) if zero is None else zero
        if zero.size != scale.size or not np.all(np.isfinite(scale) & (scale > 0)):
            return None
        if scale.size == 1:
            return Steps(stored, element, scale.reshape(()), zero.reshape(()), None)
        axis = find(operation, "axis")
        return Steps(stored, element, scale, zero, 1 if axis is None else int(axis.value))

    def element(self, operation: Operation, zero_point: Value | None, stored: Value) -> ElementType | None:
        """Return the element type of the integers: that of the zero point or of the integers in the file, or the default
        without a zero point."""
        for value in (zero_point, stored):
            if value is not None and isinstance(value.type, TensorType):
                return value.type.element
        if zero_point is not None:
            known = self.constant(zero_point)
            return None if known is None else BY_STORAGE.get(known.dtype.name)
        return UI8 if name_of(operation) in QUANTIZE and find(operation, "output_dtype") is None else None

    def dequantized(self, value: Value) -> Steps | None:
        """Return the quantized integers that a DequantizeLinear made a value from; None if there is no such node."""
        found = self.made_by(value, *DEQUANTIZE)
        return None if found is None else self.dequantized_by(found)

    def dequantized_by(self, found: Operation) -> Steps | None:
        """Return the quantization of a DequantizeLinear's integers, with signed bytes if a rewrite has made them."""
        if find(found, "output_dtype") is not None:
            return None
        steps = self.steps(found, found.operands[0])
        signed = self.made_by(found.operands[0], AS_UNSIGNED)
        if steps is None or signed is None:
            return steps
        return replace(steps.signed, stored=signed.operands[0])

    # ---- new nodes -------------------------------------------------------------------------------------------------------
    def add(self, operation: Operation) -> None:
        self.operations.append(operation)
        self.definitions.update((r, operation) for r in operation.results)

    def value(self, name: str, element: ElementType | None = None, like: Value | None = None) -> Value:
        """Return a new value, with the shape of another one if that is known."""
        self.numbers += 1
        typed = element is not None and like is not None and isinstance(like.type, TensorType)
        type = like.type.with_element(element) if typed else UNTYPED  # type: ignore[union-attr, arg-type]
        return Value(f"{name}_{self.numbers}", type)

    def new_constant(self, array: Array, name: str = "number") -> Value:
        array = np.array(array, order="C")
        array.setflags(write=False)
        self.numbers += 1
        type = TensorType(array.shape, BY_STORAGE[array.dtype.name])
        value = Value(f"{name}_{self.numbers}", type, None, array)
        self.add(Operation(OnnxOp(spelling=CONSTANT, properties={"value": Dense(array, type)}), (), (value,)))
        return value

    def node(self, name: str, operands: Sequence[Value], results: Sequence[Value], of: Operation,
             properties: Mapping[str, Any] | None = None) -> None:
        """Add a node that replaces the node `of`."""
        own = dict(properties or {})
        if (label := find(of, "onnx.node")) is not None:
            own["onnx.node"] = label
        self.add(Operation(OnnxOp(spelling=PREFIX + name, properties=own), tuple(operands), tuple(results), (), of.attributes,
                           of.position))

    def parameters(self, steps: Steps) -> tuple[Value, Value]:
        """Return scale and zero point as operands."""
        return self.new_constant(steps.scale, "scale"), self.new_constant(steps.zero, "zero")


def name_of(operation: Operation) -> str:
    """Return the operator of a node: `Conv`, `com.microsoft.QGemm`."""
    return spelling(operation).removeprefix(PREFIX)


def properties_of(operation: Operation) -> Mapping[str, Any]:
    """Return the attributes of a node."""
    return {k: v for k, v in (getattr(operation.op, "properties", None) or {}).items() if k not in ("onnx.node", "onnx.line")}


def integer(operation: Operation, name: str, default: int) -> int:
    found = find(operation, name)
    return default if found is None else int(found.value)


def real_number(operation: Operation, name: str, default: float) -> float:
    found = find(operation, name)
    return default if found is None else float(found.value)


def whole(value: int) -> Number:
    """Return an integer as an attribute."""
    return Number(value, I64)
