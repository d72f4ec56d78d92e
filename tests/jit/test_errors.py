"""What is wrong in a Python function is a Problem at its line, with the expression marked."""
from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.ones((2, 3), np.float32)


def problem(function: Any, *arguments: Any, **named: Any) -> str:
    """The text of the problem that a call ends in; it points into this file."""
    with pytest.raises(tosaic.Problem) as found:
        (function if isinstance(function, type(tosaic.jit(len))) else tosaic.jit(function))(*arguments, **named)
    position = found.value.position
    assert position is not None and position.source.name == __file__
    return str(found.value)


def marked(text: str) -> str:
    """What the mark of a problem's text stands under."""
    line, mark = text.split("\n")[1:3]
    start = mark.index("^")
    return line[start:start + mark.count("^")]


def test_the_mark_is_under_the_expression() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y + (x - y @ y)

    text = problem(function, X)
    line = function.__code__.co_firstlineno + 2
    assert text.startswith(f"{__file__}:{line}:25: error[shape]: matmul of tensor<2x3xf32> and tensor<2x3xf32>: inner ")
    assert marked(text) == "y @ y"


def test_the_mark_counts_characters_not_bytes() -> None:
    assert marked(problem(lambda x: ("ä€😀", x @ x), X)) == "x @ x"


def test_the_line_is_that_of_the_user_even_deep_inside() -> None:
    def inner(x: Any) -> Any:
        return tosaic.ops.softmax(x, axis=5)

    text = problem(lambda x: tosaic.jit(inner)(x) + 1, X)
    assert marked(text) == "tosaic.ops.softmax(x, axis=5)" and "axis 5 is outside a tensor of 2 dimensions" in text


def test_shapes_and_types_that_do_not_fit_show_both() -> None:
    assert "add of shapes [2, 3] and [2]: they do not broadcast" in problem(lambda x: x + x[:, 0], X)
    assert "add of i64 and ui64: no element type holds both" in problem(lambda x: x.astype("i64") + x.astype("ui64"), X)
    assert "1.5 meets a tensor of i32" in problem(lambda x: tosaic.ops.pad(x.astype("i32"), 1, 1.5), X)
    assert "bitwise_and does not take f32, as NumPy's does not" in problem(lambda x: x & x, X)
    assert "300 does not fit i8" in problem(lambda x: x.astype("i8") + 300, X)
    assert "has 6 elements, shape [4, 2] has 8" in problem(lambda x: x.reshape(4, 2), X)


def test_the_truth_of_a_tensor_points_to_cond() -> None:
    text = problem(lambda x: x if x.sum() > 0 else -x, X)
    assert "tosaic.cond" in text and marked(text) == "x.sum() > 0"
    assert "tosaic.cond" in problem(lambda x: x[0, 0] > 0 and x, X)
    assert "static" in problem(lambda x: range(x.sum().astype(int)), X)
    assert "static" in problem(lambda x: float(x.sum()), X)
    assert "tosaic.ops" in problem(lambda x: np.linalg.norm(np.array([x])), X)


def test_pythons_own_extremes_point_to_those_of_tensors() -> None:
    text = problem(lambda x: min(x.max(), 3), X)
    assert "tosaic.ops.minimum and maximum" in text and marked(text) == "min(x.max(), 3)"


def test_functions_with_other_parameters_than_they_are_called_with_say_what_is_expected() -> None:
    def text(function: Any) -> str:
        found = problem(lambda x: function(x, x.sum() > 0), X)
        assert marked(found).startswith("tosaic.")
        return found

    found = text(lambda x, c: tosaic.while_loop(lambda i: i < 3, lambda i, v: (i + 1, v), 0, x))
    assert "the test of while_loop has the parameters (i) and is called with tensor<i32>, tensor<2x3xf32>" in found
    assert "give it 2 parameters" in found
    assert "the body of while_loop has" in text(lambda x, c: tosaic.while_loop(lambda i, v: i < 3, lambda s: s, 0, x))
    assert "missing a required argument: 'w'" in text(lambda x, c: tosaic.cond(c, lambda v: v, lambda v, w: v, x))
    assert "the function for true has the parameters ()" in text(lambda x, c: tosaic.cond(True, lambda: 1, lambda: 2, x))


def test_a_function_of_single_numbers_is_refused_with_what_takes_whole_tensors() -> None:
    assert "tosaic.jit of the function itself" in problem(lambda: tosaic.jit(np.vectorize(lambda v: v + 1))(X))
    text = problem(lambda x: np.vectorize(lambda v: v + 1)(x), X)
    assert "has no values" in text and marked(text) == "np.vectorize(lambda v: v + 1)(x)"


def test_what_cannot_be_traced_says_so() -> None:
    assert "a mask would give a shape that is not known" in problem(lambda x: x[x > 0], X)
    assert "numpy.unique cannot be traced" in problem(lambda x: np.unique(x), X)
    assert "numpy.add.reduceat" in problem(lambda x: np.add.reduceat(x, [0, 1]), X)
    assert "cannot be changed" in problem(lambda x: x.__setitem__(0, 1), X)
    assert "index 2 is outside axis 0" in problem(lambda x: x[2], X)
    assert "no elements" in problem(lambda x: x[2:].max(), X)
    assert "bounds of a slice are ints" in problem(lambda x: x[x.sum().astype("i32"):], X)


def test_arguments_that_are_no_tensors_are_named() -> None:
    assert "argument name of <lambda>" not in problem(lambda x, name: x, X, "relu")
    assert "argument name of anonymous is a str, which is no tensor" in problem(lambda x, name: x, X, "relu")
    assert "static=('name',)" in problem(lambda x, name: x, X, "relu")
    assert "is an array of object" in problem(lambda x: x, X.astype(object))
    assert "argument x_1_key of" in problem(lambda x: x, (X, {"key": object()}))
    assert "missing a required argument: 'y'" in problem(lambda x, y: x, X)
    assert "has no values" in problem(lambda x: x, tosaic.TensorSpec((2, 3)))
    assert "does not fit i32" in problem(lambda x: x, 1 << 40)
    assert "cannot be a key" in problem(tosaic.jit(static="n")(lambda x, n: x), X, [1])


def test_results_that_are_no_tensors_are_a_problem() -> None:
    assert "returns a str that is no tensor" in problem(lambda x: "x", X)


def test_a_wrong_use_of_the_decorator_is_a_problem() -> None:
    with pytest.raises(tosaic.Problem, match="static parameter 'z' is none of"):
        tosaic.jit(static="z")(lambda x: x)
    with pytest.raises(tosaic.Problem, match="jit takes a function, not an int"):
        tosaic.jit(3)  # type: ignore[call-overload]


def test_errors_of_the_function_itself_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        tosaic.jit(lambda x: x * (1 // 0))(X)


def test_a_fault_of_a_run_points_to_the_line_that_reads() -> None:
    state = tosaic.Variable("errors.unwritten", shape=(3,))

    @tosaic.jit
    def function(x: Any) -> Any:
        return x + state.read()

    text = problem(function, X)
    assert "errors.unwritten" in text and marked(text) == "state.read()"


def test_the_line_is_that_of_the_user_where_the_package_lies_behind_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tosaic").symlink_to(pathlib.Path(__file__).parents[2])
    (tmp_path / "wrong.py").write_text("import numpy as np\nimport tosaic\ntosaic.jit(lambda x: x + 'one')('two')\n")
    result = subprocess.run([sys.executable, "wrong.py"], capture_output=True, text=True, cwd=tmp_path)
    assert "wrong.py:3:1: error[argument]" in result.stderr, result.stderr
