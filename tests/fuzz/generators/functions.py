"""Random modules: one function of a few operators, its variables, and the inputs of some calls. Everything follows from a
seed; the same seed gives the same module as long as no recipe changes.
"""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tosaic.lowering.graph.graph import BlockBuilder, Module, Value, uses
from tosaic.lowering.graph.types import Array, TensorType
from tosaic.runtime.errors import Problem

from ...fuse.graphs import module as module_of
from . import contractions, control, elementwise, layout, quantized, shapes, table
from .data import MOODS, array
from .maker import Maker, Program, Recipe

RECIPES: dict[str, Recipe] = {**elementwise.RECIPES, **layout.RECIPES, **contractions.RECIPES, **quantized.RECIPES,
                              **control.RECIPES, **shapes.RECIPES, **table.RECIPES}
WEIGHTS = {**dict.fromkeys(RECIPES, 2), "layout chain": 12, "image chain": 6, "quantized chain": 8, "conv2d": 6,
           "depthwise_conv2d": 5, "matmul": 6, "rescale": 8, "add": 6, "mul": 6, "cast": 6, "reduce_sum": 5,
           "cond_if": 4, "while_loop": 4, "state shift": 4, "concat": 4, "reshape": 4, "variable_read": 3,
           "variable_write": 4, "select": 4}
NAMES, CUMULATIVE = list(WEIGHTS), [sum(list(WEIGHTS.values())[:i + 1]) for i in range(len(WEIGHTS))]


@dataclass(frozen=True, slots=True)
class Case:
    """A module and the inputs of its calls, in order, on one state."""
    module: Module
    calls: tuple[tuple[Array, ...], ...]


def step(m: Maker, name: str | None = None) -> None:
    """One recipe, or none where it does not find operands that fit."""
    RECIPES[name or m.rng.choices(NAMES, cum_weights=CUMULATIVE)[0]](m)


def case(seed: int, size: int, first: str | None = None, mood: str | None = None) -> Case:
    """A module of about `size` operators; `first` names the recipe that it begins with."""
    rng = random.Random(seed)
    program = Program(rng, mood or rng.choices(MOODS, (6, 3, 2))[0], most=rng.choices((3000, 30000), (9, 1))[0])
    maker = Maker(program)
    if first:
        step(maker, first)
    while computed(maker) < size and (not first or size > 1):
        step(maker)
    module = module_of({"main": maker.finish(*outputs(maker))}, program.variables)
    arguments = module.function("main").arguments
    calls = [tuple(array(rng, v.tensor, program.mood, program.spans.get(v)) for v in arguments)
             for _ in range(rng.choice((1, 2, 3)) if program.variables else rng.choice((1, 1, 2)))]
    return Case(module, tuple(calls))


def computed(m: Maker) -> int:
    """Operators so far, constants aside."""
    return sum(not o.op.name.startswith("tosa.const") for o in m.operations)


def outputs(m: Maker) -> list[Value]:
    """What nobody reads, and now and then other values, inputs, constants, and one twice."""
    used = uses(BlockBuilder.finish(m))
    tensors = [v for v in m.pool if isinstance(v.type, TensorType)]
    results = [v for v in tensors if v not in used and v not in m.arguments] or tensors[-1:]
    results += [m.rng.choice(tensors) for _ in range(m.rng.choice((0, 0, 0, 1, 2))) if tensors]
    if results and m.chance(0.1):
        results.append(m.rng.choice(results))
    m.rng.shuffle(results)
    return list(results)


def operator_names(module: Module) -> Sequence[str]:
    """Names of all operators of a module, without the dialect."""
    return [o.op.name.removeprefix("tosa.") for f in module.functions for o in f.body.walk()]


__all__ = ["RECIPES", "Case", "Problem", "case", "operator_names", "step"]
