"""Shapes as attributes: `#corert.shape<1x?x3>`, `#corert.shape<*>` of unknown rank, or a list of extents."""
from __future__ import annotations

import re

from ....lowering.text.attributes import Attribute, Number, Text

SHAPE = re.compile(r"#corert\.shape<(\*|(?:(?:\?|[0-9]+)(?:x(?:\?|[0-9]+))*)?)>")


def is_shape(value: Attribute) -> bool:
    """True if an attribute is a shape."""
    if isinstance(value, tuple):
        return all(isinstance(item, Number) and isinstance(item.value, int) for item in value)
    return isinstance(value, Text) and SHAPE.fullmatch(value.text) is not None


def shape_of(value: Attribute) -> tuple[int | None, ...] | None:
    """Return the extents of a shape, None for unknown ones; None if the rank is unknown."""
    if isinstance(value, tuple):
        return tuple(int(item.value) for item in value if isinstance(item, Number))
    assert isinstance(value, Text)
    match = SHAPE.fullmatch(value.text)
    assert match is not None, value.text
    text = match.group(1)
    if text == "*":
        return None
    return tuple(None if extent == "?" else int(extent) for extent in text.split("x")) if text else ()
