"""`tosaic.jit` is a package, and is called like a function."""
from __future__ import annotations

import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys

import numpy as np
import tosaic

X = np.array([1, 2], np.float32)


def test_it_is_a_decorator_with_options_and_without() -> None:
    @tosaic.jit
    def twice(x):  # type: ignore[no-untyped-def]
        return x * 2

    @tosaic.jit(static=("n",), options=tosaic.CompileOptions(threads=1))
    def power(x, n):  # type: ignore[no-untyped-def]
        return x ** n

    assert twice(X).tolist() == [2, 4] and power(X, 2).tolist() == [1, 4]
    assert repr(twice) == "<tosaic.jit of twice>"


def test_it_is_a_module_with_modules() -> None:
    code = ("import tosaic.jit.decorator as d, tosaic.jit, tosaic\nfrom tosaic import jit\n"
            "import tosaic.jit as j\nassert d.Jit and jit is tosaic.jit is j\n"
            "print(type(jit(lambda x: x)).__name__, d.__name__)")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert found.stdout == "Jit tosaic.jit.decorator\n"


def test_tools_see_a_function() -> None:
    from tosaic.jit.api import jit
    assert callable(tosaic.jit) and inspect.signature(tosaic.jit) == inspect.signature(jit)
    assert "options" in inspect.signature(tosaic.jit).parameters and "@tosaic.jit" in (tosaic.jit.__doc__ or "")
    assert "static" in pydoc.plain(pydoc.render_doc(jit)) and "tosaic.jit" in pydoc.plain(pydoc.render_doc(tosaic.jit))


def test_it_can_be_pickled_and_reloaded() -> None:
    module = sys.modules["tosaic.jit"]
    assert pickle.loads(pickle.dumps(tosaic.jit)) is module
    assert importlib.reload(module) is module and callable(tosaic.jit)  # type: ignore[arg-type]
    assert tosaic.jit(lambda x: x + 1)(X).tolist() == [2, 3]
