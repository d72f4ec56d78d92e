"""Recipes of the elementwise operators, casts, comparisons, tables."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tosa.conversion import TARGETS
from tosaic.lowering.graph.types import BF16, F16, F32, I1, I8, I16, I32, I64, ElementType, TensorType

from .maker import FLOATS, Maker, Recipe

NUMBERS = (I32, I64, *FLOATS)
BITS = (I8, I16, I32, I64)
UNARY: dict[str, tuple[ElementType, ...]] = {
    "abs": NUMBERS, "bitwise_not": BITS, "logical_not": (I1,), "clz": (I32, I64),
    **dict.fromkeys(("ceil", "floor", "exp", "log", "sin", "cos", "reciprocal", "rsqrt", "erf", "sigmoid", "tanh"), FLOATS)}
BINARY: dict[str, tuple[ElementType, ...]] = {
    **dict.fromkeys(("add", "sub", "maximum", "minimum", "equal", "greater", "greater_equal"), NUMBERS),
    "intdiv": (I32, I64), "pow": FLOATS,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "logical_left_shift", "logical_right_shift",
                     "arithmetic_right_shift"), BITS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (I1,))}
NAN_MODES = ("PROPAGATE", "IGNORE")


def unary(name: str, elements: tuple[ElementType, ...]) -> Recipe:
    return lambda m: void(m.op(name, m.pick(elements)))


def binary(name: str, elements: tuple[ElementType, ...]) -> Recipe:
    def recipe(m: Maker) -> None:
        a = m.pick(elements)
        b = m.mate(a)
        if m.chance(0.5) and not name.endswith("shift"):
            a, b = b, a
        attributes: dict[str, Any] = {}
        if name in ("maximum", "minimum"):
            attributes["nan_mode"] = m.rng.choice(NAN_MODES)
        if name == "arithmetic_right_shift":
            attributes["round"] = m.chance(0.5)
        if name == "pow" and b not in m.arguments:  # of a negative number, it hangs on b being an integer to the last bit
            a = m.op("abs", a)
        m.op(name, a, b, **attributes)

    return recipe


def void(*results: object) -> None:
    """Recipes give nothing back: what they make is in the pool."""


def mul(m: Maker) -> None:
    a = m.pick((I8, I16, *NUMBERS))
    shifted = a.tensor.element == I32 and m.chance(0.5)
    shift = m.fresh(TensorType((1,), I8), (0, 40) if shifted else (0, 0), 0.8)
    m.op("mul", a, m.mate(a), shift)


def negate(m: Maker) -> None:
    x = m.pick((I8, I16, *NUMBERS))
    m.op("negate", x, m.zero_point(x.tensor.element), m.zero_point(x.tensor.element))


def clamp(m: Maker) -> None:
    x = m.pick((I8, I16, *FLOATS))
    element = x.tensor.element
    if element.is_integer:
        low, high = sorted((m.rng.randint(element.minimum, element.maximum), m.rng.randint(-9, 99)))
        m.op("clamp", x, min_val=low, max_val=high)
        return
    least, most = m.rng.choice(((0.0, 6.0), (-1.0, 1.0), (float("-inf"), 0.5), (0.0, float("inf")), (2.0, 2.0), (-0.5, 0.25)))
    m.op("clamp", x, min_val=least, max_val=most, nan_mode=m.rng.choice(NAN_MODES))


def select(m: Maker) -> None:
    yes = m.pick((I1, *BITS, *FLOATS))
    no = m.mate(yes)
    dims = tuple(map(max, yes.tensor.dims, no.tensor.dims))
    condition = m.exactly(TensorType(tuple(1 if m.chance(0.25) else n for n in dims), I1), constant=0.2)
    m.op("select", condition, yes, no)


def cast(m: Maker) -> None:
    x = m.pick(tuple(e for e in TARGETS if e.kind != "block_scaled"))
    targets = [e for e in TARGETS[x.tensor.element] if e.kind != "block_scaled"]
    m.op("cast", x, to=m.rng.choice(targets), input_unsigned=x.tensor.element.is_integer and m.chance(0.3))


def table(m: Maker) -> None:
    x = m.pick((I8, I16))
    element = x.tensor.element
    entries = TensorType((256 if element == I8 else 513,), element)
    if m.chance(0.3) and element == I8:  # no two entries alike: shows which one was read
        values = m.constant(np.array(m.rng.sample(range(-128, 128), 256), np.int8))
    else:
        values = m.exactly(entries, constant=0.7)
    m.op("table", x, values)


def identity(m: Maker) -> None:
    m.op("identity", m.pick((I1, *BITS, *FLOATS)))


RECIPES: dict[str, Callable[[Maker], None]] = {
    **{name: unary(name, elements) for name, elements in UNARY.items()},
    **{name: binary(name, elements) for name, elements in BINARY.items()},
    "mul": mul, "negate": negate, "clamp": clamp, "select": select, "cast": cast, "table": table, "identity": identity}
__all__ = ["BF16", "F16", "F32", "RECIPES"]
