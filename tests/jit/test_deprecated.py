"""Every spelling of before works as the new one does, and says it, at the line that uses it."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import CompileOptions, Memory

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32> }"""
X = np.arange(4, dtype=np.float32)
TARGET = tosaic.target("x86-64")
POOL = Memory(workspace_io=True)


def function(x: Any) -> Any:
    return x * 2 + 1


def lowered(entry: Any) -> str:
    return str(entry.show("loops") + entry.show("plan"))


CASES: list[tuple[str, str, Callable[[], Any], Callable[[], Any]]] = [
    ("lower(target)", "lower(tosaic.CompileOptions(target=...))",
     lambda: lowered(tosaic.load(TEXT).main.lower(TARGET)),
     lambda: lowered(tosaic.load(TEXT).main.lower(CompileOptions(TARGET)))),
    ("lower(target=...)", "lower(options=tosaic.CompileOptions(target=...))",
     lambda: lowered(tosaic.load(TEXT).main.lower(target=TARGET)),
     lambda: lowered(tosaic.load(TEXT).main.lower(CompileOptions(TARGET)))),
    ("lower(memory=...)", "lower(options=tosaic.CompileOptions(memory=...))",
     lambda: lowered(tosaic.load(TEXT).main.trace().lower(memory=POOL)),
     lambda: lowered(tosaic.load(TEXT).main.trace().lower(CompileOptions(memory=POOL)))),
    ("compile(memory=...)", "compile(options=tosaic.CompileOptions(memory=...))",
     lambda: lowered(tosaic.load(TEXT).main.compile(memory=POOL).lowered),
     lambda: lowered(tosaic.load(TEXT).main.compile(CompileOptions(memory=POOL)).lowered)),
    ("compile(target=...)", "compile(options=tosaic.CompileOptions(target=...))",
     lambda: tosaic.load(TEXT).main.trace().compile(target=tosaic.target("host"))(X).tolist(),
     lambda: tosaic.load(TEXT).main.trace().compile(CompileOptions(tosaic.target("host")))(X).tolist()),
    ("check(memory=...)", "check(options=tosaic.CompileOptions(memory=...))",
     lambda: tosaic.load(TEXT).check([[X]], memory=POOL).passes,
     lambda: tosaic.load(TEXT).check([[X]], CompileOptions(memory=POOL)).passes),
    ("tosaic.jit(num_threads=...)", "tosaic.jit(options=tosaic.CompileOptions(threads=...))",
     lambda: tosaic.jit(num_threads=2)(function).lower(X).threads,
     lambda: tosaic.jit(options=CompileOptions(threads=2))(function).lower(X).threads),
    ("tosaic.jit(precision=...)", "tosaic.jit(options=tosaic.CompileOptions(precision=...))",
     lambda: tosaic.jit(precision="bf16x6")(function).lower(X).options.precision,
     lambda: tosaic.jit(options=CompileOptions(precision="bf16x6"))(function).lower(X).options.precision),
    ("tosaic.jit(target=...)", "tosaic.jit(options=tosaic.CompileOptions(target=...))",
     lambda: lowered(tosaic.jit(target=TARGET)(function).lower(X)),
     lambda: lowered(tosaic.jit(options=CompileOptions(TARGET))(function).lower(X))),
    ("tosaic.jit(memory=...)", "tosaic.jit(options=tosaic.CompileOptions(memory=...))",
     lambda: lowered(tosaic.jit(memory=POOL)(function).lower(X)),
     lambda: lowered(tosaic.jit(options=CompileOptions(memory=POOL))(function).lower(X))),
    ("tosaic.compile(num_threads=...)", "tosaic.compile(options=tosaic.CompileOptions(threads=...))",
     lambda: tosaic.compile(TEXT, num_threads=2)(X).tolist(),
     lambda: tosaic.compile(TEXT, options=CompileOptions(threads=2))(X).tolist()),
    ("tosaic.Memory(rows=...)", "tosaic.CompileOptions(rows=...)",
     lambda: CompileOptions(memory=Memory(rows="memory")), lambda: CompileOptions(rows="memory")),
    ("tosaic.Memory(order=...)", "tosaic.CompileOptions(order=...)",
     lambda: CompileOptions(memory=Memory(order=False)), lambda: CompileOptions(order=False)),
    ("tosaic.Memory(threads=...)", "tosaic.CompileOptions(threads=...)",
     lambda: CompileOptions(memory=Memory(threads=2)), lambda: CompileOptions(threads=2)),
    ("tosaic.Memory(precision=...)", "tosaic.CompileOptions(precision=...)",
     lambda: CompileOptions(memory=Memory(precision="bf16x3")), lambda: CompileOptions(precision="bf16x3")),
    ("tosaic.Memory(target=...)", "tosaic.Memory(accessor=...)",
     lambda: Memory(target="c"), lambda: Memory(accessor="c")),
    ("tosaic.variable", "tosaic.Variable",
     lambda: tosaic.variable("deprecated", initial=np.zeros(2, np.float32)).shape,
     lambda: tosaic.Variable("deprecated", initial=np.zeros(2, np.float32)).shape),
    ("tosaic.variables", "tosaic.default_context", lambda: tosaic.variables, lambda: tosaic.default_context)]


@pytest.mark.parametrize(("old", "new", "deprecated", "wanted"), CASES, ids=[c[0] for c in CASES])
def test_an_old_spelling_works_and_names_the_new_one(old: str, new: str, deprecated: Callable[[], Any],
                                                     wanted: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = deprecated()
    said = [w for w in caught if w.category is DeprecationWarning]
    assert [str(w.message) for w in said] == [f"{old} is deprecated; write {new}"]
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wanted() == result


def test_an_option_of_memory_gives_way_to_one_of_the_compile() -> None:
    with pytest.warns(DeprecationWarning):
        memory = Memory(rows="memory", threads=3)
    options = CompileOptions(rows="never", memory=memory)
    assert (options.rows, options.threads, options.memory) == ("never", 3, Memory())
