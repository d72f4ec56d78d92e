"""The public names: a file uses each of them, and the type check (`test_checkers`) holds the types that it asserts. Those of
`tosaic.tosa` are made from the table of operators."""
from __future__ import annotations

import ast
import importlib.util
import pathlib
from types import ModuleType

import pytest
import tosaic

HERE = pathlib.Path(__file__).parent
STUB = HERE.parents[1] / "jit" / "tracing" / "tosa_operators.pyi"


def tosa_stub() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tosa_stub", HERE / "tosa_stub.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_that_is_type_checked_uses_every_public_name() -> None:
    tree = ast.parse((HERE / "every_public_name.py").read_text())
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            and n.value.id == "tosaic"}
    used |= {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "tosaic" for a in n.names}
    assert set(tosaic.__all__) - used == set()


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(tosaic.__all__) == sorted(set(tosaic.__all__)) and set(tosaic.__all__) <= set(dir(tosaic))
    assert all(getattr(tosaic, name) is not None for name in tosaic.__all__ if name not in ("onnx", "from_torch"))


def test_the_functions_of_tensors_say_what_they_give() -> None:
    for name in tosaic.ops.__all__:
        function = getattr(tosaic.ops, name)
        if callable(function) and not isinstance(function, type):
            assert function.__annotations__.get("return", "Any") != "Any", name


def test_the_types_of_the_specifications_operators_are_those_of_the_table(request: pytest.FixtureRequest) -> None:
    text = tosa_stub().stub()
    if request.config.getoption("--update-golden"):
        STUB.write_text(text)
    assert text == STUB.read_text(), "pytest tests/project/test_public_names.py --update-golden writes it"
    defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert defined == set(dir(tosaic.tosa))
