"""Debug information in the text of a module: DWARF lines, so that debuggers, addr2line and disassemblers show for each function
the line of the model that it computes. It changes no byte of code, except on AArch64, where LLVM reorders instructions of a
function's prologue when debuggers are to unwind through it.

LLVM's texts have it as metadata: a compile unit for each file of lines, a subprogram for each function, and one location for
all of a function's instructions.
"""
from __future__ import annotations

import re
from collections.abc import Mapping

from ...runtime.errors import Position

NAME = re.compile(r'@(?:"(?P<quoted>[^"\n]*)"|(?P<plain>[-\w.$]+))')
OUTLINED = re.compile(r"@(loop\.[0-9a-f]+)\b")
NUMBERED = re.compile(r"^!(\d+) =", re.MULTILINE)
DWARF_VERSION = 4
"""DWARF version that the tools of all targets read."""
LAST_COLUMN = (1 << 16) - 1
"""Maximum column of LLVM's locations."""
FLAGS = (f'!{{i32 7, !"Dwarf Version", i32 {DWARF_VERSION}}}', '!{i32 2, !"Debug Info Version", i32 3}')


def with_debug_lines(module: str, positions: Mapping[str, Position]) -> str:
    """Return a module's text with the lines of `positions` for its functions, by their names. Functions without a position, or
    with a position in a file without lines, get no line."""
    positions = with_outlined(module, positions)
    metadata = Metadata(1 + max(map(int, NUMBERED.findall(module)), default=-1))
    lines: list[str] = []
    location = ""
    for line in module.split("\n"):
        if line.startswith("define "):
            function, location = metadata.function(name_of(line), positions)
            line = f"{line.removesuffix(' {')} !dbg {function} {{" if function else line
        elif line == "}":
            location = ""
        elif location and line.startswith(" "):
            line += f", !dbg {location}"
        lines.append(line)
    return "\n".join([*lines, *metadata.lines(), ""]) if metadata.units else module


def with_outlined(module: str, positions: Mapping[str, Position]) -> Mapping[str, Position]:
    """Return the positions, and those of outlined loops: each has the position of the first function that calls it."""
    found = dict(positions)
    position: Position | None = None
    for line in module.split("\n"):
        if line.startswith("define "):
            position = positions.get(name_of(line))
        elif position is not None:
            found |= {name: position for name in OUTLINED.findall(line) if name not in found}
    return found


def name_of(definition: str) -> str:
    found = NAME.search(definition)
    assert found is not None
    return found["plain"] or found["quoted"]


class Metadata:
    """The numbered metadata nodes of a module, from `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.nodes: list[str] = []
        self.units: dict[str, tuple[str, str]] = {}
        """File and unit of each source, by its name."""
        self.type = ""

    def node(self, text: str) -> str:
        self.nodes.append(text)
        return f"!{self.first + len(self.nodes) - 1}"

    def function(self, name: str, positions: Mapping[str, Position]) -> tuple[str, str]:
        """Return the subprogram of a function and the location of its instructions; empty if it has no line."""
        position = positions.get(name)
        if position is None or position.line < 1 or not position.source.name:
            return "", ""
        file, unit = self.unit(position.source.name)
        self.type = self.type or self.node("!DISubroutineType(types: !{null})")
        where = f"line: {position.line}"
        function = self.node(
            f"distinct !DISubprogram(name: {text(name)}, scope: {file}, file: {file}, {where}, type: {self.type}, scopeLine: "
            f"{position.line}, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, unit: {unit})")
        column = position.column if position.column <= LAST_COLUMN else 0  # 0 is no column
        return function, self.node(f"!DILocation({where}, column: {column}, scope: {function})")

    def unit(self, source: str) -> tuple[str, str]:
        """Return the file and the unit of a source. Names are those by which the model was given, so that the same model gives
        the same bytes in every folder."""
        if source not in self.units:
            file = self.node(f'!DIFile(filename: {text(source)}, directory: "")')
            unit = self.node(f'distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, producer: "tosaic", '
                             "isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)")
            self.units[source] = file, unit
        return self.units[source]

    def lines(self) -> list[str]:
        """Return all nodes, and the named metadata that LLVM looks for."""
        flags = [self.node(flag) for flag in FLAGS]
        units = ", ".join(unit for _, unit in self.units.values())
        return [f"!llvm.dbg.cu = !{{{units}}}", f"!llvm.module.flags = !{{{', '.join(flags)}}}",
                *(f"!{self.first + i} = {node}" for i, node in enumerate(self.nodes))]


def text(name: str) -> str:
    """Return a string of LLVM's metadata: everything but plain ASCII as hexadecimal escapes."""
    raw = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw) + '"'
