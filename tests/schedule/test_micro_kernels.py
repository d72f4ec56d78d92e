"""Every micro-kernel of a contraction against what the expression means, with hostile values: the least and greatest integers
with the extreme zero points, sums that wrap around; infinities, NaN, the greatest and the least floats, zeros of both signs.
Its loops are interpreted, whole and by rows; so an access out of range is an error, too."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Expr, Load, cast, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.schedule.contraction import contraction_strategies
from tosaic.lowering.schedule.contraction.bf16_split import choose as limbs
from tosaic.lowering.schedule.contraction.contraction_strategies import ContractionStrategy
from tosaic.lowering.schedule.contraction.int8 import amx_choose
from tosaic.lowering.schedule.schedule import scheduled, strategies_of
from tosaic.lowering.schedule.schedule_cache import ScheduleRequest
from tosaic.lowering.target.presets import target

from .kernels import TARGETS, V2, V4, interpreted, meaning, row_count, same, spans
from .test_schedule_text import AMX

Shape = tuple[int, int, int]
"""Rows, columns, terms."""


@dataclass(frozen=True)
class MicroKernel:
    """What its strategy says of it, its machine, the type of its factors, and a product that it computes."""
    step: str
    request: ScheduleRequest
    dtype: str
    shape: Shape


ODD, WORDS, LARGE = (5, 21, 35), (5, 9, 48), (40, 20, 72)
MICRO_KERNELS = {
    "fused multiply-add": MicroKernel("contraction: fma", ScheduleRequest(V4), "float32", ODD),
    "fused multiply-add, scalar": MicroKernel("contraction: fma", ScheduleRequest(TARGETS["scalar"]), "float32", ODD),
    "multiply and add": MicroKernel("contraction: multiply", ScheduleRequest(V2), "int32", ODD),
    "multiply and add, bytes": MicroKernel("contraction: multiply", ScheduleRequest(TARGETS["4 bytes"]), "int8", ODD),
    "PMADDWD": MicroKernel("contraction: dot2", ScheduleRequest(V2), "int8", ODD),
    "VPMADDWD": MicroKernel("contraction: dot2", ScheduleRequest(TARGETS["256 bits, no masks"]), "int8", (1, 9, 35)),
    "VPMADDWD, masks": MicroKernel("contraction: dot2", ScheduleRequest(V4), "int8", ODD),
    "VNNI": MicroKernel("contraction: dot4", ScheduleRequest(TARGETS["512 bits, dot4"]), "int8", ODD),
    "SDOT": MicroKernel("contraction: dot4", ScheduleRequest(target("cortex-a76")), "int8", WORDS),
    "SMLAD": MicroKernel("contraction: dual", ScheduleRequest(target("cortex-m4")), "int8", (5, 3, 48)),
    "SMLAD, rows widened before": MicroKernel("contraction: pairs", ScheduleRequest(target("cortex-m4")), "int8", ODD),
    "VMLADAVA": MicroKernel("contraction: dot", ScheduleRequest(target("cortex-m55")), "int8", WORDS),
    "SMMLA": MicroKernel("contraction: dot8", ScheduleRequest(target("neoverse-v1")), "int8", WORDS),
    "SMLAL": MicroKernel("contraction: widen", ScheduleRequest(target("cortex-a53")), "int8", WORDS),
    "multiply and add, bytes widened as they are loaded": MicroKernel(
        "contraction: bytes", ScheduleRequest(target("rv32imc")), "int8", ODD),
    "VWMACC": MicroKernel("contraction: widen", ScheduleRequest(target("rv64gcv")), "int8", WORDS),
    "AMX, bytes": MicroKernel("contraction: tiles", ScheduleRequest(AMX), "int8", LARGE),
    "AMX, three limbs": MicroKernel("contraction: bf16x6", ScheduleRequest(AMX, "bf16x6"), "float32", LARGE),
    "AMX, two limbs": MicroKernel("contraction: bf16x3", ScheduleRequest(AMX, "bf16x3"), "float32", LARGE),
}
INTEGERS: Mapping[str, Callable[[Shape, np.iinfo], tuple[Array, Array]]] = {
    "least by least": lambda s, i: (np.full((s[0], s[2]), i.min), np.full((s[1], s[2]), i.min)),
    "least by greatest": lambda s, i: (np.full((s[0], s[2]), i.min), np.full((s[1], s[2]), i.max)),
    "greatest by greatest": lambda s, i: (np.full((s[0], s[2]), i.max), np.full((s[1], s[2]), i.max)),
    "extremes in turn": lambda s, i: (extremes(i, s[0], s[2]), extremes(i, s[1], s[2])),
}
FLOATS: Mapping[str, float] = {
    "infinity": np.inf, "minus infinity": -np.inf, "NaN": np.nan, "greatest": float(np.finfo(np.float32).max), "least": 1e-45,
    "subnormal": 3e-39, "minus zero": -0.0}


def extremes(info: np.iinfo, *shape: int) -> Array:
    return np.where(np.arange(np.prod(shape)).reshape(shape) % 3 == 1, info.min, info.max)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix unit is used even for products that are too small for it."""
    monkeypatch.setattr(amx_choose, "cycles_of_dot4", lambda *_: float("inf"))
    for name, value in (("cycles_of_floats", lambda *_: float("inf")), ("MIN_PASSES", 1)):
        monkeypatch.setattr(limbs, name, value)


def product(kind: MicroKernel, weights: Array, zero_point: int = 0) -> tuple[Kernel, Buffer]:
    """(x[m, k] - zero point) * w[n, k], and x."""
    (m, n, k), wide = kind.shape, "float32" if kind.dtype == "float32" else "int32"
    i, j, l = Axis("m", m), Axis("n", n), Axis("k", k)
    x, w = Buffer("x", kind.dtype, (m, k), "argument"), Buffer("w", kind.dtype, (n, k), "constant", weights.astype(kind.dtype))
    a: Expr = cast(Load(x, (Affine.of(i), Affine.of(l))), wide)
    body = (a - zero_point if zero_point else a) * cast(Load(w, (Affine.of(j), Affine.of(l))), wide)
    return Kernel(Buffer("y", wide, (m, n), "result"), (i, j), reduce("add", (l,), body)), x


def check_loops(kind: MicroKernel, k: Kernel, data: Mapping[Buffer, Array]) -> None:
    """The strategy is that of the micro-kernel, and its loops compute what the kernel means, whole and by rows."""
    strategy, = strategies_of(k, kind.request)
    assert isinstance(strategy, ContractionStrategy) and str(strategy).startswith(kind.step)
    with np.errstate(invalid="ignore", over="ignore"):
        right = meaning(k, data)
        for by_rows in (False, True):
            function = scheduled(k, replace(kind.request, by_rows=by_rows)).function
            verify(function)
            parts = spans(row_count(k), np.random.default_rng(3)) if by_rows else ()
            same(interpreted(function, k, data, parts), right, f"by rows: {by_rows}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, kind in MICRO_KERNELS.items() if kind.dtype != "float32"])
@pytest.mark.parametrize("values", INTEGERS)
def test_extreme_integers_are_summed_exactly(name: str, values: str) -> None:
    kind = MICRO_KERNELS[name]
    x, w = INTEGERS[values](kind.shape, np.iinfo(kind.dtype))
    for zero_point in (0, -128, 127) if kind.dtype == "int8" else (0,):
        k, b = product(kind, w, zero_point)
        check_loops(kind, k, {b: x.astype(kind.dtype)})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, kind in MICRO_KERNELS.items() if kind.dtype == "float32"])
@pytest.mark.parametrize("value", FLOATS)
def test_special_floats_stay_in_their_row(name: str, value: str) -> None:
    """One in a row of x: the sums of this row have it, by weights of both signs and 0, and no others."""
    kind, rng = MICRO_KERNELS[name], np.random.default_rng(11)
    w = rng.integers(-4, 5, kind.shape[1:]).astype(np.float32)
    x = (rng.integers(-8, 9, kind.shape[0::2]) / 4).astype(np.float32)
    x[kind.shape[0] - 2, kind.shape[2] - 3] = FLOATS[value]
    w[:, kind.shape[2] - 3] = np.sign(w[:, kind.shape[2] - 3])
    k, b = product(kind, w)
    check_loops(kind, k, {b: x})


def test_every_micro_kernel_is_here() -> None:
    kernels = [(product(kind, np.full(kind.shape[1:], 99))[0], kind.request) for kind in MICRO_KERNELS.values()]
    found = [strategies_of(k, request)[0] for k, request in kernels]
    assert {s.micro_kernel for s in found if isinstance(s, ContractionStrategy)} == set(contraction_strategies.MICRO_KERNELS)
