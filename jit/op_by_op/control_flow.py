"""COND_IF and WHILE_LOOP op by op, and TensorFlow's If and While: their graphs are attributes, functions of tensors as for
`tosaic.cond` and `tosaic.while_loop`, or recorded regions (`Region.function`). The operator and its graphs are compiled as one.

    rt.run("tosa.cond_if", p, x, then_graph=lambda x: x + 1, else_graph=lambda x: x - 1)
    rt.run("tosa.while_loop", n, cond_graph=lambda n: n > 0, body_graph=lambda n: n - 1)
    rt.run("tf.If", p, x, then_branch=lambda x: x + 1, else_branch=lambda x: x - 1)
    rt.run("tf.While", n, cond=lambda n: n > 0, body=lambda n: n - 1)
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...lowering.graph.external import external_reads
from ...runtime.errors import Problem
from ..stages import Traced
from ..tracing.control_flow import cond, while_loop
from ..tracing.pytree import flatten
from ..tracing.tensor import Tensor

Graph = Callable[..., Any]


def cond_if(condition: Tensor, *operands: Tensor, then_graph: Graph, else_graph: Graph) -> tuple[Tensor, ...]:
    """Return the results of `then_graph(*operands)` if the condition is true, else of `else_graph(*operands)`."""
    return listed(cond(condition, checked("then_graph", then_graph), checked("else_graph", else_graph), *operands))


def while_(*operands: Tensor, cond_graph: Graph, body_graph: Graph) -> tuple[Tensor, ...]:
    """Apply `body_graph` to the operands while `cond_graph` returns true for them; return the last operands."""
    return listed(while_loop(checked("cond_graph", cond_graph), checked("body_graph", body_graph), *operands))


def tf_if(condition: Tensor, *operands: Tensor, then_branch: Graph, else_branch: Graph, **types: Any) -> tuple[Tensor, ...]:
    """Return the results of `then_branch(*operands)` if the condition, a bool or a number, is not zero, else of
    `else_branch`."""
    return listed(cond(truth(condition), checked("then_branch", then_branch), checked("else_branch", else_branch), *operands))


def tf_while(*operands: Tensor, cond: Graph, body: Graph, **types: Any) -> tuple[Tensor, ...]:
    """Apply `body` to the operands while `cond` returns True or a nonzero number for them; return the last operands."""
    test = checked("cond", cond)
    return listed(while_loop(lambda *held: truth(test(*held)), checked("body", body), *operands))


def truth(value: Any) -> Any:
    """Return a condition by TensorFlow's rules: a bool, or a number that is not zero."""
    return value if not isinstance(value, Tensor) or value.element.kind == "bool" else value != 0


FUNCTIONS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "tosa.cond_if": cond_if, "tosa.while_loop": while_, **dict.fromkeys(("tf.If", "tf.StatelessIf"), tf_if),
    **dict.fromkeys(("tf.While", "tf.StatelessWhile"), tf_while)}


def checked(name: str, graph: Any) -> Graph:
    if not callable(graph):
        raise Problem(f"attribute '{name}' is {graph!r}, which is no function of tensors", kind="attribute",
                      help="pass a Python function, or what Region.function gives")
    found: Graph = graph
    return found


def listed(nest: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a nest in order."""
    leaves: list[Any] = []
    flatten(nest, leaves)
    return tuple(leaves)


def without_variables(op_name: str, traced: Traced) -> Traced:
    """Return the graph. Raise a Problem if one of its functions uses a variable, as no chain would order that effect."""
    used = [str(o.op.symbol) for o in traced.module.declarations if o.op.variable_effect]  # type: ignore[attr-defined]
    used += external_reads(traced.module)
    if used:
        raise Problem(f"{op_name}: a graph of it uses variable {used[0]}, whose effects no chain would order",
                      kind="unsupported", help="read the variable before, pass its value, and write the result: "
                      "tosa.variable_read, tosa.variable_write")
    return traced
