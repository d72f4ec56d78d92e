"""A .tflite file's records -> the import plan: its entries, the subgraphs that they reach, and the partitions of these that a
converter gets.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.records import dataclass
from .divide import Partition, Step, divide
from .records import ModelRecord, SignatureRecord, SubgraphRecord

MAIN = "main"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """A plan. `steps` are the steps of each subgraph that an entry reaches; `partitions` all partitions in them, in order."""
    model: ModelRecord
    entries: tuple[SignatureRecord, ...]
    steps: Mapping[int, tuple[Step, ...]]

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(s for steps in self.steps.values() for s in steps if isinstance(s, Partition))


def plan_of(model: ModelRecord) -> ImportPlan:
    """Return the plan of a file. Raise a Problem for an operator that is reached and that nothing here supports."""
    entries = model.signatures or (unnamed(model),)
    effects = effectful(model)
    steps: dict[int, tuple[Step, ...]] = {}
    todo = [entry.subgraph for entry in entries]
    while todo:
        number = todo.pop(0)
        if number not in steps:
            steps[number] = divide(model, number, effects)
            todo += [callee for o in model.subgraphs[number].operators for callee in o.callees]
    return ImportPlan(model, entries, steps)


def unnamed(model: ModelRecord) -> SignatureRecord:
    """Return the first subgraph as an entry, in a file without signatures; inputs and outputs have their tensors' names."""
    graph = model.subgraphs[0]
    return SignatureRecord(MAIN, 0, distinct_names(graph, graph.inputs), distinct_names(graph, graph.outputs))


def distinct_names(graph: SubgraphRecord, tensors: Sequence[int]) -> Mapping[int, str]:
    """Return the names of tensors if each has a distinct name."""
    names = {t: graph.tensors[t].name for t in tensors}
    return names if all(names.values()) and len(set(names.values())) == len(names) else {}


def effectful(model: ModelRecord) -> frozenset[int]:
    """Return the subgraphs that read or write a variable, or run one that does."""
    found: set[int] = set()
    callers: dict[int, set[int]] = {}
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            if operator.kind in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
                found.add(number)
            for callee in operator.callees if operator.kind != "CALL_ONCE" else ():
                callers.setdefault(callee, set()).add(number)
    todo = list(found)
    while todo:
        new = callers.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return frozenset(found)
