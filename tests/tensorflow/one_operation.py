"""One operation of TensorFlow three ways: its reference, its TOSA as native code, and its TOSA in the interpreter."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from tosaic.lowering.graph.types import BY_STORAGE, Array

from .three_ways import Answers, three_ways, type_of

BF16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.2e-38, 3e38, -3e38, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5,
                    2, -2, 3, 1e-4, -1e-4, 1e-20, 1e20, -1e20, 41, 49, 0.49999997, 8388607.5, -8388609.0], np.float32)
"""What formulas may stumble over."""


def literal(array: Array) -> str:
    """The constant, bit by bit."""
    return 'dense<"0x' + np.ascontiguousarray(array).tobytes().hex() + f'"> : {type_of(array)}' if array.size else (
        f"dense<> : {type_of(array)}")


def text_of(name: str, operands: Sequence[Array], results: Sequence[str], properties: str = "", constants: Sequence[int] = ()
            ) -> str:
    """A function of one operation, whose results are of these elements; operands named in `constants` stand in it."""
    given = [i for i in range(len(operands)) if i not in constants]
    arguments = ", ".join(f"%a{i}: {type_of(operands[i])}" for i in given)
    lines = [f'  %a{i} = "tf.Const"() <{{value = {literal(operands[i])}}}> : () -> {type_of(operands[i])}' for i in constants]
    names, types = ", ".join(f"%a{i}" for i in range(len(operands))), ", ".join(str(type_of(x)) for x in operands)
    found = ", ".join(f"tensor<*x{r}>" for r in results)
    lines += [f'  %r:{len(results)} = "{name}"({names}) <{{{properties}}}> : ({types}) -> ({found})',
              f"  return {', '.join(f'%r#{i}' for i in range(len(results)))} : {found}"]
    return f"func.func @main({arguments}) -> ({found}) {{\n" + "\n".join(lines) + "\n}\n"


def answers(name: str, *operands: Any, results: Sequence[str] | None = None, properties: str = "",
            constants: Sequence[int] = ()) -> Answers:
    """All three, for operands as arrays; the results are of the first operand's type unless `results` says otherwise."""
    arrays = [np.asarray(x) for x in operands]
    text = text_of(name, arrays, results or [str(BY_STORAGE[arrays[0].dtype.name])], properties, constants)
    return three_ways(text, [x for i, x in enumerate(arrays) if i not in constants])[1]


def check_exactly(name: str, *operands: Any, **options: Any) -> None:
    """Every bit of integers and bools, and floats that are equal, a NaN to a NaN."""
    expected, *found = answers(name, *operands, **options)
    for arrays in found:
        for mine, right in zip(arrays, expected, strict=True):
            assert mine.dtype == right.dtype and mine.shape == right.shape
            is_float = right.dtype.kind not in "biu"
            np.testing.assert_array_equal(*((x.astype(np.float64) if is_float else x) for x in (mine, right)))


def check_within(ulp: float, name: str, *operands: Any, exact: Any = None, **options: Any) -> None:
    """Floats within `ulp` units in the last place of the reference, or of `exact`, the results in 64 bits."""
    expected, *found = answers(name, *operands, **options)
    right = expected[0] if exact is None else exact
    for arrays in found:
        assert arrays[0].dtype == expected[0].dtype and arrays[0].shape == expected[0].shape
        errors = distance(arrays[0], np.asarray(right, np.float64))
        worst = int(np.argmax(errors))
        assert errors.flat[worst] <= ulp, (name, errors.flat[worst], [np.broadcast_to(x, errors.shape).flat[worst]
                                           for x in operands if np.asarray(x).size > 1], arrays[0].flat[worst])


def distance(found: Array, right: Array) -> Array:
    """In units in the last place of the type of `found`; 0 for what is the same, NaN and infinities too."""
    dtype = found.dtype
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = right.astype(dtype).astype(np.float64)
        wide = found.astype(np.float64)
        size = np.clip(np.abs(right), float(info.smallest_normal), float(info.max))
        unit = np.exp2(np.floor(np.log2(size))) * float(info.eps)
        errors = np.abs(wide - right) / unit
    same = (wide == rounded) | (np.isnan(wide) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isnan(errors), np.inf, errors))


def floats(seed: int, count: int = 1500) -> Array:
    """f32 of all sizes: small integers, near 0, far away, special ones."""
    random = np.random.default_rng(seed)
    parts: list[Array] = [random.uniform(-1, 1, count), random.uniform(-20, 20, count), random.integers(-300, 300, count),
             random.standard_normal(count) * np.exp2(random.uniform(-120, 120, count)), SPECIAL]
    return np.concatenate(parts).astype(np.float32)


def pairs(seed: int) -> tuple[Array, Array]:
    """Two lists of floats in which every two special numbers meet."""
    first, second = np.meshgrid(SPECIAL, SPECIAL)
    random = np.random.default_rng(seed)
    a, b = floats(seed), random.permutation(floats(seed + 1))
    whole = random.integers(-500, 500, (2, 2000)).astype(np.float32)
    return np.concatenate([a, first.ravel(), whole[0]]), np.concatenate([b, second.ravel(), whole[1]])


def integers(dtype: str, seed: int = 0) -> tuple[Array, Array]:
    """Two lists of integers of all sizes, in which the extremes meet."""
    info, random = np.iinfo(dtype), np.random.default_rng(seed)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7], dtype)
    first, second = np.meshgrid(ends, ends)
    small = random.integers(max(info.min, -20), 20, (2, 300), dtype)
    wide = random.integers(info.min, info.max, (2, 300), dtype, endpoint=True)
    return (np.concatenate([wide[0], small[0], first.ravel()]), np.concatenate([wide[1], small[1], second.ravel()]))
