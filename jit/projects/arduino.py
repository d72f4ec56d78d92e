"""An Arduino library, with the example as a sketch. An object is a precompiled library for boards with its processor."""
from __future__ import annotations

from ...lowering.target.target import Target
from ...runtime.errors import Problem
from .contents import Contents, at, readme

LONGEST_NAME = 63
"""Maximum number of characters in the name of a library's folder, which is that of the library."""

PROPERTIES = """\
name=@prefix@
version=@version@
author=tosaic
maintainer=tosaic
sentence=@description@.
paragraph=A neural network as C, without an interpreter and without a heap. The example checks it with recorded calls.
category=Data Processing
url=https://www.mlplatform.org/tosa
architectures=*
includes=@prefix@.h
@precompiled@"""

SKETCH = """\
// Runs the example of the model and prints what it says.
#include <@prefix@.h>

#include "@prefix@_example.h"

static void say(const char *text) { Serial.print(text); }

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  @prefix@_example(say);
}

void loop() {}
"""

USE = """\
The folder goes into `libraries` of the sketchbook, or is named with `--library`. A sketch includes `@prefix@.h`. YOUR_BOARD
is a name such as `arduino:mbed_nano:nano33ble`.
"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    stem, prefix = contents.stem, contents.prefix
    contents.check_name("Arduino", LONGEST_NAME)
    folder = None if contents.is_source else mcu_of(contents.target)
    sketch = f"examples/{stem}_example"
    precompiled = "" if contents.is_source else f"precompiled=true\nldflags=-l{prefix}\n"
    found = {"library.properties": contents.fill(PROPERTIES, precompiled=precompiled),
             f"{sketch}/{stem}_example.ino": contents.fill(SKETCH)}
    data = at("src", {contents.header_name: contents.header} | contents.sources) | at(sketch, contents.example)
    if folder is not None:
        data[f"src/{folder}/lib{prefix}.a"] = contents.library
    commands = (f"arduino-cli compile --library . -b YOUR_BOARD {sketch}\n"
                f"arduino-cli upload -p YOUR_PORT -b YOUR_BOARD {sketch}\narduino-cli monitor -p YOUR_PORT -c baudrate=115200")
    data["README.md"] = readme(contents, "an Arduino library", commands, contents.fill(USE))
    return {path: text.encode() for path, text in found.items()} | data


def mcu_of(target: Target) -> str:
    """Return the folder of a precompiled library: the boards' name of the processor (`build.mcu`), which for a Cortex-M is the
    processor's own name."""
    if target.architecture == "arm" and target.cpu.startswith("cortex-m"):
        return target.cpu
    raise Problem(f"which Arduino boards an object for {target.cpu} would be for is not known", kind="option",
                  help="leave out --emit object, which is C source then, or name a Cortex-M with --target")
