"""A Zephyr module with an option of Kconfig, and the example as a sample that twister can run."""
from __future__ import annotations

from .contents import Contents, at, readme

MODULE = """\
name: @prefix@
build:
  cmake: .
  kconfig: Kconfig
samples:
  - samples
"""

LISTS = """\
if(CONFIG_@upper@)
  zephyr_include_directories(include)
@library@endif()
"""

KCONFIG = ("config @upper@", '\tbool "@description@"', "@wants@\thelp",
           "\t  Builds the model into the application. @prefix@.h says how", "\t  it is called.", "")

SAMPLE_LISTS = """\
cmake_minimum_required(VERSION 3.20.0)
# The model is the module two folders up.
list(APPEND EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_SOURCE_DIR}/../..)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(@stem@_example)

target_include_directories(app PRIVATE src)
target_sources(app PRIVATE src/main.c src/@prefix@_example.c)
"""

SETTINGS = """\
CONFIG_@upper@=y
CONFIG_MAIN_STACK_SIZE=8192
"""

SAMPLE = """\
sample:
  name: @stem@_example
  description: Recorded calls of the model @stem@, compared with what they must give
tests:
  sample.@prefix@:
    tags: tosaic
    harness: console
    harness_config:
      type: one_line
      regex:
        - "@prefix@: [0-9]+ calls, OK"
"""

MAIN = """\
/* Runs the example of the model and prints what it says. */
#include <zephyr/sys/printk.h>

#include "@prefix@_example.h"

static void say(const char *text) { printk("%s", text); }

int main(void) {
    @prefix@_example(say);
    return 0;
}
"""

USE = """\
The folder is a module: name it in the manifest of west, or build an application with
`-DEXTRA_ZEPHYR_MODULES=path/to/this/folder`. `CONFIG_@upper@=y` builds the model into it.
"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    sample = f"samples/{contents.stem}_example"
    found = {"zephyr/module.yml": contents.fill(MODULE), "CMakeLists.txt": lists(contents),
             "Kconfig": kconfig(contents), f"{sample}/CMakeLists.txt": contents.fill(SAMPLE_LISTS),
             f"{sample}/prj.conf": contents.fill(SETTINGS),
             f"{sample}/sample.yaml": contents.fill(SAMPLE),
             f"{sample}/src/main.c": contents.fill(MAIN)}
    data = {f"include/{contents.header_name}": contents.header} | at("src", contents.sources)
    data |= {} if contents.is_source else {f"lib/lib{contents.prefix}.a": contents.library}
    data |= at(f"{sample}/src", contents.example)
    commands = f"cd {sample}\nwest build -b YOUR_BOARD\nwest flash"
    data["README.md"] = readme(contents, "a Zephyr module", commands, contents.fill(USE))
    return {path: text.encode() for path, text in found.items()} | data


def kconfig(contents: Contents) -> str:
    """Return the option, which implies the floating-point unit if the processor has one and the model may use it, and selects a
    full C library if the model calls mathematics."""
    wants = "\timply FPU\n" * contents.computes_floats + "\tselect REQUIRES_FULL_LIBC\n" * contents.needs_mathematics
    return contents.fill("\n".join(KCONFIG), wants=wants)


def lists(contents: Contents) -> str:
    """Return the module's CMakeLists.txt."""
    lines = []
    if contents.sources:
        names = " ".join(f"src/{name}" for name in contents.sources)
        lines += [f"  zephyr_library_named({contents.prefix})", f"  zephyr_library_sources({names})"]
    if not contents.is_source:
        library = f"${{CMAKE_CURRENT_SOURCE_DIR}}/lib/lib{contents.prefix}.a"
        lines.append(f"  zephyr_library_import({contents.prefix}_model {library})")
    return contents.fill(LISTS, library="".join(f"{line}\n" for line in lines))
