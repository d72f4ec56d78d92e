"""Variables that C and Python share: a process loads the object of a model, and a context uses the memory of its variables."""
from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.c_symbols import variable_symbols
from tosaic.runtime.errors import Problem
from tosaic.runtime.variables import Context

from ..aot.c_programs import needs_gcc

pytestmark = needs_gcc

COUNTER = """tosa.variable @total.1 = dense<{initial}> : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = tosa.variable_read @total.1 : tensor<2xf32>
  %1 = tosa.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tosa.variable_write @total.1, %1 : tensor<2xf32>
  return %1 : tensor<2xf32>
}}
"""
READER = """func.func @main() -> tensor<2xf32> {
  %0 = tosa.variable_read @total.1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
OTHER = COUNTER.replace("2xf32", "2xi32").replace("{initial}", "1")


class Library:
    """A model as a shared library, called from ctypes."""

    def __init__(self, folder: Path, text: str, name: str, **how: str) -> None:
        artifact = tosaic.load(text).save(folder, name, **how)
        path = folder / f"{name}.so"
        subprocess.run(["gcc", "-shared", "-o", str(path), str(artifact.object)], check=True)
        self.name, self.code = name, ctypes.CDLL(str(path))

    def __call__(self, x: list[float]) -> list[float]:
        given, found = np.array(x, np.float32), np.zeros(2, np.float32)
        pairs = [(ctypes.c_size_t * 2)(a.ctypes.data, a.nbytes) for a in (given, found)]
        assert getattr(self.code, f"tosaic_{self.name}_run")(*pairs, None) == 0
        return found.tolist()

    def reset(self) -> None:
        assert getattr(self.code, f"tosaic_{self.name}_reset")() == 0

    def flag(self, namespace: str) -> int:
        return ctypes.c_uint8.in_dll(self.code, variable_symbols(namespace, "total.1").flag).value


def call(program: Any, *x: list[float]) -> list[float]:
    found: list[float] = program(*(np.array(a, np.float32) for a in x)).tolist()
    return found


def counter(context: Context, initial: str = "1.0", text: str = COUNTER) -> Any:
    return tosaic.load(text.format(initial=initial)).main.compile(context=context)


@pytest.mark.parametrize("how", [{}, {"namespace": "n/1"}], ids=["own", "namespace"])
def test_calls_from_c_and_from_python_count_together(tmp_path: Path, how: dict[str, str]) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both", **how)
    name = how.get("namespace", "both")
    context = Context(name, library=library.code)
    program, alone = counter(context), counter(Context("alone"))
    random = np.random.default_rng(0)
    for number in range(20):
        x = random.integers(-9, 9, 2).astype(float).tolist()
        found = library(x) if random.random() < 0.5 else call(program, x)
        assert found == call(alone, x), number
    assert context.read("total.1").tolist() == found and library.flag(name) == 1
    library.reset()
    assert context.read("total.1").tolist() == [1, 1] == call(program, [0, 0])
    context.set("total.1", np.array([5, 7], np.float32))
    assert library([1, 1]) == [6, 8]
    saved = context.snapshot()
    library([1, 1])
    context.restore(saved)
    assert library([0, 0]) == [6, 8]
    context.reset()
    assert library([0, 0]) == [1, 1]


@pytest.mark.parametrize("first", ["c", "python"])
def test_the_first_initial_value_counts(tmp_path: Path, first: str) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both")
    if first == "c":
        assert library([0, 0]) == [1, 1]
    program = counter(Context("both", library=library.code), "100.0")
    assert call(program, [0, 0]) == library([0, 0]) == ([1, 1] if first == "c" else [100, 100])


def test_a_program_that_only_reads_finds_what_c_has_written(tmp_path: Path) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both")
    context = Context("both", library=library.code)
    read = tosaic.load(READER).main.compile(context=context)
    with pytest.raises(Problem, match="no graph has declared and written it"):
        read()
    assert library([2, 3]) == read().tolist() == [3, 4]
    assert list(context) == ["total.1"]


def test_another_type_in_the_library_is_a_problem_and_changes_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both")
    context = Context("both", library=library.code)
    text = OTHER.replace("{{", "{").replace("}}", "}").replace("tosa.variable @total.1", "tosa.variable @first = dense<1> : "
                                                             "tensor<2xi32>\ntosa.variable @total.1", 1)
    with pytest.raises(Problem, match=r"variable total.1 is declared as tensor<2xi32>, but it has another type in the library"):
        tosaic.load(text).main.compile(context=context)
    assert len(context) == 0 and library.flag("both") == 0


def test_contexts_of_other_names_and_other_variables_are_their_own(tmp_path: Path) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both")
    elsewhere = counter(Context("elsewhere", library=library.code))
    beside = Context("both", library=library.code)
    other = counter(beside, text=COUNTER.replace("total.1", "total_1"))
    assert call(elsewhere, [1, 1]) == call(other, [1, 1]) == [2, 2] and library.flag("both") == 0
    assert library([0, 0]) == [1, 1]


def test_what_is_deleted_begins_anew(tmp_path: Path) -> None:
    library = Library(tmp_path, COUNTER.format(initial="1.0"), "both")
    context = Context("both", library=library.code)
    program = counter(context, "10.0")
    call(program, [1, 1])
    for forget in (lambda: context.delete("total.1"), context.clear):
        forget()
        assert library.flag("both") == 0 and len(context) == 0
        assert call(program, [1, 1]) == [11, 11] and library([1, 1]) == [12, 12]


def test_a_variable_that_a_caller_holds_is_nobodys_symbol(tmp_path: Path) -> None:
    path = tmp_path / "held.so"
    artifact = tosaic.load(COUNTER.format(initial="1.0")).save(tmp_path, "held", state="caller")
    subprocess.run(["gcc", "-shared", "-o", str(path), str(artifact.object)], check=True)
    context = Context("held", library=ctypes.CDLL(str(path)))
    assert call(counter(context), [1, 1]) == [2, 2]


def test_calls_from_python_still_wait_for_each_other(tmp_path: Path) -> None:
    library = Library(tmp_path, COUNTER.format(initial="0.0"), "both")
    program = counter(Context("both", library=library.code), "0.0")
    threads = [threading.Thread(target=lambda: [call(program, [1, 1]) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library([0, 0]) == [2000, 2000]


@pytest.mark.parametrize("given", ["both.so", 3])
def test_a_library_is_a_loaded_one(given: Any) -> None:
    with pytest.raises(Problem, match="not a loaded library"):
        Context("both", library=given)
