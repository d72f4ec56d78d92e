"""Boards and their memory, to see at a glance where a program fits: one row is one board. Its processor is a machine of the
tables (`machines`), for which its code is compiled; the names of the board and of its chip are names of that machine, too.

RAM is all that the chip has for a program's data, in one number: banks that lie apart are added up, and what the chip keeps for
a cache is left out. Flash is what holds the program: on the chip, or beside it on the board.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...runtime.errors import Problem
from .machines import BY_ANY_NAME as MACHINE_BY_NAME
from .machines import Machine

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Board:
    """A board: its name, the chip's, and the machine that it is compiled for; bytes of RAM and of flash; `source` says which of
    the makers' documents has these sizes."""
    name: str
    chip: str
    machine: str
    ram: int
    flash: int
    source: str


BOARDS = (
    Board("micro:bit V1", "nRF51822", "cortex-m0", 16 * KIB, 256 * KIB, "nRF51822 product specification, variant QFAA"),
    Board("Nucleo-F103RB", "STM32F103RB", "cortex-m3", 20 * KIB, 128 * KIB, "STM32F103x8/xB data sheet, DS5319"),
    Board("Arduino Zero", "SAMD21G18A", "cortex-m0plus", 32 * KIB, 256 * KIB, "SAM D21 data sheet, DS40001882"),
    Board("nRF52 DK", "nRF52832", "cortex-m4", 64 * KIB, 512 * KIB, "nRF52832 product specification, variant QFAA"),
    Board("Nucleo-L476RG", "STM32L476RG", "cortex-m4", 128 * KIB, MIB, "STM32L476xx data sheet, DS10198"),
    Board("nRF52840 DK", "nRF52840", "cortex-m4", 256 * KIB, MIB, "nRF52840 product specification"),
    Board("Pico", "RP2040", "cortex-m0plus", 264 * KIB, 2 * MIB, "data sheets of the RP2040 and of the Raspberry Pi Pico"),
    Board("32F746G-Discovery", "STM32F746NG", "cortex-m7+nofp.dp", 320 * KIB, MIB, "STM32F745xx/F746xx data sheet, DS10916"),
    Board("ESP32-C3-DevKitM-1", "ESP32-C3", "rv32imc", 384 * KIB, 4 * MIB,
          "ESP32-C3 data sheet (16 of 400 KB are the cache's), user guide of the board"),
    Board("ESP32-S3-DevKitC-1-N8", "ESP32-S3", "esp32-s3", 512 * KIB, 8 * MIB,
          "ESP32-S3 data sheet, user guide of the board"),
    Board("Pico 2", "RP2350", "cortex-m33", 520 * KIB, 4 * MIB, "data sheets of the RP2350 and of the Raspberry Pi Pico 2"),
    Board("EK-RA8M1", "R7FA8M1AH", "cortex-m85", MIB, 2 * MIB, "RA8M1 group data sheet"),
    Board("Teensy 4.0", "MIMXRT1062", "cortex-m7", MIB, 1984 * KIB,
          "i.MX RT1060 data sheet, technical specifications of the Teensy 4.0"),
)
"""From the least RAM to the most."""

ALL = "all"
BY_ANY_NAME: dict[str, Machine] = MACHINE_BY_NAME | {
    name.lower(): MACHINE_BY_NAME[board.machine] for board in BOARDS for name in (board.name, board.chip)}
"""Machines by their own names, and by those of boards and chips, in lower case: the names that `tosaic.target` takes."""


def boards_named(text: str) -> Sequence[Board]:
    """Return the boards of a list such as `Pico,rp2350,cortex-m4`, or all of them. A name is a board's, a chip's, or a
    machine's; a machine's selects every board that has it. Raise Problem if a name has no board."""
    if text.strip().lower() == ALL:
        return BOARDS
    return tuple(dict.fromkeys(board for name in text.split(",") for board in boards_of(name.strip())))


def boards_of(name: str) -> Sequence[Board]:
    """Return the boards with this name, or else those with this machine."""
    key = name.lower()
    machine = BY_ANY_NAME.get(key)
    chosen = [b for b in BOARDS if key in (b.name.lower(), b.chip.lower())] or [
        b for b in BOARDS if machine is not None and MACHINE_BY_NAME[b.machine] is machine]
    if not chosen:
        known = f"the memory of no board with {name} is known" if machine else f"there is no board {name}"
        raise Problem(known, kind="option", help=f"write all, or some of: {', '.join(b.name for b in BOARDS)}")
    return chosen
