"""Calls of the interface with arguments that it does not take, and attributes that its objects do not have: each ends in a
Problem that says so, never in a foreign exception from inside."""
from __future__ import annotations

import inspect
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import Problem, ops
from tosaic.runtime import threads

X = np.arange(12, dtype=np.float32)
CLASSES = (tosaic.Variable, tosaic.Model, tosaic.Entry, tosaic.Compiled, tosaic.Jit, tosaic.Context, tosaic.CoreRuntime,
           tosaic.OpAttrs, tosaic.Traced, tosaic.Lowered)
FUNCTIONS = (
    "check", "compile", "cond", "custom", "from_onnx", "from_tensorflow", "from_tflite", "from_torch", "get_num_threads", "jit",
    "load", "register_tree", "set_num_threads", "target", "while_loop", "Variable", "Context", "CoreRuntime", "CompileOptions",
    "TensorSpec", "Memory", "Pool", "Limits", "OpHandler")
RECORDS = (tosaic.CompileOptions, tosaic.Limits, tosaic.Memory, tosaic.Pool)
"""Classes of options: their fields in order are the arguments."""
VALUES = (None, 3, "x", b"y", 1.5, object(), [], {})


def wrong_calls(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments: none, one with an unknown name, too many, one of each kind of value."""
    parameters = inspect.signature(function).parameters.values()
    yield (), {}
    yield (), {"no_such_name": 1}
    if all(p.kind != p.VAR_POSITIONAL for p in parameters):
        yield (1,) * (1 + sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)), {}
    yield from (((value,), {}) for value in VALUES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_interface_refuses_arguments_by_a_problem(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = getattr(tosaic, name)
    monkeypatch.setattr(threads, "process", threads.Threads())  # for set_num_threads
    for arguments, named in wrong_calls(function):
        with suppress(Problem):
            function(*arguments, **named)


@pytest.mark.parametrize(("cls", "name"), [(cls, name) for cls in CLASSES for name, member in vars(cls).items()
                                           if inspect.isfunction(member) and not name.startswith("_")])
def test_a_method_of_the_interface_names_what_is_missing_unknown_or_too_many(cls: type, name: str) -> None:
    method = getattr(cls, name)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    subject = object.__new__(cls)
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    if any(p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD for p in parameters):
        wrong.append(((), {}))
    if all(p.kind != p.VAR_KEYWORD for p in parameters):
        wrong.append(((), {"no_such_name": 1}))
    if all(p.kind != p.VAR_POSITIONAL for p in parameters):
        wrong.append(((1,) * (len(parameters) + 1), {}))
    for arguments, named in wrong:
        with pytest.raises(Problem):
            method(subject, *arguments, **named)


@pytest.mark.parametrize("cls", RECORDS)
def test_options_refuse_too_many_values_and_a_field_that_is_given_twice(cls: Any) -> None:
    fields = list(cls.__dataclass_fields__)
    with pytest.raises(Problem, match=rf"takes \d+ values without a name, got {len(fields) + 1}"):
        cls(*[1] * (len(fields) + 1))
    with pytest.raises(Problem, match=f"gets option {fields[0]} twice"):
        cls("a", **{fields[0]: "b"})


def test_a_missing_argument_is_named_with_those_that_there_are(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n")
    with pytest.raises(Problem, match=r"Model.save is missing 1 required positional argument: 'name'(.|\n)*directory, name"):
        tosaic.load(path).save(tmp_path)  # type: ignore[call-arg]


def test_an_error_inside_of_a_function_of_the_interface_is_its_own() -> None:
    def body(x: Any) -> Any:
        return len(5)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="object of type 'int' has no len") as caught:
        tosaic.jit(body)(X)
    assert not isinstance(caught.value, Problem)


# ---- traced tensors and variables ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["view", "numpy", "foo", "permute", "unsqueeze", "dim", "to", "detach", "strides", "at",
                                  "tobytes", "softmax", "summ"])
def test_an_attribute_that_a_traced_tensor_has_not_is_a_problem_with_a_remedy(name: str) -> None:
    for value in (X, X.astype(np.complex64)):
        with pytest.raises(tosaic.Problem, match=f"a traced tensor has no {name}") as caught:
            tosaic.jit(lambda x: getattr(x, name))(value)
        assert isinstance(caught.value, AttributeError) and caught.value.help and caught.value.position


def test_hasattr_and_protocols_ask_a_traced_tensor_without_an_error() -> None:
    def body(x: Any) -> Any:
        assert not hasattr(x, "view") and not hasattr(x, "__cuda_array_interface__") and hasattr(x, "shape")
        return x

    assert np.array_equal(tosaic.jit(body)(X), X)


def test_a_traced_tensor_is_formatted_only_without_a_format() -> None:
    assert np.array_equal(tosaic.jit(lambda x: x + len(f"{x}") * 0)(X), X)
    with pytest.raises(Problem, match=r"has no values to format as '\.2f'"):
        tosaic.jit(lambda x: x + float(f"{x:.2f}"))(X)


@pytest.mark.parametrize("use", [
    "v + 1", "1 - v", "v * v", "-v", "abs(v)", "v[0]", "v @ v", "v == 1", "v != x", "v > 1", "float(v)", "len(v)", "bool(v)",
    "list(v)", "np.asarray(v)", "np.add(v, 1)", "ops.add(v, 1)", "x + v", "v.sum()", "v.T", "f'{v:.2f}'", "x if v else -x"])
@pytest.mark.parametrize("is_traced", [True, False])
def test_a_variable_is_no_tensor_and_says_how_to_read_it(use: str, is_traced: bool) -> None:
    v = tosaic.Variable("public calls v", initial=np.zeros(12, np.float32))

    def body(x: Any) -> Any:
        return eval(use, {"v": v, "np": np, "ops": ops, "x": x})

    if use.startswith("ops.") and not is_traced:
        return  # refused because of the place, whatever the operands are
    with pytest.raises(Problem) as caught:
        tosaic.jit(body)(X) if is_traced else body(X)
    assert "read()" in str(caught.value)


def test_a_variable_is_not_changed_by_an_operator_in_place() -> None:
    v = tosaic.Variable("public calls w", initial=np.zeros(12, np.float32))

    def body(x: Any) -> Any:
        w: Any = v
        w += 1
        return x

    with pytest.raises(Problem, match="write"):
        tosaic.jit(body)(X)


def test_variables_are_compared_hashed_and_printed_as_objects() -> None:
    v, w = (tosaic.Variable(n, shape=2) for n in ("public calls a", "public calls b"))
    assert v == v and v != w and {v: 1}[v] == 1 and v in [w, v] and f"{v}" == repr(v)


# ---- shapes, recursion, places ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "message"), [
    ((5, -1), r"12 elements do not fill shape \[5, -1\]: 12 is no multiple of 5"), ((-1, -1), "2 extents of -1"),
    ((-1, 0), "12 is no multiple of 0"), ((-2, 6), "has an extent below 0"), ((5, 2), "12 elements, shape")])
def test_a_shape_that_does_not_fit_says_why(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(Problem, match=message):
        tosaic.jit(lambda x: x.reshape(shape))(X)


def test_a_recursion_without_an_end_is_a_problem_at_the_call() -> None:
    def endless(x: Any) -> Any:
        return x * endless(x - 1)

    @tosaic.jit
    def itself(x: Any) -> Any:
        return itself(x)

    for function in (tosaic.jit(endless), itself):
        with pytest.raises(Problem, match="calls itself") as caught:
            function(X)
        assert caught.value.position and caught.value.position.source.name == __file__


def test_an_error_below_a_library_is_at_the_users_line(tmp_path: pathlib.Path) -> None:
    """A library in Python that sorts traced tensors asks for their truth; its line is not the user's."""
    program = tmp_path / "program.py"
    program.write_text("import contextlib, numpy as np, tosaic\nfrom statistics import median\nfrom tosaic import ops\n"
                       "@tosaic.jit\ndef f(x):\n    return median([x, x])\ntry:\n    f(np.ones(3, np.float32))\n"
                       "except tosaic.Problem as problem:\n    print(problem.position)\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.stdout.startswith(f"{program}:6:"), done.stdout + done.stderr
