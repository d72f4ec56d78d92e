"""Islands of several operations as islands of one: what they mean, said with what TensorFlow's graphs have.

A gate waits for all that the island captures and for its control operands; each operation waits for the gate and for the
operation before it. The control result waits for all, and so does what is yielded, through an Identity: who reads it needs the
effects, too.
"""
from __future__ import annotations

from dataclasses import replace

from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf_executor.operators import Graph, Island, control_operands, island_of, wrapped
from tosaic.lowering.dialects.tf_executor.types import CONTROL
from tosaic.lowering.graph.graph import Block, Function, Module, Operation, Value, captures


def split(module: Module) -> Module:
    """The module with each graph's islands split, inner graphs' too."""
    return replace(module, functions=tuple(split_function(f) for f in module.functions))


def split_function(function: Function) -> Function:
    return replace(function, body=split_block(function.body))


def split_block(block: Block) -> Block:
    """A block with the graphs in it split."""
    return replace(block, operations=tuple(
        split_graph(o) if isinstance(o.op, Graph) else replace(o, regions=tuple(map(split_block, o.regions)))
        for o in block.operations))


def split_graph(graph: Operation) -> Operation:
    body = graph.regions[0]
    own = {v for o in body.operations for v in o.results}
    renamed: dict[Value, Value] = {}
    found: list[Operation] = []
    for operation in body.operations:
        if isinstance(operation.op, Island) and wrapped(operation) is None:
            found += Splitter(renamed, own).island(renamed_in(operation, renamed))
        else:
            found.append(renamed_in(operation, renamed))
    inner = tuple(replace(o, regions=tuple(map(split_block, o.regions))) for o in found)
    return replace(graph, regions=(replace(body, operations=inner, yields=tuple(renamed.get(v, v) for v in body.yields)),))


class Splitter:
    """One island; `renamed` says what its results are now."""

    def __init__(self, renamed: dict[Value, Value], own: set[Value]) -> None:
        self.renamed, self.own = renamed, own
        self.found: list[Operation] = []
        self.count = 0

    def island(self, island: Operation) -> list[Operation]:
        body, waits = island.regions[0], list(control_operands(island))
        known = self.own | set(self.renamed.values())
        for value in captures(island):
            if value in known:
                waits.append(self.alone(identity(value), [])[-1])
        gate = self.empty(waits)
        local: dict[Value, Value] = {}
        before = gate
        for operation in body.operations:
            *results, before = self.alone(renamed_in(operation, local), [gate, before])
            local.update(zip(operation.results, results))
        end = self.empty([gate, before])
        for result, value in zip(island.results, body.yields):
            self.renamed[result] = self.alone(identity(local.get(value, value)), [end])[0]
        self.renamed[island.results[-1]] = end
        return self.found

    def alone(self, operation: Operation, waits: list[Value]) -> tuple[Value, ...]:
        """An island that wraps one operation; its results, control last."""
        inner = replace(operation, results=tuple(replace(v) for v in operation.results))
        results = (*(replace(v, name=self.name(v.name)) for v in operation.results), Value(self.name("c"), CONTROL))
        if isinstance(operation.op, TensorFlowOp):
            self.found.append(island_of(inner, tuple(dict.fromkeys(waits)), results))
        else:
            block = Block((), (inner,), inner.results)
            self.found.append(Operation(Island(), tuple(dict.fromkeys(waits)), results, (block,)))
        return results

    def empty(self, waits: list[Value]) -> Value:
        return self.alone(Operation(TensorFlowOp("tf.NoOp"), (), ()), waits)[0]

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}_{len(self.renamed)}_{self.count}"


def identity(value: Value) -> Operation:
    return Operation(TensorFlowOp("tf.Identity"), (value,), (replace(value),))


def renamed_in(operation: Operation, renamed: dict[Value, Value]) -> Operation:
    """The operation with other values in it and in its regions."""
    def block(old: Block) -> Block:
        return replace(old, operations=tuple(renamed_in(o, renamed) for o in old.operations),
                       yields=tuple(renamed.get(v, v) for v in old.yields))
    return replace(operation, operands=tuple(renamed.get(v, v) for v in operation.operands),
                   regions=tuple(map(block, operation.regions)))
