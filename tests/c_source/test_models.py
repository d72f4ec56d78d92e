"""Whole models as C source: the bytes that the same model gives as code of this process."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.target.presets import host
from tosaic.runtime.variables import Context

from ..aot.callers import values
from ..models.sources import WAKE_WORDS, stream, wake_word_model
from .functions import needs_gcc
from .library import Library, lowered_for_c, scalar_host

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"
OPEN = {"tmfx_dyn.mlir"}
"""Models whose shapes are open: they are compiled for the shapes of a call, and never as C."""
CORPUS = sorted({p.name for p in (DATA / "corpus").glob("*.mlir") if "int8" not in p.name} - OPEN)
"""Those of int8 are in `test_optimised`."""
Array = np.ndarray[Any, Any]


def same(ours: Array, theirs: Array) -> bool:
    """Bit for bit, but any NaN is as good as another."""
    bits = f"u{ours.dtype.itemsize}"
    equal = ours.reshape(-1).view(bits) == np.asarray(theirs).reshape(-1).view(bits)
    return bool((equal | ((ours != ours) & (theirs != theirs)).reshape(-1)).all())


@pytest.mark.sampled(4)
@pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")
@pytest.mark.parametrize("name", CORPUS)
def test_a_model_gives_the_bytes_of_code_in_this_process(name: str, tmp_path: Path) -> None:
    """Floats too: both do the same operations in the same order."""
    model, context, random = tosaic.load(DATA / "corpus" / name), Context("test"), np.random.default_rng(11)
    library = Library(lowered_for_c(model), tmp_path)
    compiled = [entry.compile(tosaic.CompileOptions(scalar_host(), threads=1), context) for entry in model]
    for call in range(3 * len(compiled)):
        number = call % len(compiled)
        program = library.interface.entries[number].program
        arrays = [values(random, b.shape, b.dtype) for b in program.inputs]
        expected = failure = None
        try:
            expected = compiled[number].executable(*arrays)
        except tosaic.Problem as problem:
            failure = str(problem)
        if failure is not None:
            with pytest.raises(tosaic.Problem) as caught:
                library(*arrays, entry=number)
            assert str(caught.value) == failure
            continue
        for ours, theirs in zip(library(*arrays, entry=number), expected, strict=True):
            assert same(ours, theirs), (name, call)


@pytest.mark.parametrize("name", WAKE_WORDS[::2])
def test_a_wake_word_model_gives_the_same_bytes_for_a_hundred_steps_of_sound(name: str, tmp_path: Path) -> None:
    """Against the code of this process with all its vectors: integers are the same everywhere."""
    model = tosaic.load(wake_word_model(name), name=name)
    library, step = Library(lowered_for_c(model), tmp_path), model.main.compile(context=Context(name))
    answers = set()
    for x in stream(name, 100):
        (ours,), theirs = library(x), step(x)
        assert ours.tobytes() == theirs.tobytes()
        answers.add(int(ours.reshape(-1)[0]))
    assert len(answers) > 10
