"""Small graphs of TensorFlow's operations, made by a test and held against what they mean: the interpreter of the tf dialect on
the one side, the same graph as TOSA in TOSA's interpreter and as native code on the other."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import BY_STORAGE, Array
from tosaic.lowering.text.reader import read_module

from .three_ways import three_ways, tosa_of, type_of


class Graph:
    """A function @main that grows operation by operation. A value is its name and its type's text."""

    def __init__(self) -> None:
        self.arguments: list[Array] = []
        self.declared: list[tuple[str, str]] = []
        self.lines: list[str] = []
        self.count = 0

    def argument(self, array: Any) -> tuple[str, str]:
        array = np.asarray(array)
        self.arguments.append(array)
        self.declared.append((f"%arg{len(self.declared)}", str(type_of(array))))
        return self.declared[-1]

    def constant(self, array: Any) -> tuple[str, str]:
        array = np.asarray(array)
        return self("Const", result=str(type_of(array)), value=f"dense<{listed(array)}> : {type_of(array)}")

    def integers(self, *numbers: int) -> tuple[str, str]:
        return self.constant(np.array(numbers, np.int32))

    def integers_of(self, numbers: Any) -> tuple[str, str]:
        return self.constant(np.array(numbers, np.int32))

    def __call__(self, name: str, *operands: tuple[str, str], result: str | Sequence[str] = "", **attributes: Any) -> Any:
        """The one value, or the values, that an operation gives; the result is of the first operand's element type and of any
        shape if nothing else is said."""
        types = [result or unranked(operands[0][1])] if isinstance(result, str) else list(result)
        values = [(f"%v{self.count}" + (f"#{i}" if len(types) > 1 else ""), t) for i, t in enumerate(types)]
        names = f"%v{self.count}" + (f":{len(types)}" if len(types) > 1 else "")
        given = ", ".join(f"{k} = {written(v)}" for k, v in attributes.items())
        left = f"{names} = " if types else ""
        self.lines.append(f'  {left}"tf.{name}"({", ".join(o for o, _ in operands)}) <{{{given}}}> : '
                          f'({", ".join(t for _, t in operands)}) -> ({", ".join(types)})')
        self.count += 1
        return values[0] if isinstance(result, str) else values

    def text(self, *results: tuple[str, str]) -> str:
        given = ", ".join(f"{n}: {t}" for n, t in self.declared)
        types = ", ".join(t for _, t in results)
        body = "\n".join(self.lines)
        names = ", ".join(n for n, _ in results)
        return f"func.func @main({given}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}"

    def module(self, *results: tuple[str, str]) -> Module:
        return read_module(self.text(*results))

    def tosa(self, *results: tuple[str, str]) -> Module:
        return tosa_of(self.module(*results), [type_of(a) for a in self.arguments])

    def check(self, *results: tuple[str, str], tolerance: float = 0) -> tuple[Array, ...]:
        """The results, which are the same in every way of running the graph."""
        _, found = three_ways(self.text(*results), self.arguments, [type_of(a) for a in self.arguments])
        equal(found.interpreted, found.expected, "TOSA's interpreter", tolerance)
        equal(found.native, found.expected, "native", tolerance)
        return found.expected


def equal(found: Sequence[Any], expected: Sequence[Array], what: str, tolerance: float) -> None:
    assert len(found) == len(expected)
    for i, (mine, right) in enumerate(zip(found, expected)):
        mine, right = np.asarray(mine), np.asarray(right)
        assert (mine.shape, mine.dtype) == (right.shape, right.dtype), f"{what}, result {i}: {mine.dtype}{mine.shape}"
        if tolerance:
            np.testing.assert_allclose(mine, right, rtol=tolerance, err_msg=f"{what}, result {i}")
        else:
            np.testing.assert_array_equal(mine, right, f"{what}, result {i}")


def unranked(type: str) -> str:
    return f"tensor<*x{type.removesuffix('>').rpartition('x')[2].removeprefix('tensor<')}>"


def of_any_shape(dtype: Any) -> str:
    return f"tensor<*x{BY_STORAGE[np.dtype(dtype).name]}>"


def listed(array: Array) -> str:
    if not array.size:
        return ""
    return str(array.tolist()).replace("True", "true").replace("False", "false")


def written(value: Any) -> str:
    """A property: numbers are i64 unless they are given as text."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : i64"
        case tuple():
            return "[" + ", ".join(f"{n} : i64" for n in value) + "]"
        case _:
            return str(value)


def numbered(*dims: int, dtype: Any = np.float32) -> Array:
    """Numbers that are all different, where the type has enough values."""
    values = np.arange(int(np.prod(dims))).reshape(dims)
    return values % 2 == 1 if np.dtype(dtype) == bool else (values + 1).astype(dtype)
