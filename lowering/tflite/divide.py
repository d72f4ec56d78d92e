"""A subgraph -> its steps in order: partitions for the converter, and operators that this package lowers.

This package lowers control flow, variables and operators that the converter gets wrong (`OWN`). All other operators go into as
few partitions as possible. The operators of a partition have one level: one more than that of the operators lowered here on
whose results they depend. An operator goes as late as its users allow, so that partitions are not cut without need. Effects on
a variable keep their order.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.types import UI8
from .composed_kernels import is_composed_kernel
from .counterparts import has_counterpart
from .kernels import is_kernel_of_ours
from .quantized_kernels import is_quantized_kernel
from .records import ModelRecord, OperatorRecord, SubgraphRecord
from .resizes import is_resize_of_ours
from .schema import CALLEES, ELEMENTS, OTHER_CALLERS, RESOURCE
from .slices import is_slice_of_ours

ARITHMETIC = frozenset({"MUL", "DIV", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "TANH", "LOGISTIC", "HARD_SWISH", "GELU",
                        "LEAKY_RELU", "PRELU", "SUM", "MEAN", "REDUCE_PROD", "SQUARED_DIFFERENCE"})
"""Operators that the converter computes wrongly on unsigned bytes that are not quantized."""
OWN = frozenset({*CALLEES, "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})


@dataclass(frozen=True, slots=True)
class Partition:
    """Operators of one subgraph that become a model of their own, by number; its inputs and outputs are the numbers of
    tensors."""
    subgraph: int
    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


Step: TypeAlias = Partition | int
"""A partition, or the number of an operator that this package lowers."""


def is_ours(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    return operator.kind in OWN or any(
        test(graph, operator) for test in (is_slice_of_ours, is_kernel_of_ours, is_resize_of_ours, has_counterpart,
                                     is_quantized_kernel, is_composed_kernel))


def divide(model: ModelRecord, number: int, effects: frozenset[int]) -> tuple[Step, ...]:
    """Return the steps of subgraph `number`, in order; `effects` are the subgraphs that read or write variables. Raise a
    Problem for an operator that neither the converter nor this package supports."""
    graph = model.subgraphs[number]
    for index, operator in enumerate(graph.operators):
        if not is_ours(graph, operator):
            check_for_converter(graph, index, operator)
    return SubgraphDivider(graph, number, effects).steps()


def check_for_converter(graph: SubgraphRecord, index: int, operator: OperatorRecord) -> None:
    """Raise a Problem for an operator that a converter of partitions would silently get wrong."""
    tensors = [graph.tensors[t] for t in (*operator.inputs, *operator.outputs) if t >= 0]
    if operator.kind in OTHER_CALLERS:
        raise Problem(f"{operator.kind} runs another subgraph, which is not supported", graph.place(index), kind="unsupported")
    if any(t.type == RESOURCE for t in tensors):
        raise Problem(f"{operator.kind} has a resource that is no variable of a tensor, which is not supported",
                      graph.place(index), kind="unsupported", help="keep tables and queues outside of the model")
    if operator.kind in ARITHMETIC and any(ELEMENTS.get(t.type) == UI8 and t.scales is None for t in tensors):
        raise Problem(f"{operator.kind} computes with bytes without a sign, of which the file does not say what they stand for",
                      graph.place(index), kind="unsupported", help="cast them to int32 or float32 first, or quantize the model")
    if any(t.is_state for t in tensors):
        raise Problem(f"{operator.kind} keeps its state in a tensor of its own, which is not supported", graph.place(index),
                      kind="unsupported", help="convert the model with its state in variables, or as inputs and outputs")


@dataclass(slots=True)
class Order:
    """The first levels at which variables may be read and written: not before earlier reads and writes."""
    read: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    everything: int = 0

    def at(self, level: int, effect: str, variable: str | None) -> int:
        """Return the level of an effect that could be at `level`; an unknown variable may be any variable."""
        if variable is None:
            self.everything = max(level, self.everything, *self.read.values(), *self.written.values())
            return self.everything
        level = max(level, self.everything, self.written.get(variable, 0))
        if effect == "write":
            level = max(level, self.read.get(variable, 0))
            self.written[variable] = level
        else:
            self.read[variable] = max(level, self.read.get(variable, 0))
        return level


@dataclass(slots=True)
class SubgraphDivider:
    """Divider of one subgraph."""
    graph: SubgraphRecord
    number: int
    effects: frozenset[int]
    ours: list[bool] = field(default_factory=list)
    makers: dict[int, int] = field(default_factory=dict)

    def steps(self) -> tuple[Step, ...]:
        operators = self.graph.operators
        self.ours = [is_ours(self.graph, o) for o in operators]
        self.makers = {t: i for i, o in enumerate(operators) for t in o.outputs}
        levels = self.later(self.earliest())
        found: list[Step] = []
        for level in range(max(levels, default=-1) + 1):
            here = [i for i, n in enumerate(levels) if n == level]
            partition = tuple(i for i in here if not self.ours[i])
            found += [partition_of(self.graph, self.number, partition)] if partition else []
            found += [i for i in here if self.ours[i]]
        return tuple(found)

    def earliest(self) -> list[int]:
        levels: list[int] = []
        order, variables = Order(), self.variables()
        for number, operator in enumerate(self.graph.operators):
            makers = {self.makers[t] for t in operator.inputs if t in self.makers}
            if not self.ours[number]:
                levels.append(max((levels[m] + self.ours[m] for m in makers), default=0))
                continue
            level = max((levels[m] for m in makers), default=0)
            match operator.kind:
                case "READ_VARIABLE" | "ASSIGN_VARIABLE" if operator.inputs:
                    effect = "write" if operator.kind == "ASSIGN_VARIABLE" else "read"
                    level = order.at(level, effect, variables.get(operator.inputs[0]))
                case kind if kind != "CALL_ONCE" and self.effects.intersection(operator.callees):
                    level = order.at(level, "write", None)
            levels.append(level)
        return levels

    def variables(self) -> dict[int, str]:
        """Return a key for each variable whose handle is made here, by tensor."""
        return {t: repr(sorted(o.options.items())) for o in self.graph.operators if o.kind == "VAR_HANDLE" for t in o.outputs}

    def later(self, levels: list[int]) -> list[int]:
        """Return the levels with the converter's operators as late as their users allow."""
        last, users = max((n for n, ours in zip(levels, self.ours) if not ours), default=0), self.users()
        for number in reversed(range(len(levels))):
            if not self.ours[number]:
                found = [levels[u] for u in users[number]]
                levels[number] = min(found) if found else max(last, levels[number])
        return levels

    def users(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.graph.operators]
        for number, operator in enumerate(self.graph.operators):
            for maker in {self.makers[t] for t in operator.inputs if t in self.makers}:
                found[maker].append(number)
        return found


def partition_of(graph: SubgraphRecord, number: int, operators: Sequence[int]) -> Partition:
    """Return these operators of a subgraph as a partition, with its inputs from and its outputs to the other operators."""
    chosen = set(operators)
    made = {t for i in operators for t in graph.operators[i].outputs}
    elsewhere = {*graph.inputs, *(t for i, o in enumerate(graph.operators) if i not in chosen for t in o.outputs)}
    used = {t for i, o in enumerate(graph.operators) if i not in chosen for t in o.inputs} | set(graph.outputs)
    inputs = unique(t for i in operators for t in graph.operators[i].inputs if t in elsewhere)
    outputs = unique(t for i in operators for t in graph.operators[i].outputs if t in made & used)
    return Partition(number, tuple(operators), inputs, outputs)


def unique(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))
