"""Some microcontrollers and their memory, to see at a glance where a program fits. Sizes are those of the makers' data
sheets: all RAM that a program can use as data, and the flash on the chip."""
from __future__ import annotations

from .fit import Fit, fit_totals
from .text import Report

KIB, MIB = 1 << 10, 1 << 20

BOARDS: tuple[tuple[str, int, int | None], ...] = (
    ("ATSAMD21G18", 32 * KIB, 256 * KIB),
    ("nRF52832", 64 * KIB, 512 * KIB),
    ("STM32L476", 128 * KIB, 1 * MIB),
    ("nRF52840", 256 * KIB, 1 * MIB),
    ("RP2040", 264 * KIB, None),
    ("STM32F746", 320 * KIB, 1 * MIB),
    ("ESP32-S3", 512 * KIB, None),
    ("RP2350", 520 * KIB, None))
"""Name, bytes of RAM, bytes of flash; None where flash is a chip of its own."""


def on_boards(report: Report) -> tuple[tuple[str, Fit], ...]:
    """The verdict for each board."""
    return tuple((name, fit_totals(report, ram, flash)) for name, ram, flash in BOARDS)
