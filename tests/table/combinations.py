"""Reads `combinations.txt`: which element types each operator takes and gives, by the version that has them."""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tosaic.lowering.graph.types import BF16, ELEMENT_TYPES, F6E2M3, F6E3M2, F8E4M3, F8E5M2, F16, BlockScaled, ElementType

FILE = Path(__file__).with_name("combinations.txt")
VERSIONS = ("1.0", "1.1")
Types = tuple[ElementType, ...]
COMPOSITES = tuple(t for t in ELEMENT_TYPES.values() if isinstance(t, BlockScaled))
PLAIN = tuple(t for t in ELEMENT_TYPES.values() if t not in COMPOSITES)
SETS: dict[str, Types] = {"*": PLAIN, "MX": COMPOSITES, "V": tuple(t.value for t in COMPOSITES),
                          "F8": (F8E4M3, F8E5M2), "F6": (F6E2M3, F6E3M2), "N": (F8E4M3, F8E5M2, F16, BF16)}


@dataclass(slots=True)
class Signature:
    """An operator's type variables, and the combinations of each version ("more": what tosaic takes beyond them)."""
    name: str
    variables: tuple[str, ...]
    lines: dict[str, list[str]] = field(default_factory=dict)

    def combinations(self, *versions: str) -> tuple[Types, ...]:
        """Each combination once, in the order of the file."""
        texts = [text for version in versions for text in self.lines.get(version, ())]
        return tuple(dict.fromkeys(types for text in texts for types in expanded(text, len(self.variables))))

    @property
    def legal(self) -> tuple[Types, ...]:
        """What the specification has: 1.0 and the draft of 1.1."""
        return self.combinations(*VERSIONS)

    def __contains__(self, types: Sequence[ElementType]) -> bool:
        return tuple(types) in self.combinations(*VERSIONS, "more")


def expanded(text: str, count: int = 1) -> Iterator[Types]:
    """The combinations of `count` types that a text such as i8>i8|i4>i32 stands for."""
    if text == "-":
        yield ()
    elif text.endswith("="):
        yield from ((t,) * count for t in alternatives(text[:-1]))
    else:
        yield from itertools.product(*map(alternatives, text.split(">")))


def alternatives(text: str) -> Types:
    """a|b, with names for sets of types."""
    return tuple(t for name in text.split("|") for t in SETS.get(name) or (NAMES[name],))


def read() -> dict[str, Signature]:
    """The whole table by the operators' names, without the dialect."""
    found: dict[str, Signature] = {}
    current = Signature("", ())
    for line in FILE.read_text().splitlines():
        match line.split():
            case [] | ["#", *_]:
                pass
            case [name, *variables] if name.endswith(":"):
                current = found[name[:-1]] = Signature(name[:-1], tuple(variables))
            case [version, *texts]:
                current.lines.setdefault(version, []).extend(texts)
    return found


def written(types: Sequence[ElementType]) -> str:
    """A combination as the file could write it."""
    return ">".join(map(short, types)) or "-"


def short(element: ElementType) -> str:
    """The name of a type, without signs that the file uses otherwise: mx.f8E5M2 is block-scaled."""
    if isinstance(element, BlockScaled):
        return f"mx.{short(element.value)}"
    return element.name.removeprefix("!tosa.")


NAMES = {short(t): t for t in ELEMENT_TYPES.values()}
TABLE = read()
