"""The corpus as native code: TensorFlow's answers, variables included."""
from __future__ import annotations

import pytest

from .compiled import run_compiled
from .corpus import CASES, PAIRS, Case

FORMS_OF = {name: [form for case, form in PAIRS if case == name] for name in CASES}
COMPILED = [(name, form) for i, name in enumerate(CASES)
            for form in FORMS_OF[name][i % min(2, len(FORMS_OF[name]))::2]]
"""Every other form of each case, in turn from one case to the next: all of them are interpreted (`test_interpret.py`)."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "form"), COMPILED)
def test_the_corpus_compiled_gives_tensorflows_answers(name: str, form: str) -> None:
    assert run_compiled(Case(name, form))
