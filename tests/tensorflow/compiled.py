"""Runs a case of the corpus as native code, call after call, with its variables in a context of its own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.types import Array, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.runtime.errors import Problem
from tosaic.runtime.variables import Context

from .corpus import Case, Variable, same


def run_compiled(case: Case) -> int:
    """Hold every result, and every variable after every call, against TensorFlow's; how many there were."""
    context, names, count = Context(case.name), case.bindings(), 0
    initial = {names.get(key, key): value for key, value in case.initial.items()}
    compiled: dict[str, Any] = {}
    for k, call in enumerate(case.calls()):
        if call.function not in compiled:
            compiled[call.function] = compile_function(case, call.function, call.arguments, initial, context)
        arrays = [a for a in call.arguments if not isinstance(a, Variable)]
        if call.results is None:
            check_fails(compiled[call.function], arrays, context)
            continue
        found = compiled[call.function](*arrays)
        results = found if isinstance(found, tuple) else (found,)
        for i, (result, expected) in enumerate(zip(results, call.results, strict=True)):
            same(result, expected, f"call {k}, result {i}")
            count += 1
        for key, expected in call.variables.items():
            same(context.read(names.get(key, key)), expected, f"variable {key} after call {k}")
            count += 1
    return count


def check_fails(function: Any, arrays: list[Array], context: Context) -> None:
    """A call in which TensorFlow finds nothing to fetch fails here too, and changes no variable."""
    before = context.snapshot()
    with pytest.raises(Problem, match="is fetched, but it is dead") as caught:
        function(*arrays)
    assert caught.value.position is not None
    after = context.snapshot()
    assert before.keys() == after.keys() and all(np.array_equal(before[n], after[n]) for n in before)


def compile_function(case: Case, name: str, arguments: tuple[Array | Variable, ...], initial: dict[str, Array],
                     context: Context) -> Any:
    function = case.module.function(name)
    free = [v for v, own in zip(function.arguments, function.argument_attributes or ({},) * len(function.arguments))
            if "tf_saved_model.bound_input" not in own]
    symbols = {v.name: a.name for v, a in zip(free, arguments) if isinstance(a, Variable)}
    types = [TensorType(a.shape, v.tensor.element) for v, a in zip(free, arguments) if not isinstance(a, Variable)]
    module = to_tosa(case.module, name, types, Bindings(symbols, initial))
    verify(module)
    return Traced(module, name).compile(context=context)

