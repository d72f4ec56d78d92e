"""Debug information in the text of a module: DWARF lines, so that debuggers, addr2line and disassemblers show of each
function the line of the model that it is for. It changes no byte of code, but on AArch64, where LLVM puts instructions of a
function's prologue into another order when debuggers are to unwind through it.

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
"""Which the tools of all targets read."""
LAST_COLUMN = (1 << 16) - 1
"""That LLVM's locations have room for."""
FLAGS = (f'!{{i32 7, !"Dwarf Version", i32 {DWARF_VERSION}}}', '!{i32 2, !"Debug Info Version", i32 3}')


def with_debug_lines(module: str, positions: Mapping[str, Position]) -> str:
    """The text of a module whose functions have the lines of `positions`, by their names; the others have none, nor those whose
    places are in files without lines."""
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
    """The positions, and those of loops that are functions of their own: of the first function that calls them."""
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
    """The numbered nodes of a module, from `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.nodes: list[str] = []
        self.units: dict[str, tuple[str, str]] = {}
        """The file and the unit of each source, by its name."""
        self.type = ""

    def node(self, text: str) -> str:
        self.nodes.append(text)
        return f"!{self.first + len(self.nodes) - 1}"

    def function(self, name: str, positions: Mapping[str, Position]) -> tuple[str, str]:
        """The subprogram of a function and the location of its instructions; empty where it has no line."""
        position = positions.get(name)
        if position is None or position.line < 1 or not position.source.name:
            return "", ""
        file, unit = self.unit(position.source.name)
        self.type = self.type or self.node("!DISubroutineType(types: !{null})")
        where = f"line: {position.line}"
        function = self.node(
            f"distinct !DISubprogram(name: {text(name)}, scope: {file}, file: {file}, {where}, type: {self.type}, scopeLine: "
            f"{position.line}, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, unit: {unit})")
        column = position.column if position.column <= LAST_COLUMN else 0  # which is none
        return function, self.node(f"!DILocation({where}, column: {column}, scope: {function})")

    def unit(self, source: str) -> tuple[str, str]:
        """The file of a source and its unit. Names are those that the model was given by, so that the same model gives the same
        bytes in every folder."""
        if source not in self.units:
            file = self.node(f'!DIFile(filename: {text(source)}, directory: "")')
            unit = self.node(f'distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, producer: "tosaic", '
                             "isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)")
            self.units[source] = file, unit
        return self.units[source]

    def lines(self) -> list[str]:
        """All nodes, and what LLVM looks for by name."""
        flags = [self.node(flag) for flag in FLAGS]
        units = ", ".join(unit for _, unit in self.units.values())
        return [f"!llvm.dbg.cu = !{{{units}}}", f"!llvm.module.flags = !{{{', '.join(flags)}}}",
                *(f"!{self.first + i} = {node}" for i, node in enumerate(self.nodes))]


def text(name: str) -> str:
    """A string of LLVM's metadata: everything but plain ASCII as hexadecimal escapes."""
    raw = name.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw) + '"'
