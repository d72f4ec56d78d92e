"""One operation of TensorFlow's in a function of its own, as TOSA, interpreted and compiled, against what it means."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array

from .three_ways import three_ways, type_of

TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-5}
"""Of the greatest number in the result."""


@dataclass(frozen=True)
class Known:
    """An operand that is a constant."""
    array: Array


def program(name: str, properties: str, operands: Sequence[Array | Known], *results: str) -> str:
    """The text of a function of one operation: its arguments are the operands that are not known. `results` are element types;
    shapes are left open."""
    lines, types, arguments, values = [], [], [], []
    for number, operand in enumerate(operands):
        array = operand.array if isinstance(operand, Known) else operand
        types.append(str(type_of(array)))
        values.append(f"%a{number}")
        if isinstance(operand, Known):
            dense = f'dense<"0x{array.tobytes().hex().upper()}">' if array.size else "dense<>"
            lines.append(f'  %a{number} = "tf.Const"() <{{value = {dense} : {types[-1]}}}> : () -> {types[-1]}')
        else:
            arguments.append(f"%a{number}: {types[-1]}")
    given = ", ".join(f"tensor<*x{r}>" for r in results)
    signature = f"({', '.join(types)}) -> ({given})"
    lines.append(f'  %r:{len(results)} = "tf.{name}"({", ".join(values)}) <{{{properties}}}> : {signature}')
    found = ", ".join(f"%r#{i}" for i in range(len(results)))
    head, tail = f"func.func @main({', '.join(arguments)}) -> ({given}) {{\n", f"\n  return {found} : {given}\n}}\n"
    return head + "\n".join(lines) + tail


def check(name: str, properties: str, operands: Sequence[Array | Known], *results: str, tolerance: float | None = None
          ) -> Module:
    """The operation's results, by the TOSA interpreter and compiled, are the reference's; the module of TOSA."""
    arrays = [x for x in operands if not isinstance(x, Known)]
    module, found = three_ways(program(name, properties, operands, *results), arrays)
    near(found.interpreted, found.expected, f"{name} <{properties}> interpreted", tolerance)
    near(found.native, found.expected, f"{name} <{properties}> compiled", tolerance)
    return module


def near(found: Sequence[Any], expected: Sequence[Any], what: str, tolerance: float | None = None) -> None:
    """Integers and booleans exactly, floats within a part of the range."""
    assert len(found) == len(expected), what
    for mine, right in zip(found, expected):
        kinds = [f"{x.dtype}{list(x.shape)}" for x in (mine, right)]
        assert kinds[0] == kinds[1], f"{what}: {kinds[0]}, not {kinds[1]}"
        if right.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, right, what)
            continue
        wide = right.astype(np.float64)
        bound = (TOLERANCES[right.dtype.name] if tolerance is None else tolerance) * np.abs(wide).max(initial=0)
        np.testing.assert_allclose(mine.astype(np.float64), wide, rtol=0, atol=bound, err_msg=what)


def operators(module: Module) -> list[str]:
    """The names of the operators of a module's one function, constants left out."""
    names = [operation.op.name for operation in module.functions[0].body.operations]
    return [n for n in names if n not in ("tosa.const", "tosa.const_shape")]
