"""The contents of every project, whatever its layout: the model's code, its header, its constant pools as C, and the example.
`systems` lay these files out; `save_project` writes them.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...lowering.native.c_object.archive import archive
from ...lowering.target.target import Target
from ...runtime.errors import Problem

VERSION = "1.0.0"
"""Version of every project: manifests must have one, and a model has none."""
LIBRARY_FREE = ("memcpy", "memset", "memmove")
"""Functions of the C library that every compiler provides."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a model by name, before they have paths. `code` is C source or an object (`is_source`), `pools` are C source
    of the constant pools, `example` its C source and its headers, `needs` the functions that the code calls and does not
    define, `sizes` lines about the memory that the model uses."""
    stem: str
    code: bytes
    is_source: bool
    header: bytes
    pools: Mapping[str, bytes]
    example: Mapping[str, bytes]
    target: Target
    needs: tuple[str, ...]
    sizes: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """Prefix of the header's names, which is also the project's name."""
        return f"tosaic_{self.stem}"

    def check_name(self, system: str, longest: int) -> None:
        """Raise a Problem for a name that is longer than a system accepts."""
        if len(self.prefix) > longest:
            raise Problem(f"{self.prefix} is {len(self.prefix)} characters long, and {system} takes names of {longest}",
                          kind="option", help="name the model with --name")

    def fill(self, text: str, **words: str) -> str:
        """Return the text with each @name@ replaced: by the given words, the model's names, or its description."""
        known = {"stem": self.stem, "prefix": self.prefix, "upper": self.prefix.upper(), "description": self.description,
                 "version": VERSION} | words
        return re.sub(r"@([a-z]+)@", lambda found: known[found[1]], text)

    @property
    def header_name(self) -> str:
        return f"{self.prefix}.h"

    @property
    def description(self) -> str:
        return f"The model {self.stem}, compiled by tosaic"

    @property
    def sources(self) -> dict[str, bytes]:
        """The C files of the model."""
        return ({f"{self.stem}.c": self.code} if self.is_source else {}) | dict(self.pools)

    @property
    def library(self) -> bytes:
        """The object as a static library."""
        return archive({f"{self.stem}.o": self.code})

    @property
    def needs_mathematics(self) -> bool:
        """True if the C library's mathematics is needed, which is a library of its own on some systems."""
        return any(name not in LIBRARY_FREE and not name.startswith("_") for name in self.needs)

    @property
    def computes_floats(self) -> bool:
        """True if the code may use a floating-point unit."""
        if not self.is_source:
            return bool(self.target.float_unit)
        return re.search(rb"\b(float|double)\b", self.code) is not None


def at(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with their paths in a folder."""
    return {f"{folder}/{name}": data for name, data in files.items()}


MAIN = """\
/* Runs the example of the model and prints what it says. */
#include <stdio.h>

#include "@prefix@_example.h"

static void say(const char *text) { fputs(text, stdout); }

int main(void) { return @prefix@_example(say) != 0; }
"""


PLACES = """\
A macro that is named above may be defined for the compiler, as in `-DNAME=.section`: the array lies in that section of the
linker script then."""


def readme(contents: Contents, title: str, commands: str, what: str) -> bytes:
    """Return a page: a description, the commands, the use from other projects, the memory that the model needs."""
    sizes = "\n".join(f"* {line}" for line in contents.sizes) + f"\n\n{PLACES}" * any("_SECTION" in s for s in contents.sizes)
    return f"""\
# {contents.prefix}

{contents.description}: {title}. `{contents.header_name}` says how it is called, and what it needs.

```sh
{commands.strip()}
```

The example makes recorded calls of the model and compares what comes out with what tosaic's reference interpreter has
computed; it says OK, or what differs.

{what.strip()}

{sizes.strip()}

`tosaic.json` lists the files as they were written. Writing the project again replaces those that nobody has changed, and no
other. Each model has a folder of its own; any number of them, with other names, go into one program.
""".encode()
