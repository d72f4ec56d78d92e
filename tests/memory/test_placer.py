"""Placing in many orders: Python and machine code agree, refusals included."""
from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from tosaic.lowering.memory.algorithms import first_fit_compiled as module
from tosaic.lowering.memory.algorithms import first_fit_kernel
from tosaic.lowering.memory.algorithms.compiled_python import compiled
from tosaic.lowering.memory.algorithms.first_fit_compiled import Method, Placed, Placer
from tosaic.lowering.memory.algorithms.first_fit_kernel import Placing
from tosaic.lowering.memory.algorithms.orders import crowding
from tosaic.lowering.memory.algorithms.run import allocate
from tosaic.lowering.memory.buffers import BufferInfo, PoolInfo
from tosaic.runtime.errors import Problem

from .brute_force import overlaps, pool_sizes
from .instances import scattered, training
from .test_exact import with_pools

METHODS: tuple[Method, ...] = "first_fit", "lowest_first"


def answer(placer: Placer, method: Method, order: Sequence[BufferInfo]) -> Placed | str:
    try:
        return placer.place(method, order)
    except Problem as problem:
        return str(problem)


def test_python_and_machine_code_place_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = 0
    for seed in range(250):
        draw = random.Random(seed)
        buffers, pools = with_pools(draw, 12) if seed % 3 else (scattered(seed, 40), (PoolInfo("arena"),))
        pools = tuple(p for p in pools if p.alignment is None)
        buffers = tuple(b for b in buffers if b.candidates(pools))
        order = draw.sample(buffers, len(buffers))
        for method in METHODS:
            answers = []
            for is_there in (False, True):
                monkeypatch.setattr(module, "is_compiled", lambda kernel, is_there=is_there: is_there)
                answers.append(answer(Placer(buffers, pools), method, order))
            assert answers[0] == answers[1], f"seed {seed}"
            refused += isinstance(answers[0], str)
    assert 20 < refused < 300


def test_the_kernel_is_the_same_in_python() -> None:
    for seed in range(40):
        buffers = scattered(seed, 25)
        arena = (PoolInfo("arena"),)
        order = random.Random(seed).sample(buffers, len(buffers))
        for method in METHODS:
            kernel = getattr(first_fit_kernel, method)
            state = Placer(buffers, arena).state
            numbers = [buffers.index(b) for b in order]
            native = Placing(*(getattr(state, name).copy() for name in Placing.__slots__))
            lists = Placing(*(getattr(state, name).tolist() for name in Placing.__slots__))
            native.order[:], lists.order[:] = numbers, numbers
            native.pool[:], lists.pool[:] = -1, [-1] * len(buffers)
            code = compiled(kernel, Placing)
            assert code is not None
            assert kernel(lists, len(buffers)) == code(native, len(buffers)) == len(buffers)
            assert lists.offset == native.offset.tolist() and lists.pool == native.pool.tolist()


@pytest.mark.sampled(4)
def test_thousands_of_buffers_are_placed_in_machine_code() -> None:
    buffers = training(0, 750)
    assert len(buffers) > 2000
    arena = (PoolInfo("arena"),)
    for name in ("greedy_by_size", "portfolio"):
        plan = allocate(buffers, arena, name)
        assert overlaps(buffers, plan) == []
    assert pool_sizes(buffers, arena, plan)[0] <= pool_sizes(buffers, arena, allocate(buffers, arena, "greedy_by_size"))[0]


def test_crowds_are_the_most_bytes_live_at_some_tick_of_a_life() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        buffers = scattered(seed, draw.randint(0, 25), ticks=20)
        ticks = {b.name: {t for first, last in b.live or () for t in range(first, last + 1)} for b in buffers}
        assert crowding(buffers) == [max(sum(o.size_bytes for o in buffers if t in ticks[o.name]) for t in ticks[b.name])
                                     for b in buffers]
