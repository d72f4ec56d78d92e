"""HTML as nested calls: all text is escaped, except for the results of `tag`."""
from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from ....runtime.errors import printable

NAME_CHARACTERS = 90
"""Maximum number of characters of a name on a page: names come from models."""

VOID = frozenset({"meta", "wbr", "rect", "line", "path", "circle", "polyline"})
"""Elements without content."""


class Markup(str):
    """A finished piece of HTML."""
    __slots__ = ()


Child = str | Markup | Iterable[Markup] | None


def escaped(text: str) -> Markup:
    """Return text as HTML, without anything that could be taken for markup or that a page must not hold."""
    return Markup(html.escape("\n".join(map(printable, text.split("\n")))))


def shortened(name: str) -> str:
    """Return a name on one line, cut in its middle if it is very long."""
    name = printable(name)
    return name if len(name) <= NAME_CHARACTERS else f"{name[:NAME_CHARACTERS * 2 // 3]}…{name[-NAME_CHARACTERS // 3 + 1:]}"


def breaking(text: str) -> Markup:
    """Return a name that may be broken after the parts of its path, or of a processor's."""
    return Markup(re.sub("[/+]", rf"\g<0>{tag('wbr')}", escaped(text)))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element. `class_` is the attribute class, `aria_label` aria-label; an attribute that is None is omitted,
    numbers lose their last digits."""
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
    """Return a table; `numbers` are the columns to be aligned to the right. On a phone, rows are cards, and each cell follows
    its column's title."""
    right, titles = set(numbers), tuple(head)

    def cells(kind: str, row: Iterable[Child], titles: Sequence[str] | None = None) -> Iterable[Markup]:
        return (tag(kind, cell, class_="n" if i in right else None, data_title=titles[i] or None if titles and i else None)
                for i, cell in enumerate(row))

    body = tag("tbody", (tag("tr", cells("td", row, titles)) for row in rows))
    return tag("div", tag("table", tag("thead", tag("tr", cells("th", titles))), body), class_="scroll")
