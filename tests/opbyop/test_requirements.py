"""The list of what the design document says names tests that exist, at least one for each row."""
from __future__ import annotations

import ast
import pathlib
import re
from functools import cache

import pytest

HERE = pathlib.Path(__file__).parent
TESTED, _, LEFT_OUT = (HERE / "requirements.md").read_text().partition("## Left out")


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of all tables, without heads and lines below them."""
    cells = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [c for c in cells if c[0] != "section" and not set(c[0]) <= {"-"}]


@cache
def functions(path: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((HERE.parent / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("row", rows(TESTED), ids=lambda row: f"{row[0]}: {row[1]}"[:80])
def test_every_statement_of_the_document_has_tests_that_exist(row):
    _, statement, tests = row
    named = re.findall(r"`([^`]+)`", tests)
    assert statement and named and " ".join(f"`{n}`" for n in named) == tests
    for path, _, function in (n.partition("::") for n in named):
        assert function in functions(path), f"{path} has no {function}"


def test_every_section_of_the_document_is_in_the_list():
    sections = re.findall(r"^## (.*)$", TESTED, re.MULTILINE)
    assert sections == ["Requirements", "Op Execution API", "TensorHandle", "Error TensorHandle", "OpHandler", "OpAttrs",
                        "Location", "Chain", "Ownership of arguments", "Native Op and Device OpHandler",
                        "Non-side-effecting and side-effecting operations", "corert kernels"]
    assert len(rows(TESTED)) > 90


def test_what_is_left_out_has_a_reason():
    assert all(len(row) == 3 and len(row[2]) > 20 for row in rows(LEFT_OUT)) and rows(LEFT_OUT)
