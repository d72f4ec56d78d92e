"""Reshape, transpose, concat, split, pad, space, depth and batch as TOSA: the elements are where TensorFlow has them."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tosaic.runtime.errors import Problem

from .legalized import Graph, numbered

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_are_moved(dtype: str) -> None:
    g = Graph()
    x = g.argument(numbered(2, 3, 4, dtype=dtype))
    a = g("Transpose", x, g.integers(2, 0, 1))
    b = g("Reshape", x, g.integers(4, -1))
    c = g("ConcatV2", x, x, g.constant(np.int32(1)))
    d = g("ReverseV2", x, g.integers(-1, 0))
    f = g("Tile", x, g.integers(1, 2, 3))
    border = g.constant(np.array(1, dtype))
    h = g("PadV2", x, g.constant(np.array([[0, 1], [2, 0], [0, 0]], np.int32)), border)
    i = g("MirrorPad", x, g.constant(np.array([[0, 0], [2, 1], [1, 3]], np.int32)), mode='"REFLECT"')
    j = g("BroadcastTo", g("Reshape", x, g.integers(2, 3, 1, 4)), g.integers(2, 3, 2, 4))
    k = g("Roll", x, g.integers(1, -3), g.integers(0, 2))
    g.check(a, b, c, d, f, h, i, j, k, g("ZerosLike", x), g("OnesLike", x))


def test_shapes_change() -> None:
    g = Graph()
    x = g.argument(numbered(2, 1, 3, 1, 4))
    found = [g("Squeeze", x), g("Squeeze", x, squeeze_dims=(-2,)), g("Squeeze", x, squeeze_dims=(1, 3))]
    found += [g("ExpandDims", g("Squeeze", x), g.constant(np.int32(axis))) for axis in (0, 2, 3, -1, -4)]
    found += [g("Reshape", x, g.integers(*dims)) for dims in ((24,), (-1,), (4, -1, 2), (2, 3, 4), (1, 1, 24))]
    g.check(*found)


def test_a_tensor_of_rank_0_keeps_its_element() -> None:
    g = Graph()
    x = g.argument(np.float32(3))
    empty = g.constant(np.zeros(0, np.int32))
    g.check(g("Reshape", x, empty), g("Reshape", x, g.integers(1, 1)), g("Transpose", x, empty), g("Tile", x, empty),
            g("ReverseV2", x, empty), g("BroadcastTo", x, g.integers(2, 3)), g("ExpandDims", x, g.constant(np.int32(-1))),
            g("Fill", g.integers(2, 2), x, result="tensor<*xf32>"))


@pytest.mark.parametrize("seed", range(4))
def test_axes_in_any_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    g = Graph()
    found = []
    for rank in (2, 3, 4, 5, 6):
        x = g.argument(numbered(*random.integers(1, 5, rank)))
        found += [g("Transpose", x, g.integers(*random.permutation(rank).tolist())) for _ in range(3)]
        found.append(g("Transpose", x, g.integers(*(random.permutation(rank) - rank).tolist())))
    g.check(*found)


# ---- together and apart ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_concat_and_split(axis: int) -> None:
    g = Graph()
    extents = [3, 4, 6]
    parts = []
    for n in (1, 5, 2):
        extents[axis] = n
        parts.append(g.argument(numbered(*extents)))
    at = g.constant(np.int32(axis))
    whole = g("ConcatV2", *parts, at)
    split = g("SplitV", whole, g.integers(2, -1, 0, 1), at, result=["tensor<*xf32>"] * 4)
    even = g("Split", at, whole, result=["tensor<*xf32>"] * 4)
    back = g("ConcatV2", *(split[i] for i in (1, 2, 3, 0)), at)
    g.check(whole, g("Concat", at, *parts, result="tensor<*xf32>"), *(split[i] for i in (0, 1, 3)), *even, back)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_pack_and_unpack(axis: int) -> None:
    g = Graph()
    parts = [g.argument(numbered(2, 3)) for _ in range(3)]
    whole = g("Pack", *parts, axis=axis)
    separate = g("Unpack", whole, axis=axis, num=3, result=["tensor<*xf32>"] * 3)
    other = g("Unpack", parts[0], axis=-1, num=3, result=["tensor<*xf32>"] * 3)
    g.check(whole, *separate, *other)


def test_concat_leaves_out_what_has_no_elements() -> None:
    g = Graph()
    x, nothing = g.argument(numbered(2, 3)), g.constant(np.zeros((0, 3), np.float32))
    g.check(g("ConcatV2", nothing, x, nothing, g.constant(np.int32(0))))


# ---- borders ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirrored_borders(mode: str) -> None:
    g = Graph()
    x = g.argument(numbered(3, 4, 5))
    found = [g("MirrorPad", x, g.constant(np.array(p, np.int64)), mode=f'"{mode}"') for p in (
        [[2, 2], [3, 3], [4, 4]], [[0, 0], [0, 1], [2, 0]], [[1, 2], [0, 0], [1, 1]])]
    if mode == "SYMMETRIC":
        found.append(g("MirrorPad", x, g.integers_of([[3, 3], [4, 4], [5, 5]]), mode=f'"{mode}"'))
    g.check(*found)


def test_borders_of_numbers() -> None:
    g = Graph()
    x, value = g.argument(numbered(2, 3)), g.argument(np.float32(-7))
    g.check(g("Pad", x, g.integers_of([[1, 0], [0, 2]])), g("PadV2", x, g.integers_of([[0, 1], [3, 2]]), value),
            g("Pad", x, g.integers_of([[0, 0], [0, 0]])))


# ---- space, depth, batch ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("block", "layout"), list(itertools.product((2, 3), ("NHWC", "NCHW"))))
def test_space_and_depth(block: int, layout: str) -> None:
    g = Graph()
    shape = (2, 6, 12, 5) if layout == "NHWC" else (2, 5, 6, 12)
    x = g.argument(numbered(*shape))
    deep = g("SpaceToDepth", x, block_size=block, data_format=f'"{layout}"')
    g.check(deep, g("DepthToSpace", deep, block_size=block, data_format=f'"{layout}"'))


@pytest.mark.parametrize(("shape", "block", "paddings"), [
    ((1, 4, 6, 3), (2, 3), ((0, 0), (0, 0))), ((2, 3, 5, 1), (2, 2), ((1, 0), (0, 1))), ((3, 5), (2,), ((2, 1),)),
    ((2, 4, 6, 4, 3), (2, 3, 2), ((0, 0), (0, 0), (2, 0))), ((2, 3, 3, 3, 2, 2), (3, 1, 3), ((0, 0), (1, 1), (0, 0))),
    ((1, 4, 3, 2), (1, 1), ((0, 0), (0, 0)))])
def test_space_and_batch(shape: tuple[int, ...], block: tuple[int, ...], paddings: Any) -> None:
    g = Graph()
    x = g.argument(numbered(*shape))
    blocks, borders = g.integers(*block), g.integers_of(paddings)
    batch = g("SpaceToBatchND", x, blocks, borders)
    g.check(batch, g("BatchToSpaceND", batch, blocks, borders), g("BatchToSpaceND", batch, blocks, g.integers_of(
        [[0, 0]] * len(block))))


def test_space_and_batch_in_their_old_form() -> None:
    g = Graph()
    x = g.argument(numbered(1, 4, 5, 2))
    borders = g.integers_of([[0, 2], [1, 0]])
    batch = g("SpaceToBatch", x, borders, block_size=3)
    g.check(batch, g("BatchToSpace", batch, borders, block_size=3))


# ---- what has no place in TOSA ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("Transpose", lambda g: (g.argument(numbered(2, 3)), g.argument(np.array([1, 0], np.int32))),
     "the order of the axes must be known when compiling"),
    ("ConcatV2", lambda g: (g.argument(numbered(2, 3)), g.argument(np.int32(0))), "the axis must be known when compiling"),
    ("Tile", lambda g: (g.argument(numbered(2)), g.argument(np.array([2], np.int32))), "the multiples must be known"),
    ("Reshape", lambda g: (g.argument(numbered(2)), g.argument(np.array([2], np.int32))), "the new shape must be known"),
    ("Reshape", lambda g: (g.argument(numbered(2, 3)), g.integers(4, -1)), r"cannot be reshaped to \[4, -1\]"),
    ("Fill", lambda g: (g.argument(np.array([2], np.int32)), g.constant(np.float32(0))), "the shape must be known"),
    ("ReverseV2", lambda g: (g.argument(numbered(2, 3)), g.integers(2)), "axis 2 is not one of a tensor of rank 2"),
    ("BroadcastTo", lambda g: (g.argument(numbered(2, 3)), g.integers(2, 4)), "does not broadcast"),
    ("ConcatV2", lambda g: (g.argument(numbered(2, 3)), g.argument(numbered(3, 2)), g.integers_of(0)), "cannot be joined")])
def test_what_cannot_be_compiled_is_refused_with_the_reason(name: str, arguments: Any, message: str) -> None:
    g = Graph()
    result = g(name, *arguments(g), result="tensor<*xf32>")
    with pytest.raises(Problem, match=message) as caught:
        g.tosa(result)
    assert caught.value.position is not None
    assert f"tf.{name}" in str(caught.value)
