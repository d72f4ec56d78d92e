"""The types of `tosaic.tosa`, for editors and type checkers: made from the table of operators, as the functions are."""
from __future__ import annotations

import dataclasses
import inspect
import textwrap
from typing import Any

import tosaic
from tosaic.jit.tracing.tensor import Tensor
from tosaic.jit.tracing.tosa_namespace import default
from tosaic.lowering.dialects import tosa as _  # noqa: F401  fills the table
from tosaic.lowering.graph.graph import Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, TensorType

HEAD = '''"""Types of `tosaic.tosa`. From the table of operators: pytest tests/project/test_public_names.py --update-golden"""
from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from .tensor import Tensor

Operand: TypeAlias = Tensor | ArrayLike

'''
TYPES = {"array<i32>": "Sequence[int]", "array<i64>": "Sequence[int]", "i32": "int", "i64": "int", "bool": "bool",
         "nan_mode": "str", "rounding_mode": "str", "resize_mode": "str", "string": "str"}
RESULTS = {"TensorType": "Tensor", "ShapeType": "Tensor", "tuple[TensorType, TensorType]": "tuple[Tensor, Tensor]",
           "tuple[()]": "tuple[()]"}
WIDTH, NEWLINE = 120, "\n"
ZERO = {("mul", "shift"), ("pad", "pad_const")}


def stub() -> str:
    """The text of the file."""
    return HEAD + "\n".join(signature(name) for name in dir(tosaic.tosa))


def signature(name: str) -> str:
    if name in ("const", "const_shape"):
        taken = "values: Any, dtype: Any = ..." if name == "const" else "values: Sequence[int]"
        return f'def {name}({taken}) -> Tensor:\n    """A constant."""\n'
    operator: Any = OPERATORS[f"tosa.{name}"]
    inferred = operator.infer.__annotations__["return"]
    result = RESULTS.get(inferred, "Tensor | tuple[Tensor, ...]")
    described = (operator.__doc__ or "").split("\n\n")[0].replace("\\", "\\\\")
    lines = textwrap.wrap(f"def {name}({', '.join(parameters(name, operator))}", WIDTH, break_long_words=False,
                          subsequent_indent=" " * len(f"def {name}("))
    fits = len(lines[-1]) + len(result) < WIDTH
    return "\n".join(lines) + f"{'' if fits else NEWLINE + ' ' * 8}) -> {result}:\n    \"\"\"{described}\"\"\"\n"


def parameters(name: str, operator: Any) -> list[str]:
    found, keyword, optional = [], False, False
    fields = {f.name: f for f in dataclasses.fields(operator)}
    for p in inspect.signature(getattr(tosaic.tosa, name)).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            found.append(f"*{p.name}: Operand")
            keyword = True
        elif p.kind is p.KEYWORD_ONLY:
            found += [] if keyword else ["*"]
            keyword = True
            kind = TYPES.get(fields[p.name].metadata["mlir"], "Any")
            found.append(f"{p.name}: {kind}{'' if is_required(name, fields[p.name]) else ' = ...'}")
        else:
            optional = optional or p.name.endswith("_zp") or (name, p.name) in ZERO
            found.append(f"{p.name}: Operand{' = ...' if optional else ''}")
    return found


def is_required(operator: str, field: dataclasses.Field[Any]) -> bool:
    if field.default is not dataclasses.MISSING:
        return False
    image: Any = Tensor(Value("x", TensorType((1, 2, 3, 4), F32)), None)  # type: ignore[arg-type]
    try:
        default(operator, field.name, (image,))
    except tosaic.Problem:
        return True
    return False
