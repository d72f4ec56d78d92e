"""Random planning problems of every kind, and their optimum by trying every offset in every pool: what the default planner's
word is held against. It shares no code with the planners, the bounds or the verifier; of tosaic's it only fills in the records
that a planner is given.

    python -m tosaic.tests.memory.exhaustive          1,000 problems (some minutes)
    python -m tosaic.tests.memory.exhaustive 5000 1   5,000, from seed 1 on
"""
from __future__ import annotations

import collections
import itertools
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tosaic.lowering.memory.algorithms.outcome import Outcome
from tosaic.lowering.memory.algorithms.pool_offsets import behind_offsets
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo, with_conflicts
from tosaic.lowering.memory.planner import Memory, placed
from tosaic.lowering.memory.sharing.occupancy import Occupied, spacing, table
from tosaic.lowering.memory.sharing.overlap import Sharing
from tosaic.runtime.errors import Problem

Places = Mapping[str, tuple[str, int]]
"""The pool and the first byte of each buffer."""
Best = tuple[Fraction, list[int]]
"""The least cost, and of plans of that cost the least sizes of the pools, the last pool's first."""

MOST_BYTES = 1 << 9


@dataclass(frozen=True)
class Case:
    """A problem. `parts` are the bytes of each buffer that hold something, and when: (first, end, first tick, last tick);
    `over` are pairs of which the second may be written exactly over the first at a tick."""
    buffers: tuple[BufferInfo, ...]
    pools: tuple[PoolInfo, ...]
    parts: dict[str, tuple[tuple[int, int, int, int], ...]]
    over: tuple[tuple[str, str, int], ...]

    def sharing(self) -> Sharing | None:
        """What the planner is told of bytes that buffers may share; None where that is nothing."""
        spacings = {}
        occupied = {name: tuple(Occupied(*part) for part in parts) for name, parts in self.parts.items()}
        finer = [name for name, parts in self.parts.items() if len(parts) > 1]
        for one, other in itertools.permutations(self.parts, 2):
            if one in finer and (other, one) not in spacings:
                spacings[one, other] = spacing(occupied[one], occupied[other])
        for one, other, _ in self.over:
            size = next(b.size_bytes for b in self.buffers if b.name == one)
            spacings[one, other] = (-size, 0), (0, size)
        counts = {name: table(parts) for name, parts in occupied.items()}
        return Sharing(spacings, occupied, self.over, counts) if finer or self.over else None


# ---- problems --------------------------------------------------------------------------------------------------------
def case(seed: int) -> Case:
    draw = random.Random(seed)
    pools = tuple(random_pools(draw))
    names = [p.name for p in pools]
    parts: dict[str, tuple[tuple[int, int, int, int], ...]] = {}
    made = []
    alignments = draw.choice([(1,), (1,), (2,), (1, 2, 4), (4, 8)])
    overlaps = draw.random() < 0.4
    for i in range(draw.randint(1, 5)):
        name = f"b{i}"
        if overlaps and draw.random() < 0.5:
            parts[name] = by_rows(draw)
        else:
            first = draw.randint(0, 5)
            parts[name] = (0, draw.randint(0 if draw.random() < 0.1 else 1, 9), first, first + draw.randint(0, 3)),
        size, live = parts[name][-1][1], (min(p[2] for p in parts[name]), max(p[3] for p in parts[name]))
        chosen = draw.sample(names, draw.randint(1, len(names))) if draw.random() < 0.4 else []
        moved = (draw.randint(0, 60), draw.choice([0, size])) if draw.random() < 0.7 else (None, None)
        made.append(BufferInfo(name, size, draw.choice(alignments), tuple(chosen), live=(live,), bytes_read=moved[0],
                               bytes_written=moved[1]))
    over = tuple(pairs(draw, made, parts)) if overlaps else ()
    return Case(with_conflicts(made), pools, parts, over)


def random_pools(draw: random.Random) -> Iterator[PoolInfo]:
    """One to three pools, some limited, aligned, behind an offset, with bursts, with bandwidths of all, of some, or of none."""
    count, known, clocks = draw.choice([1, 1, 2, 2, 3]), draw.choice([0, 0, 1, 1, 0.5]), draw.choice([0, 0, 1, 0.5])
    for i in range(count):
        timed = draw.random() < known
        size = draw.choice([None, None, 12, 24] if i == count - 1 else [0, 6, 10, 16, 24])
        yield PoolInfo(
            f"p{i}", size, draw.choice([None, None, 4, 8]),
            clock_frequency_hz=draw.choice([10, 100]) if draw.random() < clocks else None,
            read_bandwidth_bytes_per_cycle=draw.choice([1, 2, 3, 8]) if timed else None,
            write_bandwidth_bytes_per_cycle=draw.choice([None, 1, 4]) if timed else None,
            read_latency_cycles=draw.choice([0, 0, 5]) if timed else 0,
            write_latency_cycles=draw.choice([0, 2]) if timed else 0,
            target_burst_bytes={"c": draw.choice([4, 16])} if draw.random() < 0.3 else {},
            pool_offset=draw.choice([1, 2, 4, 8]) if draw.random() < 0.3 and (size is None or size >= 10) else 0)


def by_rows(draw: random.Random) -> tuple[tuple[int, int, int, int], ...]:
    """A buffer of which each row holds something for some time of its own."""
    rows, nbytes, first, turn = draw.randint(2, 4), draw.randint(1, 2), draw.randint(0, 3), draw.choice([-1, 1])
    found = []
    for i in range(rows):
        written = first + (i if turn > 0 else rows - 1 - i) + draw.choice([0, 0, 1])
        found.append((i * nbytes, (i + 1) * nbytes, written, written + draw.randint(0, 2)))
    return tuple(found)


def pairs(draw: random.Random, buffers: Sequence[BufferInfo], parts: Mapping[str, Sequence[tuple[int, int, int, int]]]
          ) -> Iterator[tuple[str, str, int]]:
    """Buffers that may be written over one that ends at that tick: of the same size, both whole."""
    for one, other in itertools.permutations(buffers, 2):
        (a,), (b,) = (parts[x.name] if len(parts[x.name]) == 1 else [None] for x in (one, other))
        if a and b and a[1] == b[1] and a[1] and a[3] == b[2] and a[2] < b[2] and draw.random() < 0.8:
            yield one.name, other.name, a[3]


# ---- the optimum -----------------------------------------------------------------------------------------------------
def best(problem: Case) -> Best | None:
    """The optimum; None where nothing fits."""
    buffers, pools = problem.buffers, problem.pools
    options = [[p for p in pools if fits_into(b, p)] for b in buffers]
    costs = [prices(b, problem) for b in buffers]
    known: dict[tuple[str, frozenset[str]], int | None] = {}

    def size(pool: PoolInfo, inside: list[BufferInfo]) -> int | None:
        key = pool.name, frozenset(b.name for b in inside)
        if key not in known:
            known[key] = least(problem, pool, inside)
        return known[key]

    found: Best | None = None
    ways = sorted(itertools.product(*options), key=lambda way: sum(c[p.name] for c, p in zip(costs, way)))
    for way in ways:
        cost = sum((c[p.name] for c, p in zip(costs, way)), Fraction(0))
        if found is not None and cost > found[0]:
            break
        sizes = [size(p, [b for b, q in zip(buffers, way) if q is p]) for p in reversed(pools)]
        whole = [s for s in sizes if s is not None]
        if len(whole) == len(sizes) and (found is None or whole < found[1]):
            found = cost, whole
    return found


def fits_into(b: BufferInfo, pool: PoolInfo) -> bool:
    return (not b.pool_candidates or pool.name in b.pool_candidates) and (pool.alignment or b.alignment) % b.alignment == 0


def prices(b: BufferInfo, problem: Case) -> dict[str, Fraction]:
    """What it costs to have a buffer in each of its pools: seconds or cycles where something is known of all of them, and the
    clocks of all or of none; else its bytes, times the place of the pool among them."""
    order = [n for n in b.pool_candidates] or [p.name for p in problem.pools]
    pools = [p for n in order for p in problem.pools if p.name == n and fits_into(b, p)]
    known = [p for p in pools if p.read_bandwidth_bytes_per_cycle or p.write_bandwidth_bytes_per_cycle or p.read_latency_cycles
             or p.write_latency_cycles]
    by_time = len(known) == len(pools) and len({p.clock_frequency_hz is None for p in pools}) <= 1
    found = {}
    for place, pool in enumerate(pools):
        burst = max([1, *pool.target_burst_bytes.values()])
        read, written = (-(-(b.size_bytes if n is None else n) // burst) * burst for n in (b.bytes_read, b.bytes_written))
        if by_time:
            cycles = Fraction(pool.read_latency_cycles + pool.write_latency_cycles)
            if pool.read_bandwidth_bytes_per_cycle:
                cycles += Fraction(read, pool.read_bandwidth_bytes_per_cycle)
            if pool.write_bandwidth_bytes_per_cycle:
                cycles += Fraction(written, pool.write_bandwidth_bytes_per_cycle)
            found[pool.name] = cycles / (pool.clock_frequency_hz or 1)
        else:
            found[pool.name] = Fraction((read + written) * place)
    return found


def least(problem: Case, pool: PoolInfo, inside: Sequence[BufferInfo]) -> int | None:
    """The least size of a pool that holds these buffers: larger ones are tried, until all of them find a place."""
    if not inside:
        return 0
    largest = sorted(inside, key=lambda b: -b.size_bytes)
    most = MOST_BYTES if pool.size_hint_bytes is None else pool.size_hint_bytes
    for size in range(begin(problem, pool) + largest[0].size_bytes, most + 1):
        if tried(problem, pool, size, largest, {}):
            return size
    return None


def tried(problem: Case, pool: PoolInfo, size: int, left: Sequence[BufferInfo], at: dict[str, int]) -> bool:
    """True if the buffers in `left` find places beside those that have one."""
    if not left:
        return True
    b = left[0]
    for offset in range(begin(problem, pool), size - b.size_bytes + 1, b.alignment):
        if all(apart(problem, b.name, offset, other, place) for other, place in at.items()) and tried(
                problem, pool, size, left[1:], {**at, b.name: offset}):
            return True
    return False


def begin(problem: Case, pool: PoolInfo) -> int:
    """The first byte behind a pool's offset that is aligned for every buffer which may lie there."""
    step = max([1, *(b.alignment for b in problem.buffers if fits_into(b, pool))])
    return -(-pool.pool_offset // step) * step


def apart(problem: Case, one: str, at: int, other: str, there: int) -> bool:
    """True if two buffers of one pool may lie so: no byte is used by both at a tick, or one is written over the other."""
    if at == there and any({one, other} == {a, b} for a, b, _ in problem.over):
        return True
    return not any(a[0] < a[1] and b[0] < b[1] and at + a[0] < there + b[1] and there + b[0] < at + a[1]
                   and a[2] <= b[3] and b[2] <= a[3] for a in problem.parts[one] for b in problem.parts[other])


# ---- the planner's answer --------------------------------------------------------------------------------------------
def faults(problem: Case, places: Places) -> list[str]:
    """What is wrong with a plan, by rules of its own."""
    found = []
    pools = {p.name: p for p in problem.pools}
    if set(places) != {b.name for b in problem.buffers}:
        return ["other buffers"]
    for b in problem.buffers:
        name, at = places[b.name]
        pool = pools.get(name)
        if pool is None or not fits_into(b, pool) or at % b.alignment or at < pool.pool_offset:
            found.append(f"{b.name} in {name} at {at}")
        elif pool.size_hint_bytes is not None and at + b.size_bytes > pool.size_hint_bytes:
            found.append(f"{b.name} ends behind {name}")
    for one, other in itertools.combinations(places, 2):
        (pool_one, at), (pool_other, there) = places[one], places[other]
        if pool_one == pool_other and not apart(problem, one, at, other, there):
            found.append(f"{one} and {other} share bytes")
    return found


def score(problem: Case, places: Places) -> Best:
    """The cost and the sizes of a plan."""
    cost = sum((prices(b, problem)[places[b.name][0]] for b in problem.buffers), Fraction(0))
    ends = {p.name: [places[b.name][1] + b.size_bytes for b in problem.buffers if places[b.name][0] == p.name]
            for p in problem.pools}
    return cost, [max(ends[p.name], default=0) for p in reversed(problem.pools)]


def answer(problem: Case) -> Outcome | None:
    """What the default planner says; None where it refuses."""
    def place(pools: Sequence[PoolInfo]) -> Outcome:
        return placed(problem.buffers, pools, Memory(), problem.sharing())

    try:
        return behind_offsets(problem.buffers, problem.pools, place)
    except Problem:
        return None


def verdict(seed: int) -> str:
    """How the planner's answer stands to the optimum; an AssertionError where it says what is not so."""
    problem = case(seed)
    found, optimum = answer(problem), best(problem)
    kind = "shared" if problem.sharing() else "apart"
    if found is None:
        assert optimum is None or kind == "shared", f"seed {seed}: refused, but {optimum} is possible"
        return f"{kind}: refused{'' if optimum is None else ', but possible'}"
    places = {name: (place.pool, place.byte_offset) for name, place in found.allocations.items()}
    wrong = faults(problem, places)
    assert not wrong, f"seed {seed}: {wrong}"
    assert optimum is not None, f"seed {seed}: no plan should be possible, but {places} is right"
    reached = score(problem, places)
    assert reached >= optimum, f"seed {seed}: {reached} is less than {optimum}"
    assert not found.proved or reached == optimum, f"seed {seed}: {reached} is said to be proved, but {optimum} is possible"
    for pool in problem.pools:
        inside = [b for b in problem.buffers if places[b.name][0] == pool.name]
        size = least(problem, pool, inside)
        assert size is not None and found.bounds.get(pool.name, 0) <= size, f"seed {seed}: {pool.name} needs only {size}"
    return f"{kind}: {'proved' if found.proved else 'not proved, but the best' if reached == optimum else 'not the best'}"


def main() -> None:
    count, start = ([int(a) for a in sys.argv[1:]] + [1000, 0][len(sys.argv) - 1:])[:2]
    found = collections.Counter(verdict(seed) for seed in range(start, start + count))
    for kind, number in sorted(found.items()):
        print(f"{number:6} {kind}")


if __name__ == "__main__":
    main()
