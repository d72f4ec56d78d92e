"""Generated planning problems, each from a seed: shapes that networks have, and hard ones whose optimum is known because
they are a full arena cut to pieces.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tosaic.lowering.memory.buffers import BufferInfo, Ticks, with_conflicts

Box = tuple[int, int, int, int]
"""First and last tick, first byte, bytes."""

ALIGNMENTS = 1, 4, 16, 64


def buffers(rows: Sequence[tuple[tuple[Ticks, ...], int, int]]) -> tuple[BufferInfo, ...]:
    """Buffers of these lifetimes, sizes and alignments, with their conflicts."""
    width = len(str(len(rows)))
    return with_conflicts([BufferInfo(f"b{i:0{width}}", size, alignment, live=live)
                           for i, (live, size, alignment) in enumerate(rows)])


# ---- a full arena, cut to pieces: the optimum is its height -------------------------------------------------------------
def cut(seed: int, pieces: int, ticks: int = 200, height: int = 1024, grain: int = 16) -> tuple[BufferInfo, ...]:
    """A rectangle cut in two again and again, along time or across it: no byte is free at any tick, so that the least arena
    has `height` x `grain` bytes."""
    draw = random.Random(seed)
    boxes: list[Box] = [(0, ticks - 1, 0, height)]
    while len(boxes) < pieces:
        first, last, low, size = boxes.pop(heaviest(draw, boxes))
        if draw.random() < 0.5 and last > first:
            at = draw.randint(first, last - 1)
            boxes += [(first, at, low, size), (at + 1, last, low, size)]
        elif size > 1:
            at = draw.randint(1, size - 1)
            boxes += [(first, last, low, at), (first, last, low + at, size - at)]
        else:
            boxes.append((first, last, low, size))
    draw.shuffle(boxes)
    return buffers([(((first, last),), size * grain, grain) for first, last, _, size in boxes])


def heaviest(draw: random.Random, boxes: Sequence[Box]) -> int:
    """One of the largest of three boxes drawn."""
    return max((draw.randrange(len(boxes)) for _ in range(3)), key=lambda i: (boxes[i][1] - boxes[i][0] + 1) * boxes[i][3])


def pinwheels(seed: int, turns: int, ticks: int = 400, height: int = 4096) -> tuple[BufferInfo, ...]:
    """A rectangle of pinwheels within pinwheels, which no cut from side to side takes apart. The optimum is `height`."""
    draw = random.Random(seed)
    open_: list[Box] = [(0, ticks - 1, 0, height)]
    done: list[Box] = []
    for _ in range(turns):
        first, last, low, size = open_.pop(heaviest(draw, open_))
        if last - first < 4 or size < 5:
            done.append((first, last, low, size))
            if not open_:
                break
            continue
        a, b = sorted(draw.sample(range(first + 1, last), 2))
        c, d = sorted(draw.sample(range(1, size), 2))
        open_ += [(first, b - 1, low, c), (b, last, low, d), (a, last, low + d, size - d),
                  (first, a - 1, low + c, size - c), (a, b - 1, low + c, d - c)]
    return buffers([(((first, last),), size, 1) for first, last, _, size in done + open_ if last >= first])


def loose(seed: int, pieces: int, free: float = 0.1) -> tuple[BufferInfo, ...]:
    """A cut arena of which some pieces are missing, and others end early."""
    draw = random.Random(seed)
    rows = []
    for b in cut(seed, pieces):
        if draw.random() < free:
            continue
        assert b.live is not None
        (first, last), = b.live
        rows.append((((first, draw.randint(first, last) if draw.random() < free else last),), b.size_bytes, b.alignment))
    return buffers(rows)


# ---- shapes of networks ----------------------------------------------------------------------------------------------
def chain(seed: int, layers: int) -> tuple[BufferInfo, ...]:
    """Layers one after the other, some with a residual over a few of them, and scratch."""
    draw = random.Random(seed)
    rows: list[tuple[tuple[Ticks, ...], int, int]] = []
    size = draw.randint(1 << 14, 1 << 18)
    for tick in range(layers):
        size = max(64, int(size * draw.choice([0.5, 1, 1, 1, 2, 0.75])))
        reach = draw.choice([1, 1, 1, 2, 3, 5])
        rows.append((((tick, tick + reach),), size, 64))
        if draw.random() < 0.3:
            rows.append((((tick, tick),), draw.randint(64, size), draw.choice(ALIGNMENTS)))
    return buffers(rows)


def nested(seed: int, depth: int, channels: int = 4) -> tuple[BufferInfo, ...]:
    """A U-shaped network: what a level computes on the way down is read again on the way up."""
    draw = random.Random(seed)
    rows: list[tuple[tuple[Ticks, ...], int, int]] = []
    for level in range(depth):
        first, last = level * channels, (2 * depth - level) * channels
        size = (1 << 20 >> level) + draw.randint(0, 1 << 12)
        rows.append((((first, last),), size, 64))
        for i in range(channels):
            rows.append((((first + i, first + i + 1),), size * draw.randint(1, 3) // 2, 64))
            rows.append((((last - i - 1, last - i),), size * draw.randint(1, 3) // 2, 64))
    return buffers(rows)


def training(seed: int, layers: int) -> tuple[BufferInfo, ...]:
    """A network forward and back: activations live until their gradient is computed."""
    draw = random.Random(seed)
    rows: list[tuple[tuple[Ticks, ...], int, int]] = []
    end = 2 * layers
    for i in range(layers):
        size = draw.choice([1, 2, 3, 4, 6, 8]) * draw.choice([1 << 10, 1 << 12, 1 << 14])
        rows += [(((i, end - i),), size, 64), (((end - i - 1, end - i + draw.randint(0, 2)),), size, 64)]
        if draw.random() < 0.5:
            rows.append((((i, i + draw.randint(0, 3)),), draw.randint(1, 1 << 16), draw.choice(ALIGNMENTS)))
        if draw.random() < 0.3:
            rows.append((((end - i - 1, end + draw.randint(0, 3)),), draw.randint(1, 1 << 12), 16))
    return buffers(rows)


def scattered(seed: int, count: int, ticks: int = 60, spans: int = 3) -> tuple[BufferInfo, ...]:
    """Any lifetimes, some of several spans, and any sizes and alignments."""
    draw = random.Random(seed)

    def life() -> tuple[Ticks, ...]:
        points = sorted(draw.sample(range(ticks), 2 * (draw.randint(1, spans) if draw.random() < 0.2 else 1)))
        return tuple(zip(points[::2], points[1::2]))

    return buffers([(life(), draw.choice([draw.randint(0, 100), draw.randint(1, 5000)]), draw.choice(ALIGNMENTS))
                    for _ in range(count)])


def crowded(seed: int, count: int, ticks: int = 100) -> tuple[BufferInfo, ...]:
    """Short lives and long ones, small sizes and a few that take most of the arena."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        length = min(ticks, int(draw.expovariate(1 / 6)) + 1 if draw.random() < 0.9 else draw.randint(ticks // 4, ticks))
        first = draw.randint(0, ticks - length)
        size = int(64 * 2 ** draw.uniform(0, 9 if length < 8 else 5))
        rows.append((((first, first + length - 1),), size, 64))
    return buffers(rows)


def stream(seed: int, count: int) -> tuple[BufferInfo, ...]:
    """A long program: a buffer each tick, most of short lives, one in a hundred for two thousand ticks."""
    draw = random.Random(seed)
    rows = []
    for tick in range(count):
        length = 2000 if draw.random() < 0.01 else int(draw.expovariate(1 / 12))
        rows.append((((tick, tick + length),), 64 * draw.randint(1, 400), 64))
    return buffers(rows)


SHAPES: dict[str, Callable[[int], tuple[BufferInfo, ...]]] = {
    "cut 40": lambda seed: cut(seed, 40), "cut 120": lambda seed: cut(seed, 120), "cut 300": lambda seed: cut(seed, 300),
    "pinwheels 60": lambda seed: pinwheels(seed, 15), "pinwheels 200": lambda seed: pinwheels(seed, 50),
    "loose 150": lambda seed: loose(seed, 150), "chain 100": lambda seed: chain(seed, 100),
    "nested 130": lambda seed: nested(seed, 14), "training 250": lambda seed: training(seed, 90),
    "scattered 120": lambda seed: scattered(seed, 120), "crowded 200": lambda seed: crowded(seed, 200),
}
"""Generators by name, and about how many buffers they make; each takes a seed."""
