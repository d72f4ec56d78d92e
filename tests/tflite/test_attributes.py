"""Operators of TensorFlow Lite over their attributes, converted and held against LiteRT's reference kernels by the check's
own first stage. Every combination is a signature of one file, so that the converter runs once; one that is refused is
counted, and named.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import prepared
from tosaic.jit.tools.check.import_check import check_import
from tosaic.lowering.flatbuffer.table_builder import Scalar

from .files import Graph, Operator, Signature, Tensor, constant, file

pytest.importorskip("tosa_converter_for_tflite", reason="Arm's converter is not installed (the extra `tflite`)")

SAME, VALID = 0, 1


@dataclass(frozen=True)
class Case:
    """An operator on constants and one input `x`, with the result's shape."""
    kind: str
    x: tuple[int, ...]
    constants: Sequence[Tensor]
    y: tuple[int, ...]
    options: Sequence[Scalar]
    type: str = "f32"

    def graph(self, number: int) -> Graph:
        scale = None if self.type == "f32" else 0.05
        tensors = [Tensor("x", self.x, self.type, None, scale), *self.constants, Tensor("y", self.y, self.type, None, scale)]
        names = " ".join(t.name for t in tensors[:-1])
        return Graph("x", "y", tensors, [Operator(self.kind, names, "y", self.options)], f"g{number}")


def bytes_of(*values: int) -> tuple[Scalar, ...]:
    return tuple(Scalar("B", v) for v in values)


def pools() -> Iterator[Case]:
    kinds, extents = ("AVERAGE_POOL_2D", "MAX_POOL_2D"), (1, 2, 3)
    for kind, padding, stride, size, type in itertools.product(kinds, (SAME, VALID), extents, extents, ("f32", "i8")):
        out = [-(-n // stride) if padding == SAME else (n - size) // stride + 1 for n in (5, 6)]
        options = (Scalar("B", padding), *(Scalar("i", n) for n in (stride, stride, size, size)), Scalar("B", 0))
        yield Case(kind, (1, 5, 6, 3), (), (1, *out, 3), options, type)


def bilinear() -> Iterator[Case]:
    for (aligned, halves), old, new in itertools.product(((0, 0), (1, 0), (0, 1)), ((4, 3), (5, 7)), ((8, 6), (3, 5), (4, 14))):
        yield Case("RESIZE_BILINEAR", (1, *old, 2), (constant("s", new, "i32"),), (1, *new, 2),
                   (None, None, *bytes_of(aligned, halves)))  # type: ignore[arg-type]


def gathers() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for axis, shape in itertools.product((0, 1, 2), ((1,), (3,), (2, 2))):
        x = (4, 5, 3)
        yield Case("GATHER", x, (constant("i", rng.integers(0, x[axis], shape), "i32"),), (*x[:axis], *shape, *x[axis + 1:]),
                   (Scalar("i", axis), Scalar("i", 0)))


def reductions() -> Iterator[Case]:
    kinds = ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
    for kind, axes, keep in itertools.product(kinds, ((0,), (1, 2), (-1,)), (0, 1)):
        x = (3, 4, 5)
        drop = {a % 3 for a in axes}
        y = tuple(1 if i in drop else n for i, n in enumerate(x) if keep or i not in drop)
        yield Case(kind, x, (constant("a", axes, "i32"),), y, bytes_of(keep))


def layouts() -> Iterator[Case]:
    for mode in (0, 1):
        yield Case("MIRROR_PAD", (3, 4), (constant("p", [[1, 2], [2, 0]], "i32"),), (6, 6), bytes_of(mode))
    for block in (2, 4):
        yield Case("SPACE_TO_DEPTH", (1, 4, 8, 3), (), (1, 4 // block, 8 // block, 3 * block * block), (Scalar("i", block),))
    yield Case("DEPTH_TO_SPACE", (1, 2, 3, 8), (), (1, 4, 6, 2), (Scalar("i", 2),))
    for exclusive, backwards, axis in itertools.product((0, 1), (0, 1), (0, 1)):
        along = Tensor("a", (), "i32", np.array(axis, np.int32))
        yield Case("CUMSUM", (3, 4), (along,), (3, 4), bytes_of(exclusive, backwards))
    for alpha in (0.1, 0.5, 1.5):
        yield Case("LEAKY_RELU", (3, 4), (), (3, 4), (Scalar("I", int(np.float32(alpha).view(np.uint32))),))
    yield Case("PAD", (3, 4), (constant("p", [[1, 2], [2, 0]], "i32"),), (6, 6), ())
    yield Case("TILE", (3, 4), (constant("m", [2, 3], "i32"),), (6, 12), ())
    yield Case("REVERSE_V2", (3, 4), (constant("a", [1], "i32"),), (3, 4), ())
    yield Case("TRANSPOSE", (2, 3, 4), (constant("p", [2, 0, 1], "i32"),), (4, 2, 3), ())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cases", [pools, bilinear, gathers, reductions, layouts], ids=lambda f: f.__name__)
def test_operators_are_the_kernels_over_their_attributes(cases: Any) -> None:
    found = list(cases())
    verdicts = judged(found)
    refused = [v for v in verdicts if v.startswith("refused")]
    print(f"{len(found)} models, {len(refused)} refused", *refused, sep="\n")
    wrong = [v for v in verdicts if v.startswith("wrong")]
    assert not wrong, "\n".join(wrong)
    assert len(refused) < len(found)


def judged(cases: Sequence[Case]) -> list[str]:
    """What became of each; where one is refused, each on its own."""
    names = [f"f{n}" for n in range(len(cases))]
    data = file(*(c.graph(n) for n, c in enumerate(cases)),
                signatures=[Signature(name, n, {"x": "x"}, {"y": "y"}) for n, name in enumerate(names)])
    try:
        model = tosaic.from_tflite(data)
        return [verdict(model.entry(name), case) for name, case in zip(names, cases)]
    except tosaic.Problem as problem:
        if len(cases) == 1:
            return [f"refused {cases[0].kind} {cases[0].options}: {problem.message}"]
        middle = len(cases) // 2
        return [*judged(cases[:middle]), *judged(cases[middle:])]


def verdict(entry: Any, case: Case) -> str:
    traced, rng = entry.trace(), np.random.default_rng(len(case.kind))
    is_float = case.type == "f32"
    x = rng.standard_normal(case.x).astype(np.float32) if is_float else rng.integers(-128, 128, case.x).astype(np.int8)
    assert traced.imported is not None
    module = prepared(traced.module)
    found = check_import(traced.imported, module, module.function(entry.name), [[x]])
    if found.evaluator is None:
        return f"unchecked {case.kind}: {found.reason}"
    return "right" if found.agrees else f"wrong {case}: {found.difference}"
