"""Names and types in C of tensors, pools, variables and entry functions, in the code of an object (`entry`, `state`) and in its
header (`header`).

There are two spellings. Symbols of variables are visible to a whole program, so distinct names must stay distinct
(`runtime/c_symbols`). Members of structures and macros only meet their neighbours: they are spelled readably (`c_name`), and
where two of one model would be the same, almost as in symbols (`distinct`).
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ....runtime.c_symbols import escape, spelled_apart
from ....runtime.errors import Problem
from ...elements.expression import Buffer

C_TYPES = {"bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double"}
"""C types of elements that are not C integers; floats of 8 bits and less are `uint8_t`, integers `int<n>_t`."""

WORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not nullptr operator or private protected public register
    requires restrict return short signed sizeof static struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor"""
KEYWORDS = frozenset(WORDS.split())
"""Words of C and C++ that cannot name a member."""


MACRO_WORD = re.compile(r"[0-9a-z]+")
"""The part of a name that needs no escape where a macro is made of it: a macro has no letters but capitals."""


def c_name(text: str) -> str:
    """Return a name as a C identifier: each run of characters that are not letters or digits becomes one underscore."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    if name[0].isdigit():
        name = f"x{name}"
    return f"{name}_" if name in KEYWORDS else name


def c_type(dtype: str) -> str:
    if dtype in C_TYPES:
        return C_TYPES[dtype]
    return "uint8_t" if dtype.startswith("float") else f"{dtype}_t"


def macro(name: str) -> str:
    """Return a C name as a part of a macro's name."""
    return name.upper().rstrip("_")


def size_member(name: str) -> str:
    """Return the member of a structure that holds the size in bytes of the memory at the pointer `name`."""
    return beside(name, "size")


def written_member(name: str) -> str:
    """Return the member of a structure that says whether the variable in the member `name` has been written."""
    return beside(name, "written")


def beside(name: str, what: str) -> str:
    return f"{name.rstrip('_')}_{what}"


def distinct(titles: Iterable[str], taken: Sequence[str] = (), used: Iterable[str] = ()) -> dict[str, str]:
    """Return each name in C, distinct case-insensitively (macros are all capitals), and distinct from the names `used` already.
    `taken` holds the suffixes of members beside them: x leaves x_size to its size."""
    names, before = {title: c_name(title) for title in titles}, [macro(name) for name in used]
    while True:
        counts = Counter([*before, *(key for name in names.values() for key in spellings(name, taken))])
        clashing = [t for t, name in names.items() if counts[macro(name)] > 1 and name != member_part(t, taken)]
        if not clashing:
            return names
        names |= {title: member_part(title, taken) for title in clashing}


def spellings(name: str, taken: Sequence[str]) -> list[str]:
    """Return the names that a name occupies, as macros compare them."""
    return [macro(name), *(macro(beside(name, what)) for what in taken)]


def member_part(title: str, taken: Sequence[str]) -> str:
    """Return a name for a member and a macro that no other title has: without capitals, and never with a digit first."""
    found = spelled_apart(title, MACRO_WORD, KEYWORDS | frozenset(taken))
    return escape(title) if found[0].isdigit() else found


def by_own_name(buffers: Iterable[Buffer], what: str) -> dict[str, Buffer]:
    """Return the buffers by their own names; raise a Problem if two have the same."""
    found: dict[str, Buffer] = {}
    for buffer in buffers:
        if found.setdefault(buffer.name, buffer) is not buffer:
            raise Problem(f"{what} {buffer.name} and {buffer.name} are both called {macro(c_name(buffer.name))} in C",
                          kind="symbol", help="rename one of them in the model")
    return found


def cast(type: str, value: str) -> str:
    """Return a cast, as the header writes it for C and C++."""
    return f"TOSAIC_CAST({type}, {value})"
