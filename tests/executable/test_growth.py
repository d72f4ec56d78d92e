"""Compiling keeps nothing: machine code is given back at once where it is dropped, the rest with the next collection."""
from __future__ import annotations

import gc
import os
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Compiled
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.native.process.function_object_code import caller
from tosaic.runtime.interpreter import interpret


def graph(extent: int, weights: int = 4) -> str:
    """A matrix product, a padding and a sum: a kernel with constants, one with parts, one with a reduction."""
    a, b, c = f"tensor<1x{extent}x{weights}xf32>", f"tensor<1x{weights}x{weights}xf32>", "tensor<1xf32>"
    p = f"tensor<1x{extent + 2}x{weights}xf32>"
    return f"""func.func @main(%a: {a}) -> tensor<1x1x{weights}xf32> {{
  %b = "tosa.const"() <{{values = dense<0.5> : {b}}}> : () -> {b}
  %z = "tosa.const"() <{{values = dense<0.0> : {c}}}> : () -> {c}
  %s = "tosa.const_shape"() <{{values = dense<[0, 0, 1, 1, 0, 0]> : tensor<6xindex>}}> : () -> !tosa.shape<6>
  %m = "tosa.matmul"(%a, %b, %z, %z) : ({a}, {b}, {c}, {c}) -> {a}
  %p = "tosa.pad"(%m, %s, %z) : ({a}, !tosa.shape<6>, {c}) -> {p}
  %r = "tosa.reduce_sum"(%p) <{{axis = 1 : i32}}> : ({p}) -> tensor<1x1x{weights}xf32>
  return %r : tensor<1x1x{weights}xf32>
}}"""


def compiled(extent: int) -> Compiled:
    return tosaic.load(graph(extent)).main.trace().lower().compile(tosaic.Context("growth"))


def test_an_engine_goes_as_soon_as_its_function_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[weakref.ref[Engine]] = []
    begin = Engine.__init__

    def noted(self: Engine, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        engines.append(weakref.ref(self))

    caller()  # the code behind all function objects stays
    monkeypatch.setattr(Engine, "__init__", noted)
    gc.collect()
    gc.disable()
    try:
        function = compiled(5)
        assert function(np.ones((1, 5, 4), np.float32)).tolist() == [[[10.0] * 4]]
        assert [e() is not None for e in engines] == [True]
        del function
        assert [e() is not None for e in engines] == [False]
    finally:
        gc.enable()


@pytest.mark.sampled(4)
def test_no_object_stays_of_graphs_that_were_compiled_and_dropped() -> None:
    for extent in range(3, 13):
        compiled(extent)
    gc.collect()
    before = Counter(type(o).__name__ for o in gc.get_objects())
    for extent in range(13, 43):  # shapes that no cache has seen
        compiled(extent)
    gc.collect()
    after = Counter(type(o).__name__ for o in gc.get_objects())
    kinds = ("Module", "Function", "Operation", "Kernel", "Program", "Buffer", "Executable", "Compiled", "ExecutionEngine")
    assert {k: after[k] - before[k] for k in kinds if after[k] > before[k]} == {}
    grown = sum(after.values()) - sum(before.values())
    assert grown < 30 * 20, (after - before).most_common(10)


@pytest.mark.sampled(4)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's account of memory")
def test_memory_of_150_graphs_compiled_and_dropped_is_given_back() -> None:
    def resident_kib() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    for extent in range(3, 33):
        compiled(extent)
    gc.collect()
    before = resident_kib()
    for extent in range(150):
        compiled(3 + extent % 30)
    gc.collect()
    assert resident_kib() - before < 150 * 8  # KiB; below 1 each over ten thousand


def test_the_interpreter_forgets_a_graph_that_is_dropped() -> None:
    model = tosaic.load(graph(3))
    module = model.module
    interpret(module, "main", [np.ones((1, 3, 4), np.float32)])
    gone = weakref.ref(module)
    del model, module
    gc.collect()
    assert gone() is None
