"""Executor graphs as the nodes of a GraphDef, for TensorFlow itself to run (`against_tensorflow.py`): plain data, as JSON.

A graph whose islands hold one operation each (`split_islands.py`) is a GraphDef but for the spelling: a Source is the output of
its NextIteration, a control operand is an input `^name`, and a handle that is an argument is a VarHandleOp where it is used.
"""
from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from tosaic.lowering.dialects.tf_executor.operators import (
    Enter,
    Island,
    NextIterationSink,
    NextIterationSource,
    data_operands,
    token_of,
    wrapped,
)
from tosaic.lowering.dialects.tf_executor.types import CONTROL
from tosaic.lowering.graph.foreign import find, spelling
from tosaic.lowering.graph.graph import Module, Operation, Value
from tosaic.lowering.graph.types import I1, TensorType
from tosaic.lowering.text.reader import read_module

from .random_islands import random_islands
from .split_islands import split
from .ways import FIRST, INPUTS, in_executor

Node = dict[str, Any]


class Nodes:
    """The one graph of @main. Arguments are placeholders `argument_NAME`, handles the variable `v`."""

    def __init__(self, module: Module) -> None:
        function = module.function("main")
        graph, *_ = function.body.operations
        self.nodes: list[Node] = []
        self.outputs: dict[Value, str] = {}
        self.handles = {v for v in function.arguments if not is_number(v)}
        for value in function.arguments:
            if is_number(value):
                self.outputs[value] = f"argument_{value.name}"
                self.nodes.append(node("Placeholder", f"argument_{value.name}", [], {"dtype": type_of(value)}))
        block = graph.regions[0]
        sinks = {token_of(o): f"n{i}" for i, o in enumerate(block.operations) if isinstance(o.op, NextIterationSink)}
        for number, operation in enumerate(block.operations):
            self.name_results(operation, sinks.get(token_of(operation), f"n{number}"))
        for number, operation in enumerate(block.operations):
            self.add(operation, f"n{number}")
        self.fetches = [self.outputs[v] for v in block.yields if v.type != CONTROL]
        self.targets = [self.outputs[v].removeprefix("^") for v in block.yields if v.type == CONTROL]

    def name_results(self, operation: Operation, name: str) -> None:
        number = 0
        for value in operation.results:
            if value.type == CONTROL:
                self.outputs[value] = f"^{name}"
            elif is_number(value):
                self.outputs[value] = f"{name}:{number}"
                number += 1

    def add(self, operation: Operation, name: str) -> None:
        if isinstance(operation.op, NextIterationSource):
            return
        controls = [self.outputs[v] for v in operation.operands if v.type == CONTROL]
        inner = wrapped(operation) if isinstance(operation.op, Island) else None
        data = inner.operands if inner is not None else data_operands(operation)
        inputs = []
        for value in data:
            if value in self.handles:
                inputs.append(f"{name}_handle")
                self.nodes.append(node("VarHandleOp", f"{name}_handle", controls, {"shared_name": "v", "dtype": "i32"}))
            else:
                inputs.append(self.outputs[value])
        kind = spelling(inner) if inner is not None else operation.op.name
        attributes: dict[str, Any] = {"types": [type_of(v) for v in data if is_number(v)]}
        match operation.op:
            case Enter(frame_name=frame, is_constant=constant):
                attributes |= {"frame_name": frame, "is_constant": constant}
            case Island() if inner is not None and kind == "tf.Const":
                attributes |= {"value": find(inner, "value").array.tolist(), "dtype": type_of(inner.results[0])}
            case _:
                pass
        short = kind.removeprefix("tf.").removeprefix("tf_executor.").removesuffix(".Sink")
        self.nodes.append(node(short, name, [*inputs, *controls], attributes))


def node(op: str, name: str, inputs: list[str], attributes: dict[str, Any]) -> Node:
    return {"op": op, "name": name, "inputs": inputs, "attributes": attributes}


def is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def type_of(value: Value) -> str:
    return "bool" if value.tensor.element == I1 else "i32"


def graphs(first: int, end: int) -> list[dict[str, Any]]:
    """Random graphs of these seeds: their text, their nodes, and what the executor's interpreter gives for each of INPUTS."""
    found = []
    for seed in range(first, end):
        text = random_islands(seed, 8 + seed % 12, regions=False)
        module = read_module(text, f"random islands {seed}")
        nodes = Nodes(split(module))
        found.append({"seed": seed, "text": text, "nodes": nodes.nodes, "fetches": nodes.fetches, "targets": nodes.targets,
                      "inputs": INPUTS, "variable": int(FIRST), "answers": [in_executor(module, i) for i in INPUTS]})
    return found


def main(arguments: Sequence[str]) -> int:
    """`python tests/tensorflow islands FIRST END FILE`: graphs for TensorFlow to run."""
    first, end, file = arguments
    pathlib.Path(file).write_text(json.dumps(graphs(int(first), int(end))))
    return 0
