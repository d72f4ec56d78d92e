"""The schema of .tosa files as data: codes of operators, tables of their attributes, enumerations.

The number of an entry is its code in the file. An attribute table is a list of `name:kind`, in the order of the slots;
each operator has the table of its own name.
"""
from __future__ import annotations

from ...runtime.records import dataclass
from ..graph.types import (
    BF16,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    F16,
    F32,
    I1,
    I4,
    I8,
    I16,
    I32,
    I48,
    I64,
    MXINT8,
    ElementType,
)

IDENTIFIER = b"TOSA"

ELEMENTS: tuple[ElementType | None, ...] = (
    None, I1, I4, I8, I16, I32, I48, F32, F16, BF16, None, F8E4M3, F8E5M2, F6E2M3, F6E3M2, F4E2M1, F8E8M0, I64, MXINT8)
"""DType; None for UNKNOWN and SHAPE."""
ELEMENT_CODES = {e.name: code for code, e in enumerate(ELEMENTS) if e}
SIGNLESS = {f"{sign}{bits}": f"i{bits}" for sign in ("ui", "si") for bits in (8, 16, 32, 64)}
"""Signed and unsigned types of MLIR -> their signless types: the file stores the sign in RESCALE's attributes."""

ENUMERATIONS: dict[str, dict[int, str]] = {
    "resize_mode": {1: "NEAREST_NEIGHBOR", 2: "BILINEAR"},
    "nan_mode": {1: "PROPAGATE", 2: "IGNORE"},
    "rounding_mode": {1: "SINGLE_ROUND", 2: "INEXACT_ROUND", 3: "DOUBLE_ROUND"},
    "block_size": {1: "BLOCK_SIZE_1", 32: "BLOCK_SIZE_32"},
}
"""Names by code, as MLIR spells them. Code 0 is UNKNOWN in each, and no value."""
BLOCK_SHAPE = 32
BLOCK_SCALED_FEATURE = 1 << 1
"""Flag of `compatibility.features`: the file has block-scaled types."""
KNOWN_FEATURES = BLOCK_SCALED_FEATURE

CONVOLUTION = "pad:int32s stride:int32s dilation:int32s local_bound:bool acc_type:element"
POOL = "kernel:int32s stride:int32s pad:int32s"
BLOCKS = "block_size:block_size"

CODES: tuple[tuple[str, str], ...] = (
    ("UNKNOWN", ""),
    ("ARGMAX", "axis:int32 nan_mode:nan_mode"), ("AVG_POOL2D", f"{POOL} acc_type:element"), ("CONV2D", CONVOLUTION),
    ("CONV3D", CONVOLUTION), ("DEPTHWISE_CONV2D", CONVOLUTION), ("FFT2D", "inverse:bool local_bound:bool"),
    ("MATMUL", ""), ("MAX_POOL2D", f"{POOL} nan_mode:nan_mode"), ("RFFT2D", "local_bound:bool"),
    ("TRANSPOSE_CONV2D", "out_pad:int32s stride:int32s local_bound:bool acc_type:element"),
    ("CLAMP", "min_val:bytes max_val:bytes nan_mode:nan_mode"), ("ERF", ""), ("SIGMOID", ""), ("TANH", ""), ("ADD", ""),
    ("ARITHMETIC_RIGHT_SHIFT", "round:bool"), ("BITWISE_AND", ""), ("BITWISE_OR", ""), ("BITWISE_XOR", ""),
    ("INTDIV", ""), ("LOGICAL_AND", ""), ("LOGICAL_LEFT_SHIFT", ""), ("LOGICAL_RIGHT_SHIFT", ""), ("LOGICAL_OR", ""),
    ("LOGICAL_XOR", ""), ("MAXIMUM", "nan_mode:nan_mode"), ("MINIMUM", "nan_mode:nan_mode"), ("MUL", ""), ("POW", ""),
    ("SUB", ""), ("TABLE", ""), ("ABS", ""), ("BITWISE_NOT", ""), ("CEIL", ""), ("CLZ", ""), ("COS", ""), ("EXP", ""),
    ("FLOOR", ""), ("LOG", ""), ("LOGICAL_NOT", ""), ("NEGATE", ""), ("RECIPROCAL", ""), ("RSQRT", ""), ("SIN", ""),
    ("SELECT", ""), ("EQUAL", ""), ("GREATER", ""), ("GREATER_EQUAL", ""), ("REDUCE_ALL", "axis:int32"),
    ("REDUCE_ANY", "axis:int32"), ("REDUCE_MAX", "axis:int32 nan_mode:nan_mode"),
    ("REDUCE_MIN", "axis:int32 nan_mode:nan_mode"), ("REDUCE_PRODUCT", "axis:int32"), ("REDUCE_SUM", "axis:int32"),
    ("CONCAT", "axis:int32"), ("PAD", ""), ("RESHAPE", ""), ("REVERSE", "axis:int32"), ("SLICE", ""), ("TILE", ""),
    ("TRANSPOSE", "perms:int32s"), ("GATHER", ""), ("SCATTER", ""), ("RESIZE", "mode:resize_mode"), ("CAST", ""),
    ("RESCALE", "scale32:bool rounding_mode:rounding_mode per_channel:bool input_unsigned:bool output_unsigned:bool"),
    ("CONST", ""), ("IDENTITY", ""),
    ("CUSTOM", "operator_name:text domain_name:text implementation_attrs:bytes"),
    ("COND_IF", "then_graph:text else_graph:text"), ("WHILE_LOOP", "cond_graph:text body_graph:text"),
    ("VARIABLE", ""), ("VARIABLE_WRITE", ""), ("VARIABLE_READ", ""), ("CONST_SHAPE", ""),
    ("MATMUL_T_BLOCK_SCALED", BLOCKS), ("CAST_FROM_BLOCK_SCALED", BLOCKS), ("CAST_TO_BLOCK_SCALED", BLOCKS),
    ("DIM", "axis:int32"), ("CONCAT_SHAPE", ""), ("ADD_SHAPE", ""), ("SUB_SHAPE", ""), ("MUL_SHAPE", ""),
    ("SLICE_SHAPE", ""), ("EXP2_SHAPE", ""), ("LOG2_CEIL_SHAPE", ""), ("LOG2_FLOOR_SHAPE", ""), ("MAX_SHAPE", ""),
    ("MIN_SHAPE", ""), ("MOD_SHAPE", ""), ("DIV_CEIL_SHAPE", ""), ("DIV_FLOOR_SHAPE", ""),
    ("ASSERT_EQUAL_SHAPE", "allow_broadcast:bool"), ("CONV2D_BLOCK_SCALED", BLOCKS),
    ("MAX_POOL2D_ADAPTIVE", "nan_mode:nan_mode"), ("AVG_POOL2D_ADAPTIVE", "acc_type:element"),
    ("RESHAPE_BLOCK_SCALED", BLOCKS), ("ROW_GATHER_BLOCK_SCALED", BLOCKS), ("ROW_GATHER", ""), ("MATMUL_T", ""))
FIRST_OF_1_1 = 76
"""First operator code that came with TOSA 1.1."""
SIGN_AGNOSTIC = frozenset((
    "RESCALE", "CONST", "IDENTITY", "CONCAT", "PAD", "RESHAPE", "REVERSE", "SLICE", "TILE", "TRANSPOSE", "GATHER", "SCATTER",
    "SELECT", "EQUAL", "COND_IF", "WHILE_LOOP", "VARIABLE_READ", "VARIABLE_WRITE"))
"""Operators that treat signed and unsigned integers alike, or have attributes for the sign."""


@dataclass(frozen=True, slots=True)
class AttributeField:
    """A field of an attribute table: its slot, name and kind."""
    slot: int
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """An operator of the file format. `operator` is its name in MLIR."""
    number: int
    name: str
    fields: tuple[AttributeField, ...]

    @property
    def operator(self) -> str:
        return f"tosa.{self.name.lower()}"


def code(number: int, name: str, table: str) -> OperatorCode:
    fields = [entry.split(":") for entry in table.split()]
    return OperatorCode(number, name, tuple(AttributeField(slot, field, kind) for slot, (field, kind) in enumerate(fields)))


OPERATOR_CODES = tuple(code(number, *entry) for number, entry in enumerate(CODES))
BY_NAME = {c.name: c for c in OPERATOR_CODES}
BY_OPERATOR = {c.operator: c for c in OPERATOR_CODES}
REGIONS = {"COND_IF": ("then_graph", "else_graph"), "WHILE_LOOP": ("cond_graph", "body_graph")}
"""The attributes that name regions."""
