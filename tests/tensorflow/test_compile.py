"""The corpus as native code: TensorFlow's answers, variables included."""
from __future__ import annotations

import pytest

from .compiled import run_compiled
from .corpus import PAIRS, Case


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_the_corpus_compiled_gives_tensorflows_answers(name: str, form: str) -> None:
    assert run_compiled(Case(name, form))
