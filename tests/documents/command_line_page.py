"""The command line's part of `jit/README.md`, made from the parser: a table of commands, and one of the options of each.

    python tests/documents/command_line_page.py      writes it

`test_pages.py` fails where the page says something else.
"""
from __future__ import annotations

import argparse
import pathlib

from tosaic.jit.command_line.cli import parser

PAGE = pathlib.Path(__file__).parents[2] / "jit" / "README.md"
BEGIN, END = "<!-- made from the parser: begin -->\n", "<!-- made from the parser: end -->\n"
SHARED_BY = 3
"""Options that at least as many commands have stand in a table of their own."""

Option = tuple[str, str]


def part() -> str:
    """The text between the marks."""
    commands = commands_of(parser())
    options = {name: options_of(command) for name, command in commands.items()}
    everywhere = [o for name in options for o in options[name]]
    shared = list(dict.fromkeys(o for o in everywhere if everywhere.count(o) >= SHARED_BY))
    lines = ["| command | does |", "|---|---|"]
    lines += [f"| `tosaic {' '.join([name, *arguments_of(command)])}` | {command.description} |"
              for name, command in commands.items()]
    for name, own in options.items():
        rest = [o for o in own if o not in shared]
        lines += table(f"`tosaic {name}`", rest) if rest else []
    groups = {option: tuple(name for name in options if option in options[name]) for option in shared}
    for names in dict.fromkeys(groups.values()):
        lines += table(", ".join(f"`{name}`" for name in names), [o for o in shared if groups[o] == names])
    return "\n".join(lines) + "\n"


def table(title: str, options: list[Option]) -> list[str]:
    return ["", f"**{title}**", "", "| option | means |", "|---|---|", *(f"| `{name}` | {said} |" for name, said in options)]


def commands_of(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found, = (a for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def arguments_of(command: argparse.ArgumentParser) -> list[str]:
    """The names of what stands without a dash."""
    actions = [a for a in command._actions if not a.option_strings]
    return [f"[{a.metavar}]" if a.nargs == "?" else str(a.metavar) for a in actions]


def options_of(command: argparse.ArgumentParser) -> list[Option]:
    return [spelled(a) for a in command._actions
            if a.option_strings and a.help is not argparse.SUPPRESS and "--help" not in a.option_strings]


def spelled(action: argparse.Action) -> Option:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    takes = "" if action.nargs == 0 else f" {value}"
    said = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return ", ".join(action.option_strings) + str(takes).replace("|", "\\|"), said.replace("|", "\\|")


def page_with(part: str) -> str:
    """The whole page with this part."""
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + "\n" + part + "\n" + text[end:]


if __name__ == "__main__":
    PAGE.write_text(page_with(part()))
