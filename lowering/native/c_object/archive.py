"""A static library: an archive of objects as System V's `ar` lays it out (the GNU form), with the index of symbols that a
linker looks into. The same objects give the same bytes: no times, no owners.
"""
from __future__ import annotations

import struct
from collections.abc import Mapping

from ....runtime.errors import Problem
from ...machine_code.elf import exported_symbols

MAGIC = b"!<arch>\n"
SHORT = 15
"""The most characters of a name that fit a member's head, with the slash that ends it."""


def archive(members: Mapping[str, bytes]) -> bytes:
    """The archive of ELF objects, by their names."""
    symbols = [(symbol, number) for number, code in enumerate(members.values()) for symbol in exported(code)]
    names = b"".join(f"{name}/\n".encode() for name in members if len(name.encode()) > SHORT)
    index_size = 4 + 4 * len(symbols) + sum(len(symbol) + 1 for symbol, _ in symbols)
    before = member("/", bytes(index_size)) + (member("//", names) if names else b"")
    offsets, end, long_at, body = [], len(MAGIC) + len(before), 0, b""
    for name, code in members.items():
        offsets.append(end + len(body))
        title = f"{name}/"
        if len(name.encode()) > SHORT:
            title, long_at = f"/{long_at}", long_at + len(name.encode()) + 2
        body += member(title, code)
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *(offsets[number] for _, number in symbols))
    index += b"".join(symbol.encode() + b"\0" for symbol, _ in symbols)
    return MAGIC + member("/", index) + (member("//", names) if names else b"") + body


def member(title: str, data: bytes) -> bytes:
    """A member: its head in decimal and octal digits, then its bytes, padded to an even number."""
    mode = "0" if title in ("/", "//") else "644"
    head = f"{title:<16}{0:<12}{0:<6}{0:<6}{mode:<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def exported(code: bytes) -> tuple[str, ...]:
    if code[:4] != b"\x7fELF":
        raise Problem("a static library is made of ELF objects, and this target has others", kind="unsupported",
                      help="leave the library out, and link the object")
    return exported_symbols(code)
