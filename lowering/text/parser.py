"""Text -> syntax tree: the Lark parser of `grammar.lark`, made once per process, of the table of it that comes with tosaic
(`grammar_table`) or of the grammar itself.

The rules (`rules.py`) hold no state, so one parser serves all threads. Nesting is counted while tokens are read, so
that a text that only opens brackets ends at once.
"""
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...runtime.errors import Problem, Source
from ...runtime.limits import checkpoint
from .executor_rules import ExecutorRules
from .function_text import function_around
from .rules import Rules, TokenFault, reading
from .syntax import FileSyntax, SyntaxFault, UnreadFunction

if TYPE_CHECKING:
    from lark import Lark, Token

MAXIMUM_BRACKETS = 200
"""Brackets that may be open at one place."""


MOST_UNREAD = 16
"""Functions of a text that may hold forms that are not known: the text is parsed once more for each."""


def parse(source: Source) -> FileSyntax:
    """Return the syntax tree of a source's text; raise a Problem at the first position that the grammar does not allow.

    A form that is not known leaves out the function that it is in; the rest of the text is read.
    """
    text = source.text
    assert text is not None
    unread: list[UnreadFunction] = []
    while True:
        try:
            return parse_text(source, text)._replace(unread=tuple(unread))
        except Problem as problem:
            position = problem.position
            if problem.kind != "unsupported" or len(unread) == MOST_UNREAD or position is None:
                raise
            found = function_around(text, source.offset(position))
            if found is None:
                raise
            unread.append(UnreadFunction(found.name, problem, found.is_private))
            text = found.left_out(text)


def parse_text(source: Source, text: str) -> FileSyntax:
    """The syntax tree of a text whose positions are those of the source."""
    from lark.exceptions import UnexpectedInput
    parser = build_parser()
    reading.depth = reading.operations = 0
    try:
        return parser.parse(text)  # type: ignore[return-value]
    except UnexpectedInput as error:
        from .diagnose import diagnose
        problem = diagnose(error, source)
    except TokenFault as error:
        problem = error.fault.at(source, error.token)
    raise problem  # out here it has no context: where one goes along in pickles (Dask's), the parser's state is none that can


@cache
def build_parser() -> Lark:
    """The parser. Never with Lark's own cache, which unpickles a file that others may have written."""
    from importlib.resources import files

    from lark import Lark, Transformer, v_args

    from .grammar_table import loaded
    grammar = files(__package__).joinpath("grammar.lark").read_text("utf-8")
    methods = {name: method for rules in (Rules, ExecutorRules) for name, method in vars(rules).items()
               if not name.startswith("_")}
    transformer = v_args(inline=True)(type("LarkRules", (Transformer,), methods))
    counters = {name: open_bracket for name in ("LPAR", "LBRACE", "LSQB")}
    counters |= {name: close_bracket for name in ("RPAR", "RBRACE", "RSQB")}
    options = {"transformer": transformer(), "lexer_callbacks": {**counters, "EXECUTOR": tensorflow_token}}
    return loaded(grammar, options) or Lark(grammar, parser="lalr", lexer="contextual", **options)


SPECIAL_TOKENS = {"tf_executor.graph": "GRAPH", "tf_executor.island": "ISLAND", "tf_executor.fetch": "EXECUTOR_END",
                  "tf_executor.yield": "EXECUTOR_END"}
FIRST_CHARACTERS = {'"': "CURLED", "“": "CURLED", "”": "CURLED", "c": "SPLAT", "f": "DOCUMENT_FUNC"}


def tensorflow_token(token: Token) -> Token:
    """A token that begins one of TensorFlow's own forms, by its terminal."""
    token.type = SPECIAL_TOKENS.get(token) or FIRST_CHARACTERS.get(token[0]) or (
        "UNQUOTED" if token.startswith("tf.") else "EXECUTOR")
    return token


def open_bracket(token: Token) -> Token:
    checkpoint()
    reading.depth += 1
    if reading.depth > MAXIMUM_BRACKETS:
        raise TokenFault(token, SyntaxFault(f"more than {MAXIMUM_BRACKETS} brackets are open here", kind="nesting"))
    return token


def close_bracket(token: Token) -> Token:
    reading.depth -= 1
    return token
