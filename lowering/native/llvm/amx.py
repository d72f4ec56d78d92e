"""Statements of a matrix unit -> LLVM's intrinsics for AMX (ldtilecfg, tilezero, tileloadd, tilestored, tdpbssd, tdpbusd,
tdpbf16ps, tilerelease), with tile registers by their numbers.

A function that shapes tiles releases the unit at its end: while tiles are in use, every thread switch saves 8 KB.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.records import dataclass
from ...machine_code.llvm_writer import Writer, data
from ...target.features import SHAPES_TILES

PALETTE = 1
"""The only palette: 8 tiles of 16 rows of 64 bytes."""


@dataclass(slots=True)
class TileInstructions:
    """The writer of one function's tile instructions."""
    writer: Writer
    used: bool = False

    def shape(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Load a configuration, a constant of the module: LDTILECFG's 64 bytes."""
        self.used = True
        name = f"@tosaic.tiles.{'.'.join(f'{rows}x{nbytes}' for rows, nbytes in shapes)}"
        text = "".join(f"\\{byte:02X}" for byte in configuration(shapes))
        self.writer.declared[name] = data(name[1:], "private unnamed_addr constant", "[64 x i8]", f'c"{text}"', align=64)
        self.writer.intrinsic(SHAPES_TILES, "void", [("ptr", name)])

    def release(self) -> None:
        """Release the unit at the end of the function."""
        if self.used:
            self.writer.intrinsic("llvm.x86.tilerelease", "void", [])

    def zero(self, tile: int) -> None:
        self.writer.intrinsic("llvm.x86.tilezero", "void", [("i8", f"{tile}")])

    def load(self, tile: int, pointer: str, stride: int) -> None:
        """Load a tile; `stride` is in bytes."""
        self.writer.intrinsic("llvm.x86.tileloadd64", "void", [("i8", f"{tile}"), ("ptr", pointer), ("i64", f"{stride}")])

    def store(self, tile: int, pointer: str, stride: int) -> None:
        self.writer.intrinsic("llvm.x86.tilestored64", "void", [("i8", f"{tile}"), ("ptr", pointer), ("i64", f"{stride}")])

    def multiply(self, total: int, x: int, y: int, signed: bool) -> None:
        """Multiply signed or unsigned bytes by signed ones."""
        self.writer.intrinsic(f"llvm.x86.tdpb{'s' if signed else 'u'}sd", "void", [("i8", f"{t}") for t in (total, x, y)])

    def multiply_floats(self, total: int, x: int, y: int) -> None:
        """Multiply pairs of bfloat16."""
        self.writer.intrinsic("llvm.x86.tdpbf16ps", "void", [("i8", f"{t}") for t in (total, x, y)])


def configuration(shapes: Sequence[tuple[int, int]]) -> bytes:
    """Return a configuration: palette, bytes of a row from byte 16 on, rows from byte 48 on."""
    result = bytearray(64)
    result[0] = PALETTE
    for i, (rows, nbytes) in enumerate(shapes):
        result[16 + 2 * i:18 + 2 * i] = nbytes.to_bytes(2, "little")
        result[48 + i] = rows
    return bytes(result)
