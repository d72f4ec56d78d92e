"""A pool as a picture of letters: steps across, bytes up, at each position the letter of the buffer there. A line below marks
the peak."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase

from ....runtime.errors import printable
from .columns import Columns, columns
from .figures import BufferLine, Figures, PoolLine

WIDTH, HEIGHT, WIDEST = 72, 12, 6
"""Maximum number of characters of a picture's width, of its height, and of one of its columns."""

LETTERS = ascii_lowercase + ascii_uppercase


def picture(report: Figures, pool: PoolLine) -> list[str]:
    """Return the lines of a pool's picture; none if the pool is empty."""
    axis = columns(report.timeline, WIDTH)
    held = drawn(report, pool)
    if not held or not pool.nbytes:
        return []
    cell = max(1, min(WIDEST, WIDTH // len(axis)))
    grid = cells(held, letters(report, pool), axis, pool.nbytes)
    margin = len(f"{pool.nbytes:,}")
    rows = [f"  {row * pool.nbytes // len(grid):>{margin},} |{''.join(c * cell for c in line)}"
            for row, line in enumerate(grid)]
    foot = [f"  {'':>{margin}} +{'-' * len(axis) * cell}"]
    if pool.peak:
        foot.append(f"  {'':>{margin}}  {' ' * cell * axis.of[pool.peak.tick]}{'^' * cell} peak")
    return [f"  {printable(pool.name)}: steps across, {pool.nbytes:,} bytes up", *reversed(rows), *foot]


def drawn(report: Figures, pool: PoolLine) -> list[BufferLine]:
    """Return the buffers of a picture, in the order in which they become live."""
    return sorted((b for b in report.held_by(pool.name) if b.live and b.nbytes), key=lambda b: b.live[0])


def letters(report: Figures, pool: PoolLine) -> dict[str, str]:
    """Return a letter for each buffer of a picture, beginning again from the first after the last."""
    return {b.name: LETTERS[i % len(LETTERS)] for i, b in enumerate(drawn(report, pool))}


def cells(held: Sequence[BufferLine], marks: Mapping[str, str], axis: Columns, nbytes: int) -> list[list[str]]:
    """Return the letters of a picture, the lowest bytes first."""
    height = min(HEIGHT, nbytes)
    grid = [[" "] * len(axis) for _ in range(height)]
    for b in held:
        for row in range(height):
            if overlap(b, row, nbytes / height):
                for start, end in axis.cover(b.live):
                    grid[row][start:end + 1] = marks[b.name] * (end - start + 1)
    return grid


def overlap(buffer: BufferLine, row: int, step: float) -> bool:
    """True if a buffer holds the middle of a row of the picture."""
    middle = (row + 0.5) * step
    return (buffer.offset or 0) <= middle < buffer.end
