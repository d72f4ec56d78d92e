"""Random operations of TensorFlow, right and wrong: of each operator in the table of definitions, with operands of any number,
type and shape and attributes that are there, missing, of another kind or out of range.

What is made follows the definitions often enough that some of it is right; nothing is known here of what an operator means.
"""
from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tf.definitions import WRITTEN, definitions
from tosaic.lowering.graph.types import ELEMENT_TYPES, Array

SHAPES: Sequence[tuple[int, ...]] = ((), (1,), (2,), (3,), (4,), (2, 2), (2, 3), (3, 4), (4, 2), (1, 4, 4), (2, 3, 4),
                                     (1, 4, 4, 2), (2, 2, 2, 1), (3, 3, 2, 2), (1, 2, 3, 4, 1))
ELEMENTS = ("f32", "i32", "i64", "i1", "f64", "bf16", "f16", "i8", "ui8")
LISTS = ("[1, 1, 1, 1]", "[1, 2, 2, 1]", "[1, 2, 1, 1]", "[]", "[2]", "[0, 0]", "[1, 1, 1, 1, 1]", "[-1, 0]", "[1, 0, 0, 1]",
         "[0, 3, 1, 2]")
JUNK = ("unit", "true", "3 : i64", "-7 : i32", "1.5 : f32", '"what"', '""', "[1.5, 2.0]", '["x"]', "i32", "@nothing", "{}",
        "dense<1> : tensor<i32>", "array<i64>", "9223372036854775807 : i64")
EQUATIONS = ("", "b,b->b", "ij,jk->ik")


class Maker:
    """One operation as a function @main."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.random = name, random.Random(f"{name} {seed}")
        self.definition: Mapping[str, Any] = definitions()[name]
        self.wild = self.random.random() < 0.7
        """True if something is wrong, maybe."""
        self.counts: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.base = self.random.choice(SHAPES)
        self.arrays: list[Array] = []
        self.lines: list[str] = []
        self.arguments: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.wild and self.random.random() < probability

    # ---- operands ----------------------------------------------------------------------------------------------------
    def type(self, spec: str) -> str:
        """The element type of an operand or result."""
        if self.chance(0.08):
            return self.random.choice(ELEMENTS)
        if spec.startswith("="):
            return WRITTEN.get(spec[1:], f"!tf_type.{spec[1:]}")
        if spec not in self.types:
            allowed = self.definition["attributes"].get(spec, {}).get("allowed")
            written = [WRITTEN.get(a, "") for a in allowed or ()]
            known = [e for e in written if e in ELEMENTS] or [e for e in written if e] or list(ELEMENTS)
            preferred = [e for e in ("f32", "i32", "i1") if e in known]
            self.types[spec] = self.random.choice(preferred if preferred and self.random.random() < 0.7 else known)
        return self.types[spec]

    def specs(self, specs: Sequence[str]) -> list[str]:
        found: list[str] = []
        for spec in specs:
            count, _, element = spec.rpartition("*")
            if spec.startswith("*"):
                found += [f"{element}{i}" for i in range(self.random.randint(0, 3))]
            else:
                found += [element] * (self.counts.setdefault(count, self.random.randint(1, 3)) if count else 1)
        if self.chance(0.1) and found:
            found.pop(self.random.randrange(len(found)))
        if self.chance(0.1):
            found.append(self.random.choice(found or ["T"]))
        return found

    def operand(self, spec: str, number: int) -> str:
        """Adds an argument or a constant; its type."""
        element = self.type(spec)
        name = f"%a{number}"
        if element not in ELEMENT_TYPES:
            self.arguments.append(f"{name}: tensor<{element}>")
            self.arrays.append(np.zeros(()))
            return f"tensor<{element}>"
        shape = self.base if self.random.random() < 0.6 else self.random.choice(SHAPES)
        dtype = ELEMENT_TYPES[element].dtype
        source = np.random.default_rng(self.random.randrange(1 << 30))
        is_whole = element.startswith(("i", "u"))
        if is_whole and number and self.random.random() < 0.6:  # axes, sizes, indices
            shape = self.random.choice(SHAPES[:5])
        array = (source.integers(0, 2, shape) if element == "i1" else source.integers(-1 if self.chance(0.3) else 0, 4, shape)
                 if is_whole else source.uniform(-2, 2, shape)).astype(dtype)
        text = "".join(f"{n}x" for n in shape) + element
        if is_whole and element != "i1" and self.random.random() < 0.7:
            value = f"dense<{array.tolist()}> : tensor<{text}>"
            self.lines.append(f'{name} = "tf.Const"() <{{value = {value}}}> : () -> tensor<{text}>')
        else:
            self.arguments.append(f"{name}: tensor<{text}>")
            self.arrays.append(array)
        return f"tensor<{text}>"

    # ---- attributes --------------------------------------------------------------------------------------------------
    def value(self, attribute: Mapping[str, Any]) -> str | None:
        if self.chance(0.1):
            return self.random.choice(JUNK)
        match attribute["kind"]:
            case "bool":
                return self.random.choice(("true", "false"))
            case "int":
                return f"{self.random.choice((-1, 0, 1, 2, 3))} : i64"
            case "float":
                return f"{self.random.choice((0.0, 0.5, 1.0, -1.0))} : f32"
            case "string":
                return f'"{self.random.choice(attribute.get("allowed") or EQUATIONS)}"'
            case "list(int)" if attribute.get("least", 0) > 4:
                return self.random.choice(("[1, 1, 1, 1, 1]", "[1, 2, 2, 1, 1]"))
            case "list(int)":
                return self.random.choice(LISTS[:3] if self.random.random() < 0.6 else LISTS)
            case "list(float)":
                return self.random.choice(("[]", "[1.0, 2.0]"))
            case "list(string)":
                return "[]"
            case "type":
                return self.random.choice(ELEMENTS)
            case "shape":
                return self.random.choice(("#tf_type.shape<>", "#tf_type.shape<2x3>", "#tf_type.shape<*>"))
            case "tensor":
                return "dense<1.0> : tensor<f32>"
            case _:
                return None

    def attributes(self) -> dict[str, str]:
        found = {}
        for name, attribute in self.definition["attributes"].items():
            leave_out = 0.6 if attribute.get("optional") or attribute["kind"] in ("type", "list(type)") else 0.0
            if name in self.counts or self.random.random() < leave_out or self.chance(0.1):
                continue
            value = self.value(attribute)
            if value is not None:
                found[name] = value
        return found

    def text(self) -> str:
        operands = [self.operand(spec, i) for i, spec in enumerate(self.specs(self.definition["operands"]))]
        results = [self.type(spec) for spec in self.specs(self.definition["results"])]
        return self.written(operands, results, self.attributes())

    def written(self, operands: Sequence[str], results: Sequence[str], attributes: Mapping[str, str]) -> str:
        """The module with the operation of these operands' types, these elements of results and these attributes."""
        given = ", ".join(name if value == "unit" else f"{name} = {value}" for name, value in attributes.items())
        found = ", ".join(f"tensor<*x{r}>" if not r.startswith("!") else f"tensor<{r}>" for r in results)
        names = ", ".join(f"%a{i}" for i in range(len(operands)))
        left = f"%r:{len(results)} = " if results else ""
        lines = [*self.lines, f'{left}"{self.name}"({names}) <{{{given}}}> : ({", ".join(operands)}) -> ({found})',
                 f"return {', '.join(f'%r#{i}' for i in range(len(results)))} : {found}" if results else "return"]
        body = "\n  ".join(lines)
        return f"func.func @main({', '.join(self.arguments)}) -> ({found}) {{\n  {body}\n}}"


def random_operation(name: str, seed: int) -> tuple[str, list[Array]]:
    """The text of a module, and arrays for its arguments."""
    maker = Maker(name, seed)
    return maker.text(), maker.arrays
