"""Random functions of the loop IR as C source against the interpreter: every operation beside every other."""
from __future__ import annotations

from pathlib import Path

import pytest
from tosaic.lowering.loops.text import print_function

from ..native.harness import differences, interpreted
from ..native.test_emit_random import Maker
from .functions import InC, needs_gcc

pytestmark = needs_gcc


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8, 16, 64])
def test_random_functions_agree_with_the_interpreter(lanes: int, is_shared: bool, tmp_path: Path) -> None:
    makers = [Maker(100 * lanes + i + 50 * is_shared, lanes, f"f{i}") for i in range(6)]
    functions = [m.make() for m in makers]
    native = InC(functions, tmp_path, is_shared=is_shared)
    for m, f in zip(makers, functions):
        data = {b: m.data[b] for b in f.params if b in m.data}
        for shift in (0, 3):
            faults = differences(native.run(f, data, shift=shift), interpreted(f, data))
            assert not faults, "\n".join([*faults, print_function(f)])
