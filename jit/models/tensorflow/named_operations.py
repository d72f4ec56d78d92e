"""TensorFlow's MLIR with debug information -> the same MLIR with only the name of each operation as its location: TensorFlow
writes the whole Python call stack of each operation, which is many times as long as the graph.
"""
from __future__ import annotations

import re
from functools import cache

ALIAS = re.compile(r"^#loc(\d*) = loc\((.*)\)\n?", re.MULTILINE)
USE = re.compile(r" loc\((?:#loc(\d*)|unknown)\)")
NAME = re.compile(r'"(?:[^"\\]|\\.)*"(?!\s*:\s*\d)')
FUSED, CALLED = re.compile(r"fused(?:<.*?>)?\[(.*)\]"), re.compile(r"callsite\((.*?) at .*\)")
INNER = re.compile(r'#loc(\d*)|("(?:[^"\\]|\\.)*")')


CONSTANT = re.compile(r"= arith\.constant (dense<[^>]*>) : (tensor<[^>]*>)")


def with_constants(text: str) -> str:
    """Return the text with constants that TensorFlow's importer created in another dialect as constants of TensorFlow's
    dialect."""
    return CONSTANT.sub(r'= "tf.Const"() <{value = \1 : \2}> : () -> \2', text)


def with_names(text: str) -> str:
    """Return the text with names as locations; operations without a name have no location."""
    locations = dict(ALIAS.findall(text))

    @cache
    def name(number: str) -> str | None:
        return name_in(locations.get(number, ""))

    def name_in(location: str) -> str | None:
        """Return the quoted name of an operation in a location. A kind of operation ends in a colon, and a name may be followed
        by the function that contains it."""
        if (found := NAME.match(location)) is not None:
            return None if found[0].endswith(':"') else f'"{found[0][1:-1].split("@")[0]}"'
        if (call := CALLED.fullmatch(location)) is not None:
            return name_in(call[1])
        if (several := FUSED.fullmatch(location)) is not None:
            location = several[1]
        names = (name(alias) if not quoted else name_in(quoted) for alias, quoted in INNER.findall(location))
        return next(filter(None, names), None)

    def located(use: re.Match[str]) -> str:
        found = name(use[1]) if use[1] is not None else None
        return f" loc({found})" if found else ""

    return USE.sub(located, ALIAS.sub("", text))
