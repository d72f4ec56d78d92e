"""Whole models as C source: the bytes that the same model gives as code of this process."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.native.c_source.portable import PORTABLE
from tosaic.lowering.target.presets import host, target
from tosaic.lowering.target.target import Target
from tosaic.runtime.variables import Context

from ..aot.callers import values
from .functions import needs_gcc
from .library import Library, lowered_for_c

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"
CORPUS = sorted(p.name for p in (DATA / "corpus").glob("*.mlir"))


def scalar_host() -> Target:
    """This machine without vectors and fused products: as what C source is made for by default, but with code here."""
    plain = target("x86-64")
    return replace(PORTABLE, triple=plain.triple, cpu=plain.cpu, features=plain.features)


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
            same = ours.view(np.uint8) == np.asarray(theirs).view(np.uint8) if ours.shape else ours == theirs
            assert np.all(same) or np.array_equal(ours, theirs, equal_nan=True), name
