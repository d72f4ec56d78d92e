"""The entry point for the verifier of all graphs: it checks that an operation of the executor is in a region that may hold it,
and keeps the rules of its dialect."""
from __future__ import annotations

from ...graph.graph import Operation
from .operators import RULES, Graph
from .verify import wrong
from .verify_graph import verify_graph


def verify_executor_operation(operation: Operation, parent: Operation | None) -> None:
    """Raise a Problem unless the operation is in an allowed region; for a graph, check all its contents."""
    inside = parent is not None and isinstance(parent.op, Graph)
    if isinstance(operation.op, Graph):
        if inside:
            raise wrong(operation, "may not stand directly in another tf_executor.graph", help="put it into an island")
        verify_graph(operation)
    elif not inside:
        where = f"in {parent.op.name or getattr(parent.op, 'spelling', '')}" if parent is not None else "outside a graph"
        raise wrong(operation, f"must stand directly in a tf_executor.graph, it is {where}")


RULES[:] = [verify_executor_operation]
