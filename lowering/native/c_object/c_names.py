"""Names and types as C has them: of tensors, pools, variables and entry functions, in the code of an object (`entry`, `state`)
and in its header (`header`).
"""
from __future__ import annotations

import re
from collections.abc import Iterable

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
    return f"{name.rstrip('_')}_size"


def distinct(titles: Iterable[str], what: str, remedy: str = "rename one of them in the model") -> dict[str, str]:
    """Each name in C; a Problem where two get the same, or (the macros have capitals only) nearly the same."""
    found: dict[str, str] = {}
    for title in titles:
        key = macro(c_name(title))
        if found.setdefault(key, title) != title:
            raise Problem(f"{what} {found[key]} and {title} are both called {key} in C", kind="symbol", help=remedy)
    return {title: c_name(title) for title in found.values()}


def members(titles: Iterable[str], what: str, remedy: str = "rename one of them in the model") -> dict[str, str]:
    """`distinct` for the members of a structure; a Problem, too, where one is called what another one's size is."""
    names = distinct(titles, what, remedy)
    sizes = {size_member(name): title for title, name in names.items()}
    for title, name in names.items():
        if name in sizes:
            raise Problem(f"{what} {title} is what C calls the size of {sizes[name]}", kind="symbol", help=remedy)
    return names


def by_own_name(buffers: Iterable[Buffer], what: str) -> dict[str, Buffer]:
    """Buffers by their own names; a Problem where two have the same."""
    found: dict[str, Buffer] = {}
    for buffer in buffers:
        if found.setdefault(buffer.name, buffer) is not buffer:
            raise Problem(f"{what} {buffer.name} and {buffer.name} are both called {macro(c_name(buffer.name))} in C",
                          kind="symbol", help="rename one of them in the model")
    return found
