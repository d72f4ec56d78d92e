"""A folder for make: a static library, and the example as its check."""
from __future__ import annotations

from .compilers import compiler_of
from .contents import MAIN, Contents, at, readme

MAKEFILE = """\
# @description@.
#
#   make            builds the library, build/lib@prefix@.a
#   make check      builds the example and runs it
#   make install    copies library and header to PREFIX
#
# CC, AR, CFLAGS, LDFLAGS, LDLIBS are as usual. TARGET_FLAGS name the processor. A board needs MAIN, the file with its main,
# BOARD, further sources such as the start, and RUN, a command that runs a program.
CROSS ?= @cross@
ifeq ($(origin CC),default)
CC = $(CROSS)@gcc@
endif
ifeq ($(origin AR),default)
AR = $(CROSS)ar
endif
TARGET_FLAGS ?= @flags@
CFLAGS ?= -O2
LDLIBS ?= @mathematics@
BUILD ?= build
MAIN ?= example/main.c
BOARD ?=
RUN ?=
PREFIX ?= /usr/local

LIBRARY = $(BUILD)/lib@prefix@.a
OBJECTS = @objects@
PROGRAM = $(BUILD)/@stem@_example
COMPILE = $(CC) $(TARGET_FLAGS) -std=c99 $(CFLAGS) -Iinclude

all: $(LIBRARY)

$(LIBRARY): $(OBJECTS) | $(BUILD)
	rm -f $@
	$(AR) rcs $@ $(OBJECTS)

$(BUILD)/%.o: src/%.c include/@prefix@.h | $(BUILD)
	$(COMPILE) -c $< -o $@

$(BUILD):
	mkdir -p $@

$(PROGRAM): $(MAIN) $(BOARD) example/@prefix@_example.c example/@prefix@_example.h example/@prefix@_recorded.h $(LIBRARY)
	$(COMPILE) -Iexample $(LDFLAGS) $(MAIN) $(BOARD) example/@prefix@_example.c $(LIBRARY) $(LDLIBS) -o $@

check: $(PROGRAM)
	$(RUN) $(PROGRAM)

install: $(LIBRARY)
	mkdir -p $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include
	cp $(LIBRARY) $(DESTDIR)$(PREFIX)/lib/
	cp include/@prefix@.h $(DESTDIR)$(PREFIX)/include/

clean:
	rm -rf $(BUILD)

.PHONY: all check install clean
"""

USE = """\
A program is compiled with `-Iinclude` and linked with `build/lib@prefix@.a`@library@.

On a board, the check takes the rest of the firmware: the file with its `main`, which calls `@prefix@_example(say)` with a
function that prints, further sources, the linker script, and a command that runs a program:

```sh
make check MAIN=main.c BOARD=start.c LDFLAGS="-T board.ld" RUN="..."
```
"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    found = {"Makefile": makefile(contents).encode(), f"include/{contents.header_name}": contents.header,
             "example/main.c": contents.fill(MAIN).encode()}
    found |= at("src", contents.sources if contents.is_source else {**contents.sources, f"{contents.stem}.o": contents.code})
    found |= at("example", contents.example)
    use = contents.fill(USE, library=" and `-lm`" * contents.needs_mathematics)
    return found | {"README.md": readme(contents, "a static library, built by make", "make\nmake check", use)}


def makefile(contents: Contents) -> str:
    compiler = compiler_of(contents.target)
    built = [f"$(BUILD)/{name.removesuffix('.c')}.o" for name in contents.sources]
    objects = built if contents.is_source else [f"src/{contents.stem}.o", *built]
    text = contents.fill(MAKEFILE, cross=compiler.prefix, gcc="gcc" if compiler.prefix else "cc", objects=" ".join(objects),
                         flags=" ".join(compiler.flags), mathematics="-lm" * contents.needs_mathematics)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
