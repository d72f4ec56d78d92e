"""Every option of a compile by lot, each value under a name that is counted. A test fails where a field of the options has no
generator here.

Some options are for what a compile without them has: a schedule that was printed, strategies that a search has found, a buffer
that is pinned to a pool. Thresholds that are constants of modules, or of the target, are lowered, so that small graphs take the
ways of large ones.
"""
from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pytest
import tosaic
from tosaic.jit.stages import Lowered, Traced
from tosaic.lowering.memory.algorithms.pool_costs import Objective
from tosaic.lowering.row_tiling.row_tiling import RowPolicy
from tosaic.lowering.schedule.search_space import alternatives, name_of
from tosaic.lowering.schedule.strategy import Precision, Weights
from tosaic.lowering.target.presets import PRESETS
from tosaic.lowering.target.target import Target
from tosaic.runtime.errors import Problem

from ..oracles.native import USABLE

FOREIGN = ("any", "cortex-m0", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-a55", "neoverse-v1",
           "rv64gcv_zvl256b", "esp32", "rv32imc", "atmega328p", "x86-64-v4")
"""Targets beside those whose code this machine runs."""
THRESHOLDS: Mapping[str, tuple[int, ...]] = {
    "row_tiling.row_order.MIN_TASK_ROWS": (1,),
    "row_tiling.row_chains.MIN_BLOCK_ROWS": (2,),
    "schedule.schedule.MIN_SURELY_DIVIDED_TERMS": (1,),
    "schedule.elementwise.elementwise.MAX_UNDIVIDED_INSTRUCTIONS": (64,),
    "schedule.elementwise.elementwise.MAX_REPEATED_RESULT_BYTES": (64,),
    "schedule.elementwise.elementwise.MAX_SINGLE_TERMS": (16,),
    "schedule.contraction.choice.MAX_UNDIVIDED_TERMS": (64,),
    "schedule.contraction.line_buffers.MAX_LINES_BYTES": (64, 1 << 16),
    "schedule.contraction.padded_input.MAX_TERMS": (64,),
    "schedule.contraction.padded_input.MIN_TILE_ROWS_WITHOUT_HALO": (1, 99),
    "schedule.contraction.choose.MAX_TERMS_FOR_LESS_CODE": (64,),
    "schedule.nest.split_nest.FEW_ELEMENTS": (16,),
    "schedule.nest.split_nest.MIN_CUT_ROW": (4,),
    "schedule.window.column_reduction.MAX_SUM_BYTES": (64,),
    "schedule.window.column_reduction.MIN_ROW_STRIDE_BYTES": (16,),
    "schedule.window.window.MIN_SHARED_COLUMNS": (8,),
    "fuse.row_fusion.MAX_ROW_ELEMENTS": (32,),
    "fuse.row_fusion.MAX_NEIGHBOUR_ELEMENTS": (64,),
    "fuse.row_fusion.MAX_SAME_SET_ELEMENTS": (4, 1 << 16),
    "fuse.row_fusion.MAX_STRIDED_ELEMENTS": (16, 1 << 20),
    "fuse.inline.MOST_LEVELS": (3,),
    "fuse.inline.MOST_NODES": (24,),
    "fuse.folding.FOLD_BYTES": (16,),
    "rewrite.split_concats.MOST_OPERANDS": (2,),
    "loops.dependence.access_order.MAX_ELEMENTS": (256,),
}
"""Constants of modules of `lowering`, and what is put in their place."""

CACHES: Mapping[str, Mapping[str, int]] = {
    "own": {}, "own again": {}, "tiny": {"l1_bytes": 256, "l2_bytes": 1024, "block_bytes": 512},
    "small": {"l2_bytes": 8192, "block_bytes": 1 << 20}, "large blocks": {"l2_bytes": 1 << 12, "block_bytes": 1 << 24},
    "streaming": {"streaming_bytes": 1024}}
GRAINS: Mapping[str, Mapping[str, float]] = {
    "own": {}, "tasks of any size": {"task_grain_cycles": 1.0},
    "free barriers": {"task_grain_cycles": 1.0, "barrier_cycles": 0.0},
    "shared scratch": {"task_grain_cycles": 1.0, "repeated_fill_cycles": 0, "own_scratch_bytes": 0}}
"""Fields of a target and of its costs."""
WORKSPACES, CONSTANTS = {"1": 1, "1 again": 1, "2": 2, "3": 3}, {"none": 0, "none again": 0, "1": 1, "2": 2}
"""How many pools there are."""
PLANNERS = ("portfolio", "greedy_by_size", "greedy_by_conflicts", "hill_climb", "exact")


@dataclass(slots=True)
class Lot:
    """The options of one case, as they are being drawn. `base` is the same graph lowered without those that need it."""
    rng: random.Random
    traced: Traced
    runs: bool
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)

    def choice(self, name: str, values: Mapping[str, Any]) -> Any:
        """One of the values; its name is counted, those of the others are noted. One that is given "again" comes oftener."""
        for label in values:
            self.note(name, label, 0)
        label = self.rng.choice(list(values))
        self.note(name, label)
        return values[label]

    def note(self, name: str, label: str, count: int = 1) -> None:
        self.labels[name, label.replace(" again", "").strip()] += count

    # ---- the machine -------------------------------------------------------------------------------------------------
    def target(self) -> Target | None:
        known: dict[str, Target | None] = {"default": None, **USABLE}
        if not self.runs:
            known |= {name: PRESETS[name] for name in FOREIGN}
        found: Target | None = self.choice("target", known)
        return found and self.smaller(found)

    def smaller(self, target: Target) -> Target:
        """The machine with smaller caches, or one for which fewer cycles are worth a task."""
        costs = self.choice("grain", GRAINS)
        return replace(target, costs=replace(target.costs, **costs), **self.choice("caches", CACHES))

    # ---- memory ------------------------------------------------------------------------------------------------------
    def memory(self, base: Callable[[], Lowered | None]) -> tosaic.Memory:
        return tosaic.Memory(**{name: make(self, base) for name, make in MEMORY.items()})

    def pools(self, kind: str, base: Callable[[], Lowered | None], least: int) -> tuple[tosaic.Pool, ...]:
        """None, one or several memories; the first ones too small for all."""
        count = self.choice(f"{kind} pools", WORKSPACES if least else CONSTANTS)
        found = base() if count > 1 else None
        size = found.plan.size_bytes if found else 1 << 12
        return tuple(self.pool(f"{kind}{n}", size // 2 if n < count - 1 else None, kind) for n in range(count))

    def pool(self, name: str, size: int | None, kind: str) -> tosaic.Pool:
        given = {key: make(self, size, kind) for key, make in POOL.items()}
        if size is not None and given["pool_offset"] > size:
            given["pool_offset"] = 0
        return tosaic.Pool(name, **given)

    # ---- what a compile without it has --------------------------------------------------------------------------------
    def tuning(self, base: Callable[[], Lowered | None]) -> Any:
        """Other strategies of the kernels, as a search finds them."""
        found = base() if self.choice("tuning", {"none": False, "none again": False, "found": True}) else None
        if found is None:
            return ()
        from tosaic.lowering.schedule.schedule import strategies_of
        from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
        chosen = []
        for kernel in found.kernels.kernels[:6]:
            strategies = strategies_of(kernel, ScheduleRequest(found.target, found.options.precision))
            texts = tuple(str(self.rng.choice(alternatives(s))) for s in strategies)
            chosen.append((name_of(kernel, False), texts))
        return tuple(dict(chosen).items())

    def schedule(self, base: Callable[[], Lowered | None]) -> str | None:
        found = base() if self.choice("schedule", {"none": False, "none again": False, "printed": True}) else None
        return found.show("schedule") if found else None

    def pins(self, base: Callable[[], Lowered | None]) -> dict[str, str]:
        """A buffer of the plan in the last workspace."""
        found = base() if self.choice("pins", {"none": False, "none again": False, "a buffer": True}) else None
        names = [b.name for b in found.plan.buffers if b.kind == "intermediate"] if found else []
        return {self.rng.choice(names): "w0"} if names else {}


def named(values: Any) -> dict[str, Any]:
    return {str(v): v for v in values}


Base = Callable[[], "Lowered | None"]
OPTIONS: Mapping[str, Callable[[Lot, Base], Any]] = {
    "target": lambda lot, _: lot.target(),
    "threads": lambda lot, _: lot.choice("threads", named((None, 1, 2, 2, 3, 4, 7))),
    "precision": lambda lot, _: lot.choice("precision", {"f32 again": "f32", **named(get_args(Precision))}),
    "rows": lambda lot, _: lot.choice("rows", named((None, *get_args(RowPolicy)))),
    "order": lambda lot, _: lot.choice("order", named((True, False))),
    "weights": lambda lot, _: lot.choice("weights", {"int8 again": "int8", "int8 again ": "int8", **named(get_args(Weights))}),
    "memory": lambda lot, base: lot.memory(base),
    "tuning": lambda lot, base: lot.tuning(base),
    "schedule": lambda lot, base: lot.schedule(base),
}
"""A generator for each field of `tosaic.CompileOptions`."""
MEMORY: Mapping[str, Callable[[Lot, Base], Any]] = {
    "algorithm": lambda lot, _: lot.choice("planner", {"portfolio again": "portfolio", **named(PLANNERS), "own": own_planner}),
    "pools": lambda lot, base: lot.pools("w", base, 1),
    "alignment": lambda lot, _: lot.choice("alignment", named((None, 1, 4, 64))),
    "accessor": lambda lot, _: lot.choice("accessor", named((None, "cpu", "dma"))),
    "constant_pools": lambda lot, base: lot.pools("c", base, 0),
    "pins": lambda lot, base: lot.pins(base),
    "workspace_io": lambda lot, _: lot.choice("workspace_io", named((False, True))),
    "overlap": lambda lot, _: lot.choice("overlap", named((True, False))),
    "objective": lambda lot, _: lot.choice("objective", named(get_args(Objective))),
}
"""One for each field of `tosaic.Memory`."""
POOL: Mapping[str, Callable[[Lot, int | None, str], Any]] = {
    "size_hint_bytes": lambda lot, size, _: size,
    "alignment": lambda lot, _, __: lot.choice("pool alignment", named((None, 64))),
    "target_access": lambda lot, size, kind: lot.choice("pool access", {
        "all": {}, "cpu": {"cpu": "rw" if kind == "w" else "ro", "dma": "rw"}}),
    "clock_frequency_hz": lambda lot, _, __: lot.choice("pool clock", named((None, 100_000_000))),
    "read_bandwidth_bytes_per_cycle": lambda lot, _, __: lot.choice("pool read bandwidth", named((None, 4))),
    "write_bandwidth_bytes_per_cycle": lambda lot, _, __: lot.choice("pool write bandwidth", named((None, 2))),
    "read_latency_cycles": lambda lot, _, __: lot.choice("pool read latency", named((0, 9))),
    "write_latency_cycles": lambda lot, _, __: lot.choice("pool write latency", named((0, 7))),
    "target_burst_bytes": lambda lot, _, __: lot.choice("pool burst", {"none": {}, "32": {"cpu": 32}}),
    "pool_offset": lambda lot, _, kind: lot.choice("pool offset", named((0, 0, 48))) if kind == "w" else 0,
}
"""One for each field of `tosaic.Pool` but its name."""

ARTIFACT: Mapping[str, tuple[Any, ...]] = {
    "self_contained": (False, True), "library": (False, True), "main": (False, True), "namespace": (None, "ns"),
    "state": ("own", "caller"), "emit": ("object", "c"), "pool_form": ("binary", "array"), "debug": (False, True)}
"""The values of each field of the form in which an object is saved."""


def own_planner(buffers: Any, pools: Any) -> Any:
    """One buffer behind the other, in the first pool that has room for it."""
    ends, places = {p.name: p.pool_offset for p in pools}, {}
    for b in buffers:
        for pool in b.candidates(pools):
            start = tosaic.planner.aligned(ends[pool.name], b.alignment)
            if pool.size_hint_bytes is None or start + b.size_bytes <= pool.size_hint_bytes:
                places[b.name], ends[pool.name] = tosaic.planner.PoolAllocation(pool.name, start), start + b.size_bytes
                break
        else:
            raise Problem(f"there is no room for {b.name}", kind="memory")
    return places


def draw(rng: random.Random, traced: Traced, runs: bool) -> tuple[tosaic.CompileOptions, Counter[tuple[str, str]]]:
    """All options of a compile, and what was drawn; with `runs`, for a machine whose code this one runs."""
    lot, known = Lot(rng, traced, runs), dict[str, Any]()
    for name in ("target", "threads", "precision", "rows", "order", "weights"):
        known[name] = OPTIONS[name](lot, lambda: None)
    if known["weights"] == "int16" and not getattr(known["target"], "keeps_pairs", False):
        lot.note("weights", "int16 for other processors")
        known["weights"] = "int8"

    def lowered() -> Lowered | None:
        return traced.lower(tosaic.CompileOptions(**known))

    known["memory"] = OPTIONS["memory"](lot, lowered)
    for name in ("tuning", "schedule"):
        known[name] = OPTIONS[name](lot, lowered)
    return tosaic.CompileOptions(**known), lot.labels


def draw_form(rng: random.Random, labels: Counter[tuple[str, str]]) -> dict[str, Any]:
    """In which form an object is saved."""
    form = {name: rng.choice(values) for name, values in ARTIFACT.items()}
    if form["emit"] == "c":  # which has neither
        form |= {"library": False, "debug": False}
    if form["state"] == "caller":  # whose variables have no symbols
        form["namespace"] = None
    labels.update({(f"artifact {name}", str(v)): int(v == form[name]) for name, values in ARTIFACT.items() for v in values})
    return form


@contextmanager
def thresholds(rng: random.Random, labels: Counter[tuple[str, str]]) -> Iterator[None]:
    """Some constants at other values, for as long as it is open."""
    with pytest.MonkeyPatch.context() as patch:
        for name, values in THRESHOLDS.items():
            value = rng.choice(values) if rng.random() < 0.15 else None
            for v in (None, *values):
                labels[f"threshold {name}", "own" if v is None else str(v)] += v == value
            if value is not None:
                module, constant = name.rsplit(".", 1)
                patch.setattr(importlib.import_module(f"tosaic.lowering.{module}"), constant, value)
        yield


def is_refusal(problem: Problem) -> bool:
    """True if a Problem is what the options deserve: pools that are too small, a pin that does not fit."""
    return problem.kind in ("memory", "option") and "plan is wrong" not in problem.message
