"""The shipped table of the grammar's parser is that of the grammar, and reads what the grammar reads."""
from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator

import lark
import pytest
from tosaic.lowering.text import grammar_table, parser
from tosaic.lowering.text.grammar_table import FILE, loaded, table_of
from tosaic.runtime.errors import Problem, Source

FOLDER = pathlib.Path(grammar_table.__file__).parent
GRAMMAR = (FOLDER / "grammar.lark").read_text("utf-8")
TEXTS = (
    "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n  %0 = tosa.exp %a : (tensor<3xf32>) -> tensor<3xf32>\n"
    "  return %0 : tensor<3xf32>\n}\n",
    "module {}", "", "module {", "func.func @f(", "%0 = tosa.exp", "func.func @f() { return }", "(" * 300)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[lark.Lark]:
    """The parser as the grammar alone gives it."""
    monkeypatch.setattr(grammar_table, "FILE", "none.json")
    parser.build_parser.cache_clear()
    yield parser.build_parser()
    parser.build_parser.cache_clear()


def tree(text: str) -> str:
    try:
        return repr(parser.parse(Source("t", text)))
    except Problem as problem:
        return str(problem)


def test_the_table_is_the_grammars(built: lark.Lark, request: pytest.FixtureRequest) -> None:
    text = table_of(built, GRAMMAR)
    if request.config.getoption("--update-golden"):
        (FOLDER / FILE).write_text(text, "utf-8")
    shipped = json.loads((FOLDER / FILE).read_text("utf-8"))
    assert shipped["for"][1] == grammar_table.origin(GRAMMAR)[1], "grammar.lark has changed; --update-golden writes the table"
    if shipped["for"][0] == lark.__version__:
        assert shipped == json.loads(text)


def test_what_is_read_is_the_same(built: lark.Lark) -> None:
    expected = [tree(text) for text in TEXTS]
    parser.build_parser.cache_clear()
    grammar_table.FILE = FILE  # the fixture's patch ends here
    assert parser.build_parser() is not built
    assert [tree(text) for text in TEXTS] == expected


def test_a_table_of_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(GRAMMAR + "\n", {}) is None
    monkeypatch.setattr(lark, "__version__", "0.0")
    assert loaded(GRAMMAR, {}) is None


def test_a_process_that_reads_text_does_not_build_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    if json.loads((FOLDER / FILE).read_text("utf-8"))["for"][0] != lark.__version__:
        pytest.skip(f"the table is of another version of Lark than {lark.__version__}")
    monkeypatch.setattr(lark.Lark, "__init__", lambda *_, **__: pytest.fail("the grammar is built"))
    parser.build_parser.cache_clear()
    assert tree(TEXTS[0]).startswith("FileSyntax")
