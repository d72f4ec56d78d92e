"""Operators on strings and on files of images. They are interpreted, and evaluated at compile time if their operands are known;
machine code has no strings."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...graph.types import Array
from ..emitter import Emitter
from .operator import Operator, Strings, operator


def objects(function: Callable[..., Any], x: Array) -> Array:
    """Return a function of each element, as Python objects."""
    found = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        found[place] = function(x[place])
    return found


class OfStrings(Operator):
    """An operator on strings, which is not compiled."""

    def lower(self, e: Emitter, *operands: Any) -> Any:
        raise Problem("strings have no place in TOSA", kind="unsupported",
                      help="do it outside of the model, and give it the numbers that it computes with")


@operator("StringConcat")
class StringConcat(OfStrings):
    def reference(self, x: Array, y: Array) -> Array:
        first, second = np.broadcast_arrays(x, y)
        found = np.empty(first.shape, object)
        for place in np.ndindex(first.shape):
            found[place] = first[place] + second[place]
        return found


@operator("StringSplit")
class StringSplit(OfStrings):
    """The parts of each string, padded with empty strings to one number of parts, and the number of parts of each."""
    delimiter: str | None = None
    maxsplit: int | None = None

    def reference(self, x: Array) -> tuple[Array, Array]:
        most = -1 if self.maxsplit is None else self.maxsplit
        parts = objects(lambda s: s.split(self.delimiter or None, most) if s else [], x)
        counts = np.array(objects(len, parts), np.int64).reshape(x.shape)
        found = np.full((*x.shape, int(counts.max(initial=0))), "", object)
        for place in np.ndindex(x.shape):
            found[place][:counts[place]] = parts[place]
        return found, counts


@operator("RegexFullMatch")
class RegexFullMatch(OfStrings):
    """A full match of a regular expression. Python's expressions stand in for RE2's, of which they support all but few."""
    pattern: str = ""

    def reference(self, x: Array) -> Array:
        try:
            expression = re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"{self.pattern} is no regular expression: {error}") from error
        return np.array(objects(lambda s: expression.fullmatch(s) is not None, x), bool).reshape(x.shape)


@operator("StringNormalizer")
class StringNormalizer(OfStrings):
    """Words without the stop words, in other letter case; one empty word if none is left."""
    case_change_action: str = "NONE"
    is_case_sensitive: int = 0
    locale: str | None = None
    stopwords: Strings = ()

    def reference(self, x: Array) -> Array:
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise ValueError(f"words of shape {list(x.shape)} are no list")
        changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
        if self.case_change_action not in changes:
            raise ValueError(f"case_change_action is {self.case_change_action}")
        compared: Callable[[str], str] = str if self.is_case_sensitive else str.lower
        unwanted = {compared(word) for word in self.stopwords}
        kept = [changes[self.case_change_action](word) for word in x.reshape(-1) if compared(word) not in unwanted]
        found = np.array(kept or [""], object)
        return found[None] if x.ndim == 2 else found


@operator("ImageDecoder")
class ImageDecoder(Operator):
    pixel_format: str = "RGB"

    def reference(self, data: Array) -> Array:
        raise Problem("files of images are not decoded here", kind="unsupported", help="decode them outside of the model")

    def lower(self, e: Emitter, data: Any) -> Any:
        raise Problem("the size of an image depends on data, and code has fixed shapes", kind="unsupported",
                      help="decode it outside of the model")
