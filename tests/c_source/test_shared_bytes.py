"""C source of kernels whose scratch, operands and results lie on the same bytes: the values are the interpreter's."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from hypothesis import HealthCheck, given, settings
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target
from tosaic.lowering.text.printer import print_module
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph
from ..memory.test_instants import data, graphs
from .functions import needs_gcc
from .library import Library, lowered_for_c

pytestmark = needs_gcc


@pytest.mark.parametrize("machine", [target("any"), target("host")], ids=["scalar", "vectors"])
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(g=graphs())
def test_c_source_computes_on_shared_bytes(machine: Target, g: Graph, tmp_path: Path) -> None:
    module = g.module(g.result)  # type: ignore[attr-defined]
    model = tosaic.load(print_module(module))
    entries = lowered_for_c([model.main], tosaic.CompileOptions(machine, rows="never"))
    x = data(entries[0].program.inputs[0].shape)
    expected = interpret(module, module.function("main"), [x])[0]
    assert np.allclose(Library(entries, tmp_path)(x)[0], expected, rtol=1e-4, atol=1e-4)
