"""Names and types as C has them: of tensors, pools, variables and entry functions, in the code of an object (`entry`, `state`)
and in its header (`header`).

Two spellings. Symbols of variables are seen by all of a program: distinct names are spelled such that they stay distinct
(`runtime/c_symbols`). Members of structures and macros are seen beside each other only: they are spelled as a reader would
(`c_name`), and where two of one model would be the same, nearly as in symbols (`distinct`).
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ....runtime.c_symbols import escape, spelled_apart
from ....runtime.errors import Problem
from ...elements.expression import Buffer

C_TYPES = {"bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double"}
"""C types of elements that are no integers of C; floats of 8 bits and less are `uint8_t`, integers `int<n>_t`."""

WORDS = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not nullptr operator or private protected public register
    requires restrict return short signed sizeof static struct switch template this throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor"""
KEYWORDS = frozenset(WORDS.split())
"""Words of C and C++ that cannot name a member."""


MACRO_WORD = re.compile(r"[0-9a-z]+")
"""What stays as it is in a name of which a macro is made: that has no other letters than capitals."""


def c_name(text: str) -> str:
    """A name as C takes it: what is no letter or digit becomes an underscore, two of them one."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    if name[0].isdigit():
        name = f"x{name}"
    return f"{name}_" if name in KEYWORDS else name


def c_type(dtype: str) -> str:
    if dtype in C_TYPES:
        return C_TYPES[dtype]
    return "uint8_t" if dtype.startswith("float") else f"{dtype}_t"


def macro(name: str) -> str:
    """A name of C as a part of a macro's name."""
    return name.upper().rstrip("_")


def size_member(name: str) -> str:
    """The member of a structure that holds the bytes behind the pointer `name`."""
    return beside(name, "size")


def written_member(name: str) -> str:
    """The member of a structure that says whether the variable in the member `name` has been written."""
    return beside(name, "written")


def beside(name: str, what: str) -> str:
    return f"{name.rstrip('_')}_{what}"


def distinct(titles: Iterable[str], taken: Sequence[str] = (), used: Iterable[str] = ()) -> dict[str, str]:
    """Each name in C, distinct without regard to capitals, since macros have no others, and from those `used` already. `taken`
    are what members beside them are called: x leaves x_size to its size."""
    names, before = {title: c_name(title) for title in titles}, [macro(name) for name in used]
    while True:
        counts = Counter([*before, *(key for name in names.values() for key in spellings(name, taken))])
        clashing = [t for t, name in names.items() if counts[macro(name)] > 1 and name != member_part(t, taken)]
        if not clashing:
            return names
        names |= {title: member_part(title, taken) for title in clashing}


def spellings(name: str, taken: Sequence[str]) -> list[str]:
    """What a name takes up, as macros compare names."""
    return [macro(name), *(macro(beside(name, what)) for what in taken)]


def member_part(title: str, taken: Sequence[str]) -> str:
    """A name for a member and a macro that no other title has: without capitals, and no word that begins with a digit first."""
    found = spelled_apart(title, MACRO_WORD, KEYWORDS | frozenset(taken))
    return escape(title) if found[0].isdigit() else found


def by_own_name(buffers: Iterable[Buffer], what: str) -> dict[str, Buffer]:
    """Buffers by their own names; a Problem where two have the same."""
    found: dict[str, Buffer] = {}
    for buffer in buffers:
        if found.setdefault(buffer.name, buffer) is not buffer:
            raise Problem(f"{what} {buffer.name} and {buffer.name} are both called {macro(c_name(buffer.name))} in C",
                          kind="symbol", help="rename one of them in the model")
    return found


def cast(type: str, value: str) -> str:
    """A conversion, as the header writes it for C and C++."""
    return f"TOSAIC_CAST({type}, {value})"
