"""An ESP-IDF component, named as its folder is, with the example as an application in `examples`."""
from __future__ import annotations

from ...lowering.target.machines import MACHINES
from ...lowering.target.target import Target
from ...runtime.errors import Problem
from .contents import Contents, at, readme

SOURCES = """\
idf_component_register(SRCS @sources@
                       INCLUDE_DIRS "include")
"""

PREBUILT = """\
idf_component_register(@sources@INCLUDE_DIRS "include")
add_prebuilt_library(@prefix@_model "lib/lib@prefix@.a")
target_link_libraries(${COMPONENT_LIB} @how@ @prefix@_model)
"""

MANIFEST = """\
version: "@version@"
description: "@description@"
@targets@dependencies:
  idf: ">=5.0"
"""

APPLICATION = """\
cmake_minimum_required(VERSION 3.16)
# The model is the component two folders up.
set(EXTRA_COMPONENT_DIRS "../..")
include($ENV{IDF_PATH}/tools/cmake/project.cmake)
project(@stem@_example)
"""

MAIN_COMPONENT = """\
idf_component_register(SRCS "main.c" "@prefix@_example.c"
                       INCLUDE_DIRS ".")
"""

MAIN = """\
/* Runs the example of the model and prints what it says. */
#include <stdio.h>

#include "@prefix@_example.h"

static void say(const char *text) { fputs(text, stdout); }

void app_main(void) { @prefix@_example(say); }
"""

DEFAULTS = """\
CONFIG_ESP_MAIN_TASK_STACK_SIZE=8192
"""

USE = """\
The folder is the component: put it into the folder `components/` of an application, or name it with
`set(EXTRA_COMPONENT_DIRS ...)`. Its name is the folder's. `idf.py --preview set-target linux` builds the example for a
computer.
"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    stem, prefix = contents.stem, contents.prefix
    targets = () if contents.is_source else chips(contents.target)
    example = f"examples/{stem}_example"
    found = {"CMakeLists.txt": lists(contents), "idf_component.yml": manifest(contents, targets),
             f"{example}/CMakeLists.txt": contents.fill(APPLICATION), f"{example}/sdkconfig.defaults": DEFAULTS,
             f"{example}/main/CMakeLists.txt": contents.fill(MAIN_COMPONENT),
             f"{example}/main/main.c": contents.fill(MAIN)}
    chip = targets[0] if targets else chip_of(contents.target)
    commands = f"cd {example}\nidf.py set-target {chip}\nidf.py build flash monitor"
    data = {f"include/{contents.header_name}": contents.header} | at("src", contents.sources)
    data |= {} if contents.is_source else {f"lib/lib{prefix}.a": contents.library}
    data |= at(f"{example}/main", contents.example)
    data["README.md"] = readme(contents, "an ESP-IDF component", commands, USE)
    return {path: text.encode() for path, text in found.items()} | data


def lists(contents: Contents) -> str:
    """Return the component's CMakeLists.txt; a component without sources of its own is an interface."""
    names = " ".join(f'"src/{name}"' for name in contents.sources)
    if contents.is_source:
        return contents.fill(SOURCES, sources=names)
    return contents.fill(PREBUILT, sources=f"SRCS {names}\n                       " if names else "",
                         how="PRIVATE" if names else "INTERFACE")


def manifest(contents: Contents, targets: tuple[str, ...]) -> str:
    listed = "targets:\n" + "".join(f"  - {chip}\n" for chip in targets) if targets else ""
    return contents.fill(MANIFEST, targets=listed)


def chips(target: Target) -> tuple[str, ...]:
    """Return the chips that an object runs on, by ESP-IDF's names; `linux` is this machine."""
    names = [name for m in MACHINES.values() if m.target == target for name in (m.name, *m.boards)]
    found = tuple(name.replace("-", "") for name in names if name.startswith("esp32"))
    if found or "linux" in target.triple:
        return found or ("linux",)
    raise Problem(f"no chip of ESP-IDF runs an object for {target.cpu}", kind="option",
                  help="leave out --emit object, which is C source then, or name a chip with --target: esp32-c3, esp32-c6")


def chip_of(target: Target) -> str:
    """Return a default chip for C source."""
    names = [target.cpu, *(name for m in MACHINES.values() if m.target == target for name in m.boards)]
    return next((name.replace("-", "") for name in names if name.startswith("esp32")), "esp32")
