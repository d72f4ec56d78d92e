"""The first node of an exported program that its TOSA graph computes wrongly: the program is converted again with the results
of all its nodes as outputs, and PyTorch runs each node on its operands from there.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ....runtime.errors import Problem
from ...source import OperatorVerdict, first_line
from .exported_program import line_of, operation_of
from .run_torch import numpy_of, tensor_of

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array

Convert: TypeAlias = "Callable[[Any, tuple[Any, ...]], Module]"
"""Converts a module for example inputs."""


def compare_nodes(program: Any, arrays: Sequence[Array], graph_of: Convert) -> OperatorVerdict:
    """Return the number of nodes of a program that were compared on inputs, and the first that is wrong on its operands, with
    the Python line that made it."""
    import torch
    try:
        graph = operations_of(program)
        nodes = [n for n in graph.graph.nodes if is_observed(n)]
        found = dict(zip((n.name for n in nodes), converted(graph, nodes, arrays, graph_of)))
    except (Problem, RuntimeError, ValueError, TypeError) as error:
        return OperatorVerdict(0, reason=first_line(error))
    interpreter = rebased(graph, found)
    with torch.no_grad():
        interpreter.run(*map(tensor_of, arrays), enable_io_processing=False)
    return OperatorVerdict(len(nodes), label(interpreter.wrong) if interpreter.wrong is not None else None)


def label(node: Any) -> str:
    """Return a description of a node; for one of several results, of the node that returns them."""
    if node.target is operator.getitem:
        node = node.args[0]
    place = line_of(node)
    return f"{operation_of(node)}, which gives {node.name}{f', at {place}' if place else ''}"


def operations_of(program: Any) -> Any:
    """Return the program's operations, without in-place ones, as a module that holds its weights."""
    functional = program.run_decompositions({})
    try:
        return functional.module(check_guards=False)
    except TypeError:  # PyTorch before 2.9 has no guards to check there
        return functional.module()


def is_observed(node: Any) -> bool:
    """True if a node's result is one tensor, and the node does not write a buffer."""
    import torch
    return (node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor)
            and node.target is not torch.ops.aten.copy_.default)


def converted(graph: Any, nodes: Sequence[Any], arrays: Sequence[Array], graph_of: Convert) -> list[Array]:
    """Return the results of these nodes in a TOSA graph."""
    import torch

    from ....runtime.interpreter import Interpreter
    from ...stages import prepared
    names = [n.name for n in nodes]

    class Observed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = graph

        def forward(self, *given: Any) -> Any:
            seen: dict[str, Any] = {}

            class Collecting(torch.fx.Interpreter):
                def run_node(self, n: Any) -> Any:
                    seen[n.name] = result = super().run_node(n)
                    return result
            Collecting(self.inner, garbage_collect_values=False).run(*given, enable_io_processing=False)
            return tuple(seen[name].clone() for name in names)
    return list(Interpreter(prepared(graph_of(Observed(), tuple(map(tensor_of, arrays)))))(*arrays))


def rebased(graph: Any, found: Mapping[str, Array]) -> Any:
    """Return an interpreter of the program's graph that replaces every node's result by the one in `found`; `wrong` is the
    first node whose own result differs."""
    import torch

    from ...tools.check.operator_bounds import wrong_elements

    class Rebased(torch.fx.Interpreter):
        wrong: Any = None

        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            mine = found.get(n.name)
            if mine is None or not isinstance(result, torch.Tensor):
                return result
            if self.wrong is None and self.differs(n, mine, numpy_of(result)):
                self.wrong = n
            return tensor_of(mine).to(result.dtype) if mine.shape == tuple(result.shape) else result

        def differs(self, n: Any, mine: Array, own: Array) -> bool:
            if mine.shape != own.shape:
                return True
            given = [a for a in n.all_input_nodes if isinstance(self.env.get(a), torch.Tensor)]

            def compute(arrays: Sequence[Array]) -> list[Array]:
                before = {a: self.env[a] for a in given}
                self.env.update(zip(given, map(tensor_of, arrays)))
                try:
                    return [numpy_of(super(Rebased, self).run_node(n))]
                finally:
                    self.env.update(before)
            operands = [numpy_of(self.env[a]) for a in given]
            return bool(wrong_elements(operation_of(n), mine.astype(own.dtype), own, 0, operands, compute, 0).any())
    return Rebased(graph, garbage_collect_values=False)
