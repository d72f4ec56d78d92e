"""The lists of what the documents say: each row names tests and files that exist, and a mutation that refutes its tests, or
has a reason (`README.md`)."""
from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from .lists import DOCUMENTS, HERE, SOURCES, TESTS, Row, cells, parts, rows_of
from .refute import Mutation, mutations_of, verdicts

SECTIONS = {
    "op_by_op": (["Requirements", "Op Execution API", "TensorHandle", "Error TensorHandle", "OpHandler", "OpAttrs", "Location",
                  "Chain", "Ownership of arguments", "Native Op and Device OpHandler",
                  "Non-side-effecting and side-effecting operations", "corert kernels"], 111, 17),
    "tensorflow_dialects": (["Objective", "TensorFlow Dialect", "TensorFlow Executor Dialect", "tf_executor.graph",
                             "tf_executor.island", "Control flow operations", "Example"], 66, 8),
    "tosa_rationale": (["Rationale", "TOSA and Tensor Level Expressiveness", "IDENTITYN", "COND_IF and WHILE_LOOP",
                        "Using TOSA In A Compiler", "Quantization Parameters in Ops vs Tensors"], 24, 8),
    "tosa_stateful": (["Introduction", "Memory Model", "Execution Model", "Variable", "Variable_Read", "Variable_Write"],
                      47, 10),
    "usmp": (["Background and Motivation", "Goals", "Guide-level explanation", "Reference-level explanation"], 39, 10)}
"""By document: its sections in order, and how many rows there are at least, with tests and with a reason."""


@cache
def functions(path: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((TESTS / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


ROWS = [(document, row) for document in DOCUMENTS for row in rows_of(document)]
MUTATIONS = [(document, mutation) for document in DOCUMENTS for mutation in mutations_of(document)]


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[f"{d}: {row.title}"[:90] for d, row in ROWS])
def test_a_statement_has_tests_that_exist_and_says_how_it_is_met(row: Row) -> None:
    assert row.statement and row.how and row.tests
    for path, _, function in (n.partition("::") for n in row.tests):
        assert function in functions(path), f"{path} has no {function}"
    for path in re.findall(r"`([a-z0-9_/]+\.py)`", row.how):
        assert (SOURCES / path).is_file(), f"there is no {path}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_has_a_mutation_and_every_mutation_a_row(document: str) -> None:
    assert {mutation.row for mutation in mutations_of(document)} == {row.title for row in rows_of(document)}


@pytest.mark.parametrize("mutation", [m for _, m in MUTATIONS], ids=[f"{d}: {m.name}"[:90] for d, m in MUTATIONS])
def test_a_mutation_changes_one_place_of_the_product(mutation: Mutation) -> None:
    text = (SOURCES / mutation.file).read_text()
    assert mutation.file.split("/")[0] in ("jit", "lowering", "runtime")
    assert mutation.applied(text) != text


def test_a_mutation_of_the_product_is_noticed() -> None:
    """`python tests/documents/refute.py` runs all of them."""
    document = DOCUMENTS[0]
    mutation = mutations_of(document)[0]
    row = next(row for row in rows_of(document) if row.title == mutation.row)
    assert [found for _, found in verdicts([(mutation, row)], 1)] == ["refuted"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_not_followed_has_a_reason(document: str) -> None:
    found = cells(parts(document)[1])
    assert all(len(row) == 3 and row[1] and len(row[2]) > 20 for row in found)
    assert len(found) >= SECTIONS[document][2]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_section_of_a_document_is_in_its_list(document: str) -> None:
    sections, least, _ = SECTIONS[document]
    tested = parts(document)[0]
    assert re.findall(r"^## (.*)$", tested, re.MULTILINE) == sections
    assert len(rows_of(document)) >= least


def test_every_list_is_read() -> None:
    assert {p.stem for p in HERE.glob("*.md")} - {"README"} == set(DOCUMENTS)
    assert all(f"`{document}.md`" in (HERE / "README.md").read_text() for document in SECTIONS)
