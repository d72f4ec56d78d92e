"""A PlatformIO library with its manifest, and the example as a project of its own."""
from __future__ import annotations

import json

from ...runtime.errors import Problem
from .contents import VERSION, Contents, at, readme

LONGEST_NAME = 50
"""Maximum number of characters in a library's name."""

PROJECT = """\
; pio run -e native -t exec runs the example on this computer. A section for a board is like it, with its platform, board and
; framework, such as:
;
; [env:esp32-s3]
; platform = espressif32
; board = esp32-s3-devkitc-1
; framework = arduino

[env]
lib_deps = @prefix@=symlink://../..

[env:native]
platform = native
"""

MAIN = """\
// Runs the example of the model and prints what it says.
#include <@prefix@.h>

#include "@prefix@_example.h"

#ifdef ARDUINO
#include <Arduino.h>

static void say(const char *text) { Serial.print(text); }

void setup() {
  Serial.begin(115200);
  @prefix@_example(say);
}

void loop() {}
#else
#include <stdio.h>

static void say(const char *text) { fputs(text, stdout); }

#ifdef ESP_PLATFORM
extern "C" void app_main(void) { @prefix@_example(say); }
#else
int main() { return @prefix@_example(say) != 0; }
#endif
#endif
"""

USE = """\
An application takes the library with `lib_deps = @prefix@=symlink://path/to/this/folder`, or has it in its `lib` folder, and
includes `@prefix@.h`.
"""


def files(contents: Contents) -> dict[str, bytes]:
    """Return the folder's files."""
    if not contents.is_source:
        raise Problem("a PlatformIO library is compiled for each board, and an object is for one processor", kind="option",
                      help="leave out --emit object, which is C source then")
    contents.check_name("PlatformIO", LONGEST_NAME)
    example = f"examples/{contents.stem}_example"
    found = {"library.json": manifest(contents), f"{example}/platformio.ini": contents.fill(PROJECT),
             f"{example}/src/main.cpp": contents.fill(MAIN)}
    data = {f"include/{contents.header_name}": contents.header}
    data |= at("src", contents.sources) | at(f"{example}/src", contents.example)
    commands = f"cd {example}\npio run -e native\npio run -e native -t exec"
    data["README.md"] = readme(contents, "a PlatformIO library", commands, contents.fill(USE))
    return {path: text.encode() for path, text in found.items()} | data


def manifest(contents: Contents) -> str:
    """Return the library.json."""
    stem = contents.stem
    example = {"name": f"{stem}_example", "base": f"examples/{stem}_example",
               "files": ["platformio.ini", "src/main.cpp", *(f"src/{name}" for name in contents.example)]}
    return json.dumps({"name": contents.prefix, "version": VERSION, "description": contents.description,
                       "keywords": ["machine learning", "inference", "tosa"], "headers": [contents.header_name],
                       "frameworks": "*", "platforms": "*", "examples": [example],
                       "build": {"srcDir": "src", "includeDir": "include"}}, indent=2) + "\n"
