"""Damaged texts of the corpus: becoming TOSA ends in a graph that is sound, or in a Problem."""
from __future__ import annotations

import random
import re

import pytest
from tosaic.jit.models.tensorflow.graph_entries import entries, graph_of
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .corpus import CASES, DATA

SEEDS, ROUNDS = range(10), 10
CHANGES = [(r"(?<=[ x<\[,])-?\d+(?=[ x>\],:])", ("-1", "0", "1", "2", "3", "7", "100")),
           (r"\w+ = [^,<>{}\[\]]+, ", ("",)),
           (r"\b(?:f32|i32|i64|i1|f16|f64)\b", ("f32", "i32", "i64", "i1", "f64", "i8")),
           (r"\b(?:true|false)\b", ("true", "false")),
           (r"%[\w#]+", ()), (r'"tf\.\w+"', ())]
"""What is replaced, and by what; by another of the same text where nothing is said."""


def damaged(text: str, source: random.Random) -> str:
    for _ in range(source.randint(1, 3)):
        pattern, others = source.choice(CHANGES)
        found = list(re.finditer(pattern, text))
        if found:
            match = source.choice(found)
            text = text[:match.start()] + source.choice(others or [f[0] for f in found]) + text[match.end():]
    return text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_text_is_a_graph_or_a_problem(seed: int) -> None:
    source = random.Random(seed)
    for round_number in range(ROUNDS):
        path = DATA / source.choice(CASES) / "executor.mlir"
        functional = path.with_name("functional.mlir")
        text = damaged((functional if round_number % 2 and functional.exists() else path).read_text(), source)
        try:
            module = read_module(text, f"seed {seed}, turn {round_number}")
            verify(module)
            for name in entries(module):
                verify(graph_of(module, name, {}, None))
        except Problem as problem:
            assert problem.message
