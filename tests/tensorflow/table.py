"""`python tests/tensorflow`: every graph of the corpus in every form, in the interpreters and compiled, against
TensorFlow's answers: how many results and variables are equal, or why there is none."""
from __future__ import annotations

from collections.abc import Callable

from tosaic.runtime.errors import Problem

from .compiled import run_compiled
from .corpus import PAIRS, Case
from .interpreted import run_interpreted


def verdict(run: Callable[[Case], int], name: str, form: str) -> str:
    try:
        return f"{run(Case(name, form))} equal"
    except Problem as problem:
        return problem.message
    except AssertionError as error:
        return f"differs: {str(error).splitlines()[0]}"


def main() -> int:
    failed = 0
    print(f"{'graph':26}{'form':16}{'interpreter':14}native")
    for name, form in PAIRS:
        found = [verdict(run, name, form) for run in (run_interpreted, run_compiled)]
        failed += not all(f.endswith(" equal") for f in found)
        print(f"{name:26}{form:16}{found[0]:14}{found[1]}", flush=True)
    print(f"{len(PAIRS)} graphs, {failed} not equal")
    return int(bool(failed))
