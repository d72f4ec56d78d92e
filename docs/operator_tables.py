"""Examples of `tosaic.ops` and `tosaic.tosa`, of which there are hundreds, made from tables: a call for each, the arrays that
it is called with, and what comes out. That is NumPy's or SciPy's result (`ops`) or the reference interpreter's (`tosa`), which
share nothing with the compiler; `failures` compares.

A function of `ops` that no table has gets the first call of `USUAL` that NumPy takes and that can be traced.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import tosaic
from operator_calls import ARRAYS, OPS, REFERENCES, SENTENCES, TOSA, USUAL
from tosaic.runtime.interpreter import interpret

RADIANS = frozenset(("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "asin", "acos", "atan", "atan2", "angle"))
"""Functions of angles or with angles as results."""
ERROR = 2e-4
"""How far compiled floats may be off NumPy's, relative to 1 and to the number: some are f32 where NumPy's are float64."""
MOST_NUMBERS = 48
"""Results with more numbers are shown by their shape."""


def generated(name: str, value: Any, own: str) -> str:
    """What is said of an operator behind its docstring; nothing of other names."""
    group, _, title = name.rpartition(".")
    if group == "tosaic.tosa" and title in TOSA:
        return text("tosa", title, TOSA[title], own, result_of_interpreter(TOSA[title]))
    if group.startswith("tosaic.ops") and callable(value) and not isinstance(value, type):
        call = call_of(group, title)
        return text(group.removeprefix("tosaic."), title, call, own, expected(group, title, call)) if call else ""
    return ""


def text(module: str, title: str, call: str, own: str, result: Any) -> str:
    """A sentence where there is none, an example, what it says of shapes, units and errors."""
    names = [n for n in ARRAYS if n in names_in(call)]
    sentence = "" if own else SENTENCES.get(title, f"What NumPy's function `{title}` does, of traced tensors.")
    setting = "".join(f"{n} = {ARRAYS[n]}\n" for n in names)
    inputs = ", ".join(f"`{n}` {described(arrays()[n])}" for n in names) or "none"
    unit = " Angles are in radians." if title in RADIANS else ""
    imported = f"from tosaic import {module.partition('.')[0]}"
    return (f"{sentence}\n\n```python\nimport numpy as np\nimport tosaic\n{imported}\n\n{setting}\n@tosaic.jit\n"
            f"def f({', '.join(names)}):\n    return {call}\n\nprint(f({', '.join(names)}))\n{printed(result)}```\n\n"
            f"In this call of `{module}.{title}`: {inputs}; the result is {all_described(result)}.{unit} "
            "Raises a `tosaic.Problem` at the caller's line where types, shapes or attributes do not go together.").strip()


def names_in(call: str) -> set[str]:
    return set(compile(call, "call", "eval").co_names)


def printed(result: Any) -> str:
    if sum(np.size(r) for r in flat(result)) > MOST_NUMBERS:
        return ""
    with np.printoptions(precision=4, suppress=True):
        return "".join(f"# {line}\n" for line in str(plain(result)).splitlines())


def plain(result: Any) -> Any:
    return [np.asarray(r) for r in result] if isinstance(result, list | tuple) else np.asarray(result)


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def described(array: Any) -> str:
    array = np.asarray(array)
    return f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"


def all_described(result: Any) -> str:
    """The shapes of a result: its types may be narrower than NumPy's."""
    return " and ".join(f"of shape [{', '.join(map(str, np.shape(r)))}]" for r in flat(result)) or "none"


@cache
def arrays() -> dict[str, Any]:
    return {name: eval(source, {"np": np}) for name, source in ARRAYS.items()}


@cache
def call_of(group: str, title: str) -> str:
    """The call of a function of `ops`: of the table, or the first that goes."""
    place = group.removeprefix("tosaic.")
    short = f"{place}.{title}".removeprefix("ops.")
    if short in OPS:
        return f"{place}.{title}({OPS[short]})"
    for usual in USUAL:
        call = f"{place}.{title}({usual})"
        if goes(lambda call=call: expected(group, title, call)) and goes(lambda call=call: traced(call)):
            return call
    return ""


def goes(action: Callable[[], Any]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            action()
        except Exception:
            return False
    return True


def namespace(**values: Any) -> dict[str, Any]:
    """What calls are evaluated in."""
    return {"np": np, "math": math, "ops": tosaic.ops, "tosa": tosaic.tosa, **values}


def function_of(calls: Mapping[str, str]) -> Any:
    """A function with all these calls, by their names."""
    def run(given: dict[str, Any]) -> dict[str, Any]:
        values = namespace(**given)
        return {name: eval(call, values) for name, call in calls.items()}

    return tosaic.jit(run)


def inputs_of(calls: Mapping[str, str]) -> dict[str, Any]:
    used = {name for call in calls.values() for name in names_in(call)}
    return {name: array for name, array in arrays().items() if name in used}


def traced(call: str) -> Any:
    calls = {"result": call}
    return function_of(calls).trace(inputs_of(calls))


def expected(group: str, title: str, call: str) -> Any:
    """What NumPy or SciPy computes."""
    values = {"np": np, "math": math, **arrays()}
    path = group.removeprefix("tosaic.ops").strip(".")
    if not path and title in REFERENCES:
        return eval(REFERENCES[title], values)
    if path == "special":
        import scipy.special
        home: Any = scipy.special
    else:
        home = getattr(np, path) if path else np
    function = getattr(home, title)
    return eval("function" + call[call.index("("):], {**values, "function": function})


@cache
def result_of_interpreter(call: str) -> Any:
    graph = traced(call)
    results = interpret(graph.module, graph.function, list(inputs_of({"": call}).values()))
    return results[0] if len(results) == 1 else results


def failures() -> Iterator[str]:
    """Run every example, and compare it with what the page says: those of `tosa` as machine code, those of `ops` in the
    interpreter, because LLVM takes long for hundreds of functions, which other tests compile, one by one."""
    from reference import modules
    for group, module in modules().items():
        if group.startswith("tosaic.ops"):
            calls = {n: call for n in module.__all__ if callable(getattr(module, n)) and (call := call_of(group, n))}
            wanted = {n: expected(group, n, call) for n, call in calls.items()}
            paired = {n: call for n, call in calls.items() if is_complex(wanted[n])}  # two tensors in a graph
            found = {n: result_of_interpreter(call) for n, call in calls.items() if n not in paired} | compiled(paired)
            yield from different(group, found, wanted)
    yield from different("tosaic.tosa", compiled(TOSA), {name: result_of_interpreter(call) for name, call in TOSA.items()})


def is_complex(result: Any) -> bool:
    return any(map(np.iscomplexobj, flat(result)))


def compiled(calls: Mapping[str, str]) -> dict[str, Any]:
    results: dict[str, Any] = function_of(calls)(inputs_of(calls)) if calls else {}
    return results


def different(group: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in wanted:
        ours, theirs = flat(found[name]), flat(wanted[name])
        if len(ours) != len(theirs) or not all(alike(a, b) for a, b in zip(ours, theirs)):
            yield f"{group}.{name}: its example gives {found[name]}, and not {wanted[name]}"


def alike(ours: Any, theirs: Any) -> bool:
    a, b = (np.asarray(v).astype(np.complex128) for v in (ours, theirs))
    return a.shape == b.shape and bool(np.allclose(a, b, ERROR, ERROR, equal_nan=True))
