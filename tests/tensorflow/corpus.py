"""The corpus of TensorFlow's graphs: cases in several forms, with TensorFlow's answers and the variables after each call."""
from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tosaic.lowering.dialects.tf.types import is_resource
from tosaic.lowering.graph.graph import Function, Module, Value
from tosaic.lowering.graph.types import Array, TensorType
from tosaic.lowering.text.reader import read_module

DATA = Path(__file__).parents[1] / "data" / "tensorflow"
CASES = sorted(d.name for d in DATA.iterdir() if (d / "meta.json").exists())
FORMS = ("executor", "functional", "regions", "functionalized")
PAIRS = [(case, form) for case in CASES for form in FORMS if (DATA / case / f"{form}.mlir").exists()]


@dataclass(frozen=True)
class Variable:
    """An argument that is the handle of a variable: the variable's name in the data."""
    name: str


@dataclass(frozen=True)
class Call:
    """One call of a case: the function, its arguments, TensorFlow's results (none where it must fail), and the variables
    afterwards, by their names in the data."""
    function: str
    arguments: tuple[Array | Variable, ...]
    results: tuple[Array, ...] | None
    variables: dict[str, Array] = field(default_factory=dict)


class Case:
    """A case in one form."""

    def __init__(self, name: str, form: str) -> None:
        self.name, self.form, folder = name, form, DATA / name
        self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_text())
        self.module: Module = module_of(folder / f"{form}.mlir")
        with np.load(folder / "data.npz") as data:
            self.data = {key: data[key] for key in data.files}

    @property
    def initial(self) -> dict[str, Array]:
        """The variables before the first call."""
        return {key.removeprefix("var_init/"): value for key, value in self.data.items() if key.startswith("var_init/")}

    def bindings(self) -> dict[str, str]:
        """The name in the module of each variable that the module binds to an argument itself, by its name in the data."""
        found = {}
        for who in set(self.callees()):
            function = self.function(who)
            for number, attributes in enumerate(function.argument_attributes):
                symbol, captured = attributes.get("tf_saved_model.bound_input"), self.captured(who, number)
                if symbol is not None and captured.startswith("var:"):
                    found[captured.removeprefix("var:")] = str(symbol.path[-1])  # type: ignore[union-attr]
        return found

    def callees(self) -> list[str]:
        calls = self.meta["calls"]
        return list(calls) if isinstance(calls, list) else ["f"] * int(calls)

    def captured(self, who: str, number: int) -> str:
        """What an argument captures: "var:NAME", "tensor", or nothing."""
        return str(self.meta.get("captures", {}).get(who, {}).get(str(number), ""))

    def function(self, who: str) -> Function:
        """The function that a call is of."""
        public = [f for f in self.module.functions if not f.is_private]
        match self.meta["kind"]:
            case "var":
                return next(f for f in public if re.search(rf"_{who}_\d+$", f.name))
            case "v1":
                return next(f for f in public if f.name in ("main", "serving_default"))
            case _:
                return public[0]

    def calls(self) -> Iterator[Call]:
        for k, who in enumerate(self.callees()):
            function = self.function(who)
            results = tuple(self.data[f"call{k}/out{i}"] for i in range(len(function.result_types))) if (
                str(k) not in self.meta.get("errors", {})) else None
            prefix = f"call{k}/var/"
            yield Call(function.name, tuple(self.arguments(k, who, function)), results,
                       {key.removeprefix(prefix): value for key, value in self.data.items() if key.startswith(prefix)})

    def arguments(self, k: int, who: str, function: Function) -> Iterator[Array | Variable]:
        """Those that the caller gives; what the module binds to its variables is left out."""
        attributes = function.argument_attributes or ({},) * len(function.arguments)
        count = 0
        for number, (value, own) in enumerate(zip(function.arguments, attributes, strict=True)):
            captured = self.captured(who, number)
            if "tf_saved_model.bound_input" in own:
                continue
            if captured.startswith("var:"):
                yield Variable(captured.removeprefix("var:"))
            elif captured == "tensor":
                yield typed(self.data[f"capture/in{number}"], value)
            else:
                yield typed(self.data[f"call{k}/in{place_of(own, count)}"], value)
                count += 1


def place_of(attributes: Any, number: int) -> int:
    """Which input of the data an argument is: a saved model may have them in another order."""
    path = attributes.get("tf_saved_model.index_path")
    found = re.fullmatch(r"in(\d+)", str(path[0])) if isinstance(path, tuple) and path else None
    return int(found[1]) if found else number


def typed(array: Array, value: Value) -> Array:
    """As the argument wants it: the data keeps bfloat16 as float32."""
    assert not is_resource(value.type)
    return array.astype(value.type.element.dtype) if isinstance(value.type, TensorType) else array


@functools.cache
def module_of(path: Path) -> Module:
    return read_module(path.read_text(), f"{path.parent.name}/{path.name}")


def same(found: Any, expected: Array, what: str) -> None:
    """Integers and booleans exactly, floats within 1e-5 of the range (half floats: 2e-3), special values as they are."""
    found = np.asarray(found)
    assert found.shape == expected.shape, f"{what}: {found.shape}, not {expected.shape}"
    if expected.dtype.kind in "iub":
        assert np.array_equal(found, expected), f"{what}: {found}, not {expected}"
        return
    mine, right = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(right)
    np.testing.assert_array_equal(np.where(finite, 0, mine), np.where(finite, 0, right), what)
    bound = (2e-3 if expected.dtype == np.float16 else 1e-5) * np.abs(right[finite]).max(initial=0)
    np.testing.assert_allclose(mine[finite], right[finite], rtol=0, atol=bound, err_msg=what)
