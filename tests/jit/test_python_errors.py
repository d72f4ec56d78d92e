"""Where Python would raise a TypeError, ValueError, IndexError, KeyError or AttributeError, a Problem is one of these, too."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.ones((2, 3), np.float32)
MODEL = "func.func @main(%x: tensor<2x3xf32>, %scale: tensor<2x3xf32>) -> tensor<2x3xf32> { return %x : tensor<2x3xf32> }"
OPEN = "func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> { return %x : tensor<?x3xf32> }"


def traced(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: tosaic.jit(function)(*arguments or (X,))


def main() -> Any:
    return tosaic.load(MODEL).main


AS_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "an index outside": lambda x, np: x[2],
    "too many indices": lambda x, np: x[0, 0, 0],
    "a string as an index": lambda x, np: x["a"],
    "a step of 0": lambda x, np: x[::0],
    "a list of indices outside": lambda x, np: np.take(x, [5], axis=0),
    "an axis outside": lambda x, np: np.sum(x, axis=2),
    "shapes that do not broadcast": lambda x, np: x + np.ones((2, 2), "float32") if hasattr(np, "ndarray") else x + x[:, :2],
    "a matrix product": lambda x, np: x @ x,
    "another number of elements": lambda x, np: x.reshape(4, 2),
    "a shape of floats": lambda x, np: np.reshape(x, (1.5, 4)),
    "an order of no axes": lambda x, np: np.transpose(x, (0, 0)),
    "a part of no extent 1": lambda x, np: np.squeeze(x, axis=0),
    "parts of other ranks": lambda x, np: np.concatenate([x, x[0]]),
    "no even parts": lambda x, np: np.split(x, 2, axis=1),
    "the length of a number": lambda x, np: len(np.sum(x)),
    "the truth of an array": lambda x, np: bool(x),
    "an array as a range": lambda x, np: range(x),
    "an unknown dtype": lambda x, np: x.astype("nothing")}


@pytest.mark.parametrize("mistake", AS_NUMPY)
def test_a_traced_tensor_raises_what_an_array_raises(mistake: str) -> None:
    function = AS_NUMPY[mistake]
    with pytest.raises(Exception) as of_numpy:
        function(X, np)
    with pytest.raises(tosaic.Problem) as found:
        tosaic.jit(lambda x: function(x, tosaic.ops))(X)
    for kind in (TypeError, ValueError, IndexError):
        if isinstance(of_numpy.value, kind):
            assert isinstance(found.value, kind), of_numpy.value
            break
    else:
        raise AssertionError(of_numpy.value)


AS_PYTHON: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "a parameter is missing": (TypeError, traced(lambda x, y: x)),
    "an argument too many": (TypeError, traced(lambda x: x, X, X)),
    "a string is no tensor": (TypeError, traced(lambda x, how: x, X, "relu")),
    "an object is no tensor": (TypeError, traced(lambda x: x, object())),
    "jit of a number": (TypeError, lambda: tosaic.jit(3)),  # type: ignore[call-overload]
    "a list as a static argument": (TypeError, lambda: tosaic.jit(static="n")(lambda x, n: x)(X, [1])),
    "an option of jit": (TypeError, lambda: tosaic.jit(statik="n")),  # type: ignore[call-overload]
    "a static parameter that there is not": (ValueError, lambda: tosaic.jit(static="m")(lambda x, n: x)),
    "a Python int too large": (ValueError, traced(lambda x: x, 1 << 40)),
    "a tensor cannot be changed": (TypeError, traced(lambda x: x.__setitem__(0, 1))),
    "element types without a common one": (TypeError, traced(lambda x: x.astype("i64") + x.astype("ui64"))),
    "an operator that there is not": (AttributeError, lambda: tosaic.tosa.conv2),
    "an attribute that there is not": (TypeError, traced(lambda x: tosaic.tosa.argmax(x, axes=0))),
    "a branch that is no function": (TypeError, traced(lambda x: tosaic.cond(x.any(), 1, 2))),
    "a name of the package": (AttributeError, lambda: tosaic.lode),
    "an entry as an item": (KeyError, lambda: tosaic.load(MODEL)["mian"]),
    "an entry as an attribute": (AttributeError, lambda: tosaic.load(MODEL).first),
    "an input too many": (TypeError, lambda: main()(X, X, X)),
    "an input too few": (TypeError, lambda: main()(X)),
    "an input of another name": (TypeError, lambda: main()(X, scal=X)),
    "an input twice": (TypeError, lambda: main()(X, x=X)),
    "an input left out": (TypeError, lambda: main()(x=X)),
    "an open input left out": (TypeError, lambda: tosaic.load(OPEN).main()),
    "a mapping with another name": (KeyError, lambda: main()({"x": X, "scal": X})),
    "a shape for no input": (KeyError, lambda: tosaic.load(OPEN).main.specialize({"y": (2, 3)})),
    "a list of another shape": (ValueError, lambda: main()([1.0], X)),
    "another dtype": (TypeError, lambda: main()(X.astype(np.float64), X)),
    "another shape": (ValueError, lambda: main()(X[:1], X)),
    "a model of a number": (TypeError, lambda: tosaic.load(3)),
    "a context of a string": (TypeError, lambda: main()(X, X, context="c")),
    "a variable that nobody has": (KeyError, lambda: tosaic.Context("c").read("nothing")),
    "a stage that there is not": (ValueError, lambda: main().show("kernel")),
    "a precision that there is not": (ValueError, lambda: tosaic.CompileOptions(precision="f8")),  # type: ignore[arg-type]
    "a target that there is not": (ValueError, lambda: tosaic.target("cortex-m9")),
    "threads without number": (ValueError, lambda: tosaic.set_num_threads(0))}


@pytest.mark.parametrize("mistake", AS_PYTHON)
def test_a_mistake_is_what_python_would_raise(mistake: str) -> None:
    kind, make = AS_PYTHON[mistake]
    with pytest.raises(tosaic.Problem) as found:
        make()
    assert isinstance(found.value, kind), type(found.value)


def test_a_problem_stays_what_it_is_when_it_is_copied_or_sent_to_another_process() -> None:
    with pytest.raises(tosaic.KeyProblem, match="no entry mian; it has main") as found:
        tosaic.load(MODEL)["mian"]
    for again in (pickle.loads(pickle.dumps(found.value)), copy.copy(found.value), found.value.copy()):
        assert type(again) is tosaic.KeyProblem and str(again) == str(found.value)
        assert again.help == "did you mean main?" and again.kind == "argument"


def test_the_help_for_a_value_that_python_needs_names_the_static_argument() -> None:
    def act(x: Any, flag: Any, options: Any = None) -> Any:
        return x if flag else -x

    for arguments in ((X, True), (X, X[0, 0])):
        with pytest.raises(ValueError, match=r"static=\('flag',\)"):
            tosaic.jit(act)(*arguments)
    with pytest.raises(TypeError, match=r"static=\('options',\)"):
        tosaic.jit(act)(X, True, {"how": ["relu"]})
    with pytest.raises(TypeError, match=r"static=\('flag',\)"):
        tosaic.jit(lambda x, flag: x * float(flag))(X, 2.0)
    with pytest.raises(ValueError, match=r"static=\.\.\."):
        tosaic.jit(lambda x: x if x.any() else -x)(X)
