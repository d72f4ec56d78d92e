"""The tables of the grammar's parser as data: making them takes longer than reading and compiling a small model.

`grammar.json` has those of `grammar.lark` for one version of Lark, as Lark serializes them (`memo_serialize`, used by its
standalone parsers): terminals, rules, and for each state the action of each token. With another version, or for another
grammar, the parser is built. `python -m pytest tests/text/test_grammar_table.py --update-golden` writes it again.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

FILE = "grammar.json"
OWN = frozenset({"transformer", "lexer_callbacks"})
"""Options that are functions, set when a table is loaded."""


def loaded(grammar: str, options: Mapping[str, Any]) -> Lark | None:
    """Return the grammar's parser with these options; None if the table is for another grammar or another version of Lark."""
    from importlib.resources import files

    from lark import Lark
    try:
        table = json.loads(files(__package__).joinpath(FILE).read_bytes())
    except (OSError, ValueError):
        return None
    if table["for"] != origin(grammar):
        return None
    data = table["data"]
    data["parser"]["parser"] = whole(data["parser"]["parser"])
    parser: Lark = Lark._load_from_dict(data, dict(enumerate(table["memo"])), **options)
    return parser


def table_of(parser: Lark, grammar: str) -> str:
    """Return the text of the file for a parser that was built from a grammar."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: None if name in OWN else value for name, value in data["options"].items()}
    data["parser"]["parser"] = table_as_lists(data["parser"]["parser"])
    table = {"for": origin(grammar), "data": data, "memo": in_order(memo)}
    return json.dumps(table, separators=(",", ":")) + "\n"


def origin(grammar: str) -> list[str]:
    """Return the version of Lark and the hash of the grammar, which identify a table."""
    import lark
    return [lark.__version__, hashlib.sha256(grammar.encode()).hexdigest()]


def table_as_lists(parser: Mapping[str, Any]) -> dict[str, Any]:
    """Return Lark's table of states as lists, by number: an action, its target (a state's number, or a rule's instead of its
    mark), and the tokens that trigger it. Tokens are in the order of their names, states in the order in which they are
    reached: Lark's own order is another in each process."""
    rows = {state: sorted((parser["tokens"][token], *step) for token, step in row.items())
            for state, row in parser["states"].items()}
    reached = dict.fromkeys(parser["start_states"].values())
    queue = list(reached)
    for state in queue:
        new = [to for _, action, to in rows[state] if not action and to not in reached]
        reached |= dict.fromkeys(new)
        queue += dict.fromkeys(new)
    names, numbers = sorted(parser["tokens"].values()), {state: i for i, state in enumerate(reached)}
    places = {name: i for i, name in enumerate(names)}

    def grouped(row: list[Any]) -> list[list[Any]]:
        found: dict[tuple[int, int], list[int]] = {}
        for token, action, to in row:
            found.setdefault((action, to["@"] if action else numbers[to]), []).append(places[token])
        return [[*step, tokens] for step, tokens in found.items()]

    ends = {name: {rule: numbers[state] for rule, state in parser[name].items()} for name in ("start_states", "end_states")}
    return {**parser, **ends, "tokens": names, "states": [grouped(rows[state]) for state in reached]}


def whole(parser: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table in Lark's form."""
    rows = {number: {token: (action, {"@": to} if action else to) for action, to, tokens in row for token in tokens}
            for number, row in enumerate(parser["states"])}
    return {**parser, "tokens": dict(enumerate(parser["tokens"])), "states": rows}


def in_order(numbered: Mapping[int, Any]) -> list[Any]:
    """Return the values of a dictionary with the keys 0, 1, ..."""
    return [numbered[i] for i in range(len(numbered))]
