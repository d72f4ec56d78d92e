"""Functions that were imported one by one, their variables as arguments that are handles: modules that know nothing of each
other share variables by the names that the caller gives."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.jit.models.model import Model
from tosaic.runtime.variables import Context

from .corpus import DATA, Case, same

CASES = [(name, base) for name in ("v_counter", "v_counter_three_functions", "v_lstm", "v_assign_in_cond")
         for base in ("executor", "functional")]


@pytest.mark.parametrize(("name", "base"), CASES)
def test_functions_share_the_variables_that_their_handles_are_bound_to(name: str, base: str) -> None:
    case, context, count = Case(name, "executor"), Context(f"{name} {base}"), 0
    models = {who: load(case, base, who).entry() for who in set(case.callees())}
    functions = {who: entry.compile(context=context) for who, entry in models.items()}
    for k, who in enumerate(case.callees()):
        inputs = [case.data[f"call{k}/in{i}"] for i in range(len(models[who].inputs))]
        found = functions[who](*inputs)
        results = found if isinstance(found, tuple) else (found,)
        for i, result in enumerate(results):
            same(result, case.data[f"call{k}/out{i}"], f"call {k}, result {i}")
            count += 1
        prefix = f"call{k}/var/"
        for key in (key for key in case.data if key.startswith(prefix)):
            same(context.read(key.removeprefix(prefix)), case.data[key], f"variable {key} after call {k}")
            count += 1
    assert count


def load(case: Case, base: str, who: str) -> Model:
    """One function, with the names of its variables, and their first values."""
    path = DATA / case.name / f"{base}_{who}.mlir"
    captured = case.meta["captures"].get(who, {})
    names = {f"arg{number}": what.removeprefix("var:") for number, what in captured.items() if what.startswith("var:")}
    return tosaic.load(path, variables={**names, **{k: np.asarray(v) for k, v in case.initial.items()}})
