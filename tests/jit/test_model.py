"""`tosaic.load`: a model's entry functions, from a path, bytes or text; what a file is shows in its bytes."""
from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic

DATA = Path(__file__).parents[1] / "data"

TWO = """
module {
  tosa.variable @model.count = dense<0> : tensor<1xi32>
  func.func @increase(%by: tensor<1xi32>) -> tensor<1xi32> {
    %0 = tosa.variable_read @model.count : tensor<1xi32>
    %1 = tosa.add %0, %by : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    tosa.variable_write @model.count, %1 : tensor<1xi32>
    return %1 : tensor<1xi32>
  }
  func.func @both(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = tosa.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = tosa.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @hidden(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    return %x : tensor<2x3xf32>
  }
}
"""
ONE = "func.func @only(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def test_entries_are_attributes_and_items() -> None:
    model = tosaic.load(TWO)
    assert [e.name for e in model] == ["increase", "both"] and len(model) == 2
    assert model.both is model["both"] and {"both", "increase"} <= set(dir(model)) and "hidden" not in dir(model)
    assert model.both.inputs == ("x: tensor<2x3xf32>",) and model.both.outputs == ("tensor<2x3xf32>",) * 2
    first, second = model.both(X)
    np.testing.assert_array_equal(first, np.abs(X))
    np.testing.assert_allclose(second, np.exp(X), rtol=1e-6)


def test_entries_share_the_variables_of_the_process() -> None:
    model, again = tosaic.load(TWO), tosaic.load(TWO)
    one = np.ones(1, np.int32)
    first = int(model.increase(one)[0])
    assert int(again.increase(one)[0]) == first + 1
    assert int(model.increase(one, context=tosaic.Context("other"))[0]) == 1
    tosaic.default_context.reset("model.count")


def test_a_model_of_one_entry_can_be_called_itself() -> None:
    np.testing.assert_array_equal(tosaic.load(ONE)(np.ones(4, np.float32)), np.ones(4))
    with pytest.raises(tosaic.Problem, match="2 entry functions: increase, both"):
        tosaic.load(TWO)(X)


def test_stages_of_an_entry_print() -> None:
    entry = tosaic.load(TWO).both
    assert str(entry.trace()) == str(entry.trace()) and "tosa.exp" in entry.show()
    compiled = entry.lower().compile()
    assert compiled.name == "both" and "arena" in str(compiled.report())
    assert entry.compile() is entry.compile()
    assert entry.check([[X]]).agrees


def test_names_that_are_not_there_are_problems() -> None:
    model = tosaic.load(TWO)
    with pytest.raises(AttributeError, match="no entry main; it has increase, both"):
        print(model.main)
    with pytest.raises(tosaic.Problem, match="no entry main"):
        print(model["main"])
    with pytest.raises(tosaic.Problem, match="hidden is private"):
        print(model["hidden"])


def test_a_path_bytes_and_an_open_file_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"  # the ending says nothing
    path.write_text(ONE)
    with path.open("rb") as file:
        models = [tosaic.load(path), tosaic.load(str(path)), tosaic.load(ONE.encode()), tosaic.load(file),
                  tosaic.load(io.StringIO(ONE)), tosaic.load(ONE)]
    assert [m.entry().name for m in models] == ["only"] * 6
    compiled = tosaic.compile(path)
    assert compiled.inputs == ("x",)


def test_what_is_no_model_is_a_problem_that_says_what_it_is(tmp_path: Path) -> None:
    np.savez(tmp_path / "arrays.npz", x=X)
    for source, words in ((b"ML\xefR\x01", "bytecode"), (b"\xff\xfe\x00\x01", "UTF-16"), (b"module {}\xff", "not UTF-8"),
                          (tmp_path, "folder"),
                          (tmp_path / "missing.mlir", "No such file"), (3, "cannot be read from an int"),
                          (tmp_path / "arrays.npz", "arrays.npz"), ("nul\0byte", "cannot be read")):
        with pytest.raises(tosaic.Problem) as found:
            tosaic.load(source)
        assert words in str(found.value)


def test_a_wrong_model_shows_its_line() -> None:
    with pytest.raises(tosaic.Problem) as found:
        tosaic.load(ONE.replace("return %x", "return %y"), "a.mlir")
    assert str(found.value).startswith("a.mlir:2:")


def test_a_tflite_file_is_converted() -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    model = tosaic.load(DATA / "corpus/v_lstm.tflite")
    other = tosaic.load(DATA / "corpus/v_lstm.mlir")
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 6)
    contexts = tosaic.Context("a"), tosaic.Context("b")
    for _ in range(3):
        np.testing.assert_array_equal(model.main(x, context=contexts[0]), other.main(x, context=contexts[1]))


@pytest.mark.parametrize("size", [8, 100, 3000])
def test_a_damaged_tflite_file_is_a_problem(size: int) -> None:
    data = (DATA / "corpus/v_lstm.tflite").read_bytes()
    with pytest.raises(tosaic.Problem, match="the file is damaged") as found:
        tosaic.load(data[:size], "broken.tflite")
    assert str(found.value).startswith("broken.tflite: error[syntax]: ")


def test_a_missing_converter_names_the_extra() -> None:
    code = ("import sys, importlib.machinery; sys.modules['tosa_converter_for_tflite'] = None; import tosaic\n"
            f"try: tosaic.load({str(DATA / 'corpus/v_lstm.tflite')!r})\n"
            "except tosaic.Problem as problem: print(problem)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "tosaic[tflite]"' in done.stdout and "is not installed" in done.stdout


def test_importing_tosaic_imports_neither_numpy_nor_the_compiler() -> None:
    code = ("import sys, tosaic\n"
            "heavy = {'llvmlite', 'lark', 'rich', 'ml_dtypes', 'hypothesis', 'tosa_converter_for_tflite', 'argparse'}\n"
            "assert 'numpy' not in sys.modules and sum(m.startswith('tosaic') for m in sys.modules) < 12\n"
            "names = [n for n in tosaic.__all__ if n != 'onnx']  # its module is for those who have the package\n"
            "print(sorted(heavy & set(sys.modules)), callable(tosaic.jit), sorted(n for n in names if not hasattr(tosaic, n)), "
            "sorted(heavy & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True [] []"


def test_jit_stays_the_decorator_whatever_is_imported() -> None:
    from tosaic.jit.api import jit
    from tosaic.jit.command_line.cli import main
    assert tosaic.jit(abs).function is jit(abs).function is abs and callable(main)


@pytest.mark.parametrize("of", [lambda model: model, lambda model: model.main], ids=["model", "entry"])
def test_compile_takes_what_is_loaded(of: Callable[[tosaic.Model], object]) -> None:
    model = tosaic.load("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                        "  %0 = tosa.abs %x : (tensor<3xf32>) -> tensor<3xf32>\n  return %0 : tensor<3xf32>\n}")
    compiled = tosaic.compile(of(model), options=tosaic.CompileOptions(threads=1))
    np.testing.assert_array_equal(compiled(np.float32([-1, 0, 2])), [1, 0, 2])
