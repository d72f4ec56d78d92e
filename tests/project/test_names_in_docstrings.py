"""Names that docstrings and comments put into backticks exist: a reader who searches for one finds it."""
from __future__ import annotations

import ast
import io
import pathlib
import re
import tokenize
from functools import cache

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted(p for room in ("jit", "lowering", "runtime") for p in (ROOT / room).rglob("*.py"))
OTHERS = frozenset({"tosaic", "tosa", "tf", "tf_executor", "torch", "onnx", "definitions"})
"""What dotted names of other systems, of dialects, of the public package and of data files begin with."""
FOREIGN = frozenset({"__inference_step_1769", "__set_name__", "_map_outputs", "PyArray_Empty", "ar", "await", "f32ref", "site",
                     "sram1", "state_0", "tensor_size_t", "tosaic_m_run", "weights_bias"})
"""Names of Python, C, the specification, TensorFlow and examples."""


@cache
def modules() -> dict[tuple[str, ...], pathlib.Path]:
    found = {}
    for path in SOURCES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[parts[:-1] if parts[-1] == "__init__" else parts] = path
    return found


@cache
def defined(path: pathlib.Path) -> frozenset[str]:
    """Functions, classes, fields and variables of a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return frozenset(found)


def exists(parts: list[str]) -> bool:
    """True if a dotted name begins with the end of a module's name, and goes on with what is defined there."""
    for count in range(len(parts), 0, -1):
        for module, path in modules().items():
            if module[-count:] == tuple(parts[:count]) and all(name in defined(path) for name in parts[count:]):
                return True
    return False


@cache
def words() -> frozenset[str]:
    """Every identifier of the source, every word of its strings, and the names of its files and folders."""
    found = {name for module in modules() for name in module}
    for path in SOURCES:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.NAME:
                found.add(token.string)
            elif token.type == tokenize.STRING and not token.string.startswith('"""'):
                found.update(re.findall(r"\w+", token.string))
    return frozenset(found)


@cache
def files() -> frozenset[str]:
    """Every Python file of the source and of the tests."""
    return frozenset(path.relative_to(ROOT).as_posix() for path in (*SOURCES, *(ROOT / "tests").rglob("*.py")))


def unknown(text: str) -> list[str]:
    """Names in backticks that there are not."""
    wrong = [name for name in re.findall(r"`([A-Za-z_]\w*)`", text) if name not in words() | FOREIGN]
    wrong += [name for name in re.findall(r"`([\w/]+\.py)`", text) if not any(file.endswith(name) for file in files())]
    names = {part for module in modules() for part in module}
    for name in re.findall(r"`([a-z_0-9]+(?:\.\w+)+)`", text):
        parts = name.split(".")
        if parts[-1] != "py" and parts[0] in names - OTHERS and not exists(parts):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_in_backticks_exist(path: pathlib.Path) -> None:
    assert not unknown(path.read_text())


@pytest.mark.parametrize("text", ["`schedule.row_form`", "`contraction_choice.py`", "`byte_block_loops`",
                                  "`fuse.inline.nothing_at_all`"])
def test_a_name_that_is_gone_is_found(text: str) -> None:
    assert unknown(text)
