"""Any expression over any axes comes out right on every target, whole and by rows."""
from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel

from .expressions import kernels, windows
from .kernels import check


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_loops_give_what_a_random_expression_means(example: tuple[Kernel, dict[Buffer, Array]]) -> None:
    kernel, data = example
    check([kernel], data=data)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(windows())
def test_loops_give_what_a_random_window_means(example: tuple[Kernel, dict[Buffer, Array]]) -> None:
    kernel, data = example
    check([kernel], data=data, interpret=kernel.out.size < 400)
