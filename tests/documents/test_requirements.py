"""The lists of what the documents say: each row names tests and files that exist, or has a reason (`README.md`)."""
from __future__ import annotations

import ast
import pathlib
import re
from functools import cache

import pytest

HERE = pathlib.Path(__file__).parent
TESTS, SOURCES = HERE.parent, HERE.parents[1]
LEFT_OUT = "## Not followed"

SECTIONS = {
    "op_by_op": (["Requirements", "Op Execution API", "TensorHandle", "Error TensorHandle", "OpHandler", "OpAttrs", "Location",
                  "Chain", "Ownership of arguments", "Native Op and Device OpHandler",
                  "Non-side-effecting and side-effecting operations", "corert kernels"], 104, 10),
    "tensorflow_dialects": (["Objective", "TensorFlow Dialect", "TensorFlow Executor Dialect", "tf_executor.graph",
                             "tf_executor.island", "Control flow operations", "Example"], 50, 8),
    "tosa_rationale": (["Rationale", "TOSA and Tensor Level Expressiveness", "IDENTITYN", "COND_IF and WHILE_LOOP",
                        "Using TOSA In A Compiler", "Quantization Parameters in Ops vs Tensors"], 20, 5),
    "tosa_stateful": (["Introduction", "Memory Model", "Execution Model", "Variable", "Variable_Read", "Variable_Write"],
                      35, 9),
    "usmp": (["Background and Motivation", "Goals", "Guide-level explanation", "Reference-level explanation"], 33, 10)}
"""By document: its sections in order, and how many rows there are at least, with tests and with a reason."""


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of all tables, without heads and lines below them."""
    cells = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [c for c in cells if c[0] != "section" and not set(c[0]) <= {"-"}]


@cache
def parts(document: str) -> tuple[str, str]:
    """What is tested, and what is not followed."""
    tested, found, left_out = (HERE / f"{document}.md").read_text().partition(LEFT_OUT)
    assert found, f"{document} does not say what is not followed"
    return tested, left_out


@cache
def functions(path: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((TESTS / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


ROWS = [(document, row) for document in SECTIONS for row in rows(parts(document)[0])]


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[f"{d}: {row[0]}: {row[1]}"[:90] for d, row in ROWS])
def test_a_statement_has_tests_that_exist_and_says_how_it_is_met(row: list[str]) -> None:
    _, statement, how, tests = row
    named = re.findall(r"`([^`]+)`", tests)
    assert statement and how and named and " ".join(f"`{n}`" for n in named) == tests
    for path, _, function in (n.partition("::") for n in named):
        assert function in functions(path), f"{path} has no {function}"
    for path in re.findall(r"`([a-z0-9_/]+\.py)`", how):
        assert (SOURCES / path).is_file(), f"there is no {path}"


@pytest.mark.parametrize("document", SECTIONS)
def test_what_is_not_followed_has_a_reason(document: str) -> None:
    found = rows(parts(document)[1])
    assert all(len(row) == 3 and row[1] and len(row[2]) > 20 for row in found)
    assert len(found) >= SECTIONS[document][2]


@pytest.mark.parametrize("document", SECTIONS)
def test_every_section_of_a_document_is_in_its_list(document: str) -> None:
    sections, least, _ = SECTIONS[document]
    tested = parts(document)[0]
    assert re.findall(r"^## (.*)$", tested, re.MULTILINE) == sections
    assert len(rows(tested)) >= least


def test_every_list_is_read() -> None:
    assert {p.stem for p in HERE.glob("*.md")} - {"README"} == set(SECTIONS)
    assert all(f"`{document}.md`" in (HERE / "README.md").read_text() for document in SECTIONS)
