"""TOSA's levels: limits of the size of a graph of level 8K, checked where a user asks for it.

A level is a promise to other implementations, not a rule of the meaning of a graph: a graph beyond it compiles here all the
same, and the intermediate graphs of front doors often are beyond it. Without a level the verifier has two limits of 8K's:
control flow nested 6 deep, which the specification makes an error, and tensors of 2^31 - 1 bytes.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...runtime.errors import Problem, require
from ...runtime.records import dataclass
from .graph import Block, Module, Operation, Value
from .operator import UnknownOp, rule_of
from .types import ShapeType, TensorType


@dataclass(frozen=True, slots=True)
class Level:
    """The specification's limits, by the specification's names."""
    name: str
    rank: int
    kernel: int
    stride: int
    scale: int
    log2_size: int
    nesting: int
    tensor_list: int
    shape_length: int


NONE, EIGHT_K = "none", "8K"
LEVELS = {EIGHT_K: Level(EIGHT_K, 6, 8192, 8192, 256, 31, 6, 64, 16)}
WINDOW = ("kernel", "pad", "out_pad", "stride", "dilation")
"""Attributes, or operands that are known when compiling, of operators with windows."""
LISTS = ("tosa.concat", "tosa.cond_if", "tosa.while_loop", "tosa.custom", "tosa.identityn")
"""Operators that take a list of tensors."""
FOURIER = ("tosa.fft2d", "tosa.rfft2d")


def level_of(name: str) -> Level | None:
    """Return the limits of a level; None for level `none`."""
    if name != NONE and name not in LEVELS:
        raise Problem(f"there is no level {name}", kind="argument", help=f"one of {NONE}, {', '.join(LEVELS)}")
    return LEVELS.get(name)


def check_level(module: Module, name: str) -> None:
    """Raise a Problem if a verified module is beyond a level. Extents that are not known are not checked."""
    level = level_of(name)
    if level is None:
        return
    for operation in module.declarations:
        check_operation(operation, level)
    for function in module.functions:
        check_block(function.body, level, 0)


def check_block(block: Block, level: Level, depth: int) -> None:
    for value in block.arguments:
        check_value(value, level)
    for operation in block.operations:
        inside = depth + bool(operation.regions)
        if inside > level.nesting:
            raise beyond(f"control flow is nested {inside} deep", level, level.nesting, operation)
        check_operation(operation, level)
        for region in operation.regions:
            check_block(region, level, inside)


def check_operation(operation: Operation, level: Level) -> None:
    if isinstance(operation.op, UnknownOp):
        return
    for value in operation.results:
        check_value(value, level)
    for what, found, limit in numbers(operation, level):
        if found > limit:
            raise beyond(f"{what} is {found}", level, limit, operation)


def beyond(what: str, level: Level, limit: int, operation: Operation) -> Problem:
    return Problem(f"{what}, level {level.name} allows {limit}", operation.position, kind="level").of(operation.op.name)


def check_value(value: Value, level: Level) -> None:
    """Check the rank and bytes of a tensor, or the extents of a shape."""
    try:
        match value.type:
            case TensorType(shape=shape) as type if shape is not None:
                check_tensor(f"%{value.name}", type, level)
            case ShapeType(rank):
                require(rank <= level.shape_length, f"%{value.name} has {rank} extents, level {level.name} allows "
                        f"{level.shape_length}", kind="level")
            case _:
                pass
    except Problem as problem:
        raise problem.at(value.position) from None


def check_tensor(what: str, type: TensorType, level: Level) -> None:
    require(type.rank <= level.rank, f"{what} has rank {type.rank}, level {level.name} allows {level.rank}", kind="level")
    nbytes = math.prod(n for n in type.shape or () if n is not None) * type.element.itemsize
    require(nbytes < 1 << level.log2_size,
            f"{what} is {type}, {nbytes} bytes, level {level.name} allows 2^{level.log2_size} - 1", kind="level")


# Limits of single operators

def numbers(operation: Operation, level: Level) -> Iterator[tuple[str, int, int]]:
    """Yield each limited quantity, its value, and its limit."""
    name, window = operation.op.name, window_of(operation)
    sizes = window.get("kernel", ())
    dilation = window.get("dilation", (1,) * len(sizes))
    yield from (("dilation times kernel", k * d, level.kernel) for k, d in zip(sizes, dilation))
    yield from (("a kernel", k, level.kernel) for k in sizes)
    yield from (("a pad", abs(p), level.kernel) for key in ("pad", "out_pad") for p in window.get(key, ()))
    yield from (("a stride", s, level.stride) for s in window.get("stride", ()))
    if name in LISTS:
        yield "the number of its operands", len(operation.operands), level.tensor_list
        yield "the number of its results", len(operation.results), level.tensor_list
    if name in FOURIER:
        extents = [n for n in operation.operands[0].tensor.shape or () if n is not None]
        yield from (("an extent of the transform", n, level.kernel) for n in extents[1:])
    if name == "tosa.resize" and (scale := operation.operands[1].constant) is not None:
        found = scale.reshape(-1).tolist()
        yield from (("a scale", -(-n // d), level.scale) for n, d in zip(found[::2], found[1::2]))


def window_of(operation: Operation) -> dict[str, Sequence[int]]:
    """Return the numbers of an operator's window, from attributes or operands; a convolution's kernel is that of its weight."""
    found: dict[str, Sequence[int]] = {}
    names = rule_of(type(operation.op).infer)[0]
    operands = dict(zip(names, operation.operands))
    for key in WINDOW:
        own = getattr(operation.op, key, None)
        data = operands[key].constant if key in operands else None
        if isinstance(own, tuple):
            found[key] = own
        elif data is not None:
            found[key] = data.reshape(-1).tolist()
    weight = operands.get("weight") or operands.get("weight_data")
    if weight is not None and isinstance(weight.type, TensorType) and weight.type.shape is not None:
        shape = weight.type.shape
        spatial = shape[:2] if operation.op.name == "tosa.depthwise_conv2d" else shape[1:-1]
        found["kernel"] = [n or 1 for n in spatial]
    return found
