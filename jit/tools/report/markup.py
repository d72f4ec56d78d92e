"""HTML as nested calls: text is escaped wherever it comes from, and only what `tag` made is not."""
from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from ....runtime.errors import printable

NAME_CHARACTERS = 90
"""Characters of a name that a page shows at most: names come from models."""

VOID = frozenset({"meta", "wbr", "rect", "line", "path", "circle", "polyline"})
"""Elements that hold nothing."""


class Markup(str):
    """A piece of HTML that is finished."""
    __slots__ = ()


Child = str | Markup | Iterable[Markup] | None


def escaped(text: str) -> Markup:
    """Text as HTML, without anything that could be taken for markup or that a page must not hold."""
    return Markup(html.escape("\n".join(map(printable, text.split("\n")))))


def shortened(name: str) -> str:
    """A name on one line, cut in its middle if it is very long."""
    name = printable(name)
    return name if len(name) <= NAME_CHARACTERS else f"{name[:NAME_CHARACTERS * 2 // 3]}…{name[-NAME_CHARACTERS // 3 + 1:]}"


def breaking(text: str) -> Markup:
    """A name that may be broken behind the parts of its path, or of a processor's."""
    return Markup(re.sub("[/+]", rf"\g<0>{tag('wbr')}", escaped(text)))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. `class_` stands for class, `aria_label` for aria-label; an attribute that is None is left out, numbers lose
    their last digits."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{attribute(value)}"' for key, value in attributes.items()
                    if value is not None)
    if name in VOID:
        return Markup(f"<{name}{given}{'' if name in ('meta', 'wbr') else '/'}>")
    return Markup(f"<{name}{given}>{''.join(map(content, children))}</{name}>")


def content(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return escaped(child)
        case _:
            return "".join(child)


def attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return html.escape(printable(str(value)))


def table(head: Iterable[str], rows: Iterable[Iterable[Child]], numbers: Iterable[int] = ()) -> Markup:
    """A table; `numbers` are the columns to be aligned to the right. On a phone, rows are cards, and what stands in the head
    stands before each cell."""
    right, titles = set(numbers), tuple(head)

    def cells(kind: str, row: Iterable[Child], titles: Sequence[str] | None = None) -> Iterable[Markup]:
        return (tag(kind, cell, class_="n" if i in right else None, data_title=titles[i] or None if titles and i else None)
                for i, cell in enumerate(row))

    body = tag("tbody", (tag("tr", cells("td", row, titles)) for row in rows))
    return tag("div", tag("table", tag("thead", tag("tr", cells("th", titles))), body), class_="scroll")
