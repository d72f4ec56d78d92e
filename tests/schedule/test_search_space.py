"""What a measured search may choose instead of the cost model's choice: right on every target, and named so that a finding
can only mean the kernel and the choice that it was made for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Const, Load, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.schedule.contraction.choice import ContractionChoice
from tosaic.lowering.schedule.schedule import describe, strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.schedule.search_space import Choices, alternatives, name_of
from tosaic.lowering.schedule.strategy import Strategy
from tosaic.lowering.schedule.window.window import WindowChoice
from tosaic.lowering.target.target import Target

from .expressions import kernels, windows
from .kernels import TARGETS, V3, V4, check
from .test_choices import product


def parts(kernel: Kernel, target: Target, by_rows: bool = False, findings: Choices = ()) -> Sequence[Any]:
    """The strategies of a kernel's nests."""
    return strategies_of(kernel, ScheduleRequest(target, by_rows=by_rows, findings=findings))


def others(strategy: Strategy) -> Sequence[Any]:
    """The strategy and its alternatives."""
    return alternatives(strategy)


def ways(kernel: Kernel, target: Target) -> list[Choices]:
    """The findings for each round of a search, whole and by rows."""
    found: list[Choices] = []
    plain = {by_rows: parts(kernel, target, by_rows) for by_rows in (False, True)}
    each = {by_rows: [others(p) for p in own] for by_rows, own in plain.items()}
    for number in range(1, max((len(a) for own in each.values() for a in own), default=1)):
        found.append(tuple((name_of(kernel, by_rows), tuple(str(a[min(number, len(a) - 1)]) for a in own))
                           for by_rows, own in each.items()))
    return found


def check_ways(kernel: Kernel, data: dict[Buffer, Array], names: Sequence[str]) -> int:
    tried = 0
    for name in names:
        for findings in ways(kernel, TARGETS[name]):
            check([kernel], data=data, targets={name: TARGETS[name]}, interpret=False, findings=findings)
            tried += 1
    return tried


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(kernels())
def test_every_alternative_gives_what_a_random_expression_means(example: tuple[Kernel, dict[Buffer, Array]]) -> None:
    check_ways(*example, ("512 bits, dot4", "256 bits, no masks"))


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(windows())
def test_every_alternative_gives_what_a_random_window_means(example: tuple[Kernel, dict[Buffer, Array]]) -> None:
    check_ways(*example, ("512 bits, dot4", "256 bits, no masks"))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("constant", [True, False])
def test_every_alternative_of_a_product_is_right(dtype: str, constant: bool) -> None:
    weight = np.random.default_rng(1).integers(-4, 5, (24, 37)).astype(dtype) if constant else None
    assert check_ways(product(41, 37, 24, dtype, weight=weight), {}, ("512 bits, dot4", "512 bits", "256 bits, no masks")) > 6


def test_a_product_has_other_tiles_and_the_other_order_of_loops() -> None:
    part, = parts(product(140, 64, 32), V4)
    found = [a.choice for a in others(part)]
    assert found[0] == part.choice and len(set(found)) == len(found)
    assert all(isinstance(c, ContractionChoice) for c in found)
    assert {c.columns_first for c in found} == {True, False} and len({c.tile for c in found}) >= 4
    assert all(c.tile.rows * c.tile.vectors + c.tile.vectors < V4.vector_registers for c in found)


def test_a_finding_is_followed_and_seen_in_the_description() -> None:
    k = product(140, 64, 32)
    part, = parts(k, V4)
    other = others(part)[2]
    findings = ((name_of(k, False), (str(other),)),)
    assert [p.choice for p in parts(k, V4, findings=findings)] == [other.choice]
    assert str(other.choice) in describe(k, V4, findings=findings) and str(other.choice) not in describe(k, V4)
    assert [p.choice for p in parts(k, V4, True, findings)] == [p.choice for p in parts(k, V4, by_rows=True)]


def test_a_text_that_is_no_alternative_changes_nothing() -> None:
    k = product(140, 64, 32)
    part, = parts(k, V4)
    wild = str(part).replace(f"tiles of {part.choice.tile.rows} rows", "tiles of 9999 rows")
    assert wild != str(part)
    for texts in ((wild,), ("",), (), (str(part), str(part))):
        assert [p.choice for p in parts(k, V4, findings=((name_of(k, False), texts),))] == [part.choice]


def square(buffer: Buffer, factor: int = 2) -> Kernel:
    i = Axis("i", 40)
    return Kernel(Buffer("y", "int32", (40,), "result"), (i,), Load(buffer, (Affine.of(i),)) * Const(factor, "int32"))


def test_a_kernels_name_is_what_it_computes_and_not_what_its_buffers_are_called() -> None:
    x, z = Buffer("x", "int32", (40,), "argument"), Buffer("z", "int32", (40,), "argument")
    assert name_of(square(x), False) == name_of(square(z), False)
    others = [square(x, 3), square(Buffer("x", "int32", (41,), "argument")), square(Buffer("x", "int32", (40,), "temporary"))]
    names = {name_of(k, False) for k in [square(x), *others]} | {name_of(square(x), True)}
    assert len(names) == 5


def test_windows_have_tiles_that_fit_the_registers() -> None:
    oh, c, k = Axis("oh", 300), Axis("c", 640), Axis("k", 3)
    x = Buffer("x", "float32", (602, 640), "argument")
    value = reduce("add", (k,), Load(x, (Affine.of(oh) * 2 + Affine.of(k), Affine.of(c))))
    for target in (V4, V3):
        part, = parts(Kernel(Buffer("y", "float32", (300, 640), "result"), (oh, c), value), target)
        found = [a.choice for a in others(part)]
        assert len(found) > 4 and all(isinstance(w, WindowChoice) for w in found)
        assert all(w.rows * w.vectors <= target.vector_registers // 2 for w in found)
