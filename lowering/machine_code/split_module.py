"""The division of a module's text into several modules, so that several processes can compile it at once: functions that use
nothing of it but themselves, that is kernels, are divided among the modules by length; all else stays in the first.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

from ...runtime.records import dataclass

NAME = re.compile(r'@("[^"]*"|[-\w.$]+)')
HEAD = "define internal "


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The lines of a function."""
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        found = NAME.search(self.lines[0])
        assert found is not None
        return found[1]

    def is_alone(self, declared: frozenset[str]) -> bool:
        """True if the function is internal and names nothing but what each module has: functions of C and LLVM, and private
        constants."""
        return self.lines[0].startswith(HEAD) and declared.issuperset(NAME.findall("\n".join(self.lines[1:])))

    @property
    def exported(self) -> list[str]:
        """The function's lines, visible to the other modules, but not to other libraries."""
        return ["define hidden " + self.lines[0].removeprefix(HEAD), *self.lines[1:]]

    @property
    def declaration(self) -> str:
        """The function's declaration for other modules: the types of its parameters, without their names."""
        head = self.lines[0].removeprefix(HEAD).removesuffix("{")
        return "declare hidden " + re.sub(r" %[-\w.$]+(?=[,)])", "", head)


def split(text: str, most: int) -> list[str]:
    """Return the text in at most `most` modules; the first has the functions called from outside, and all if `most` is 1."""
    rest, definitions = split_definitions(text)
    declared = frozenset(found[1] for line in rest if (line.startswith("declare") or is_private(line)) and (
        found := NAME.search(line)))
    alone = [d for d in definitions if d.is_alone(declared)] if most > 1 else []
    if not alone:
        return [text]
    moved = {id(d) for d in alone}
    staying = [line for d in definitions if id(d) not in moved for line in d.lines]
    shares = shared_out(alone, most, len(staying))
    common = [line for line in rest if not line.startswith("@") or is_private(line)]
    result = ["\n".join([*rest, *(d.declaration for share in shares[1:] for d in share),
                         *(line for d in shares[0] for line in d.lines), *staying, ""])]
    return result + ["\n".join([*common, *(line for d in share for line in d.exported), ""]) for share in shares[1:] if share]


def is_private(line: str) -> bool:
    """True if the line is a constant that each module may define for itself."""
    return line.startswith("@") and " = private unnamed_addr constant " in line


def shared_out(alone: Sequence[FunctionText], count: int, first: int) -> list[list[FunctionText]]:
    """Return the functions of each module, balanced by lines; the first module has `first` lines already."""
    shares: list[list[FunctionText]] = [[] for _ in range(count)]
    lengths = [first] + [0] * (count - 1)
    for d in sorted(alone, key=lambda d: -len(d.lines)):
        least = lengths.index(min(lengths))
        shares[least].append(d)
        lengths[least] += len(d.lines)
    return shares


def defined(text: str) -> set[str]:
    """Return the names of a module's functions."""
    return {d.name.strip('"') for d in split_definitions(text)[1]}


def split_definitions(text: str) -> tuple[list[str], list[FunctionText]]:
    """Return the lines outside of functions, and the functions."""
    rest: list[str] = []
    definitions: list[FunctionText] = []
    body: list[str] = []
    for line in text.split("\n"):
        if body or line.startswith("define "):
            body.append(line)
            if line == "}":
                definitions.append(FunctionText(tuple(body)))
                body = []
        else:
            rest.append(line)
    return rest, definitions
