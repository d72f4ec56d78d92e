"""tf.Bitcast: every bit stays, of as many numbers, of several narrower ones, and of one wider; beside TensorFlow, too."""
from __future__ import annotations

import itertools
import subprocess
import sys

import ml_dtypes  # noqa: F401  NumPy knows bfloat16
import numpy as np
import pytest
from tosaic.lowering.graph.types import BY_STORAGE, Array
from tosaic.runtime.errors import Problem

from .one_operation import answers, text_of
from .three_ways import tosa_of

TYPES = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32", "int64", "uint64", "float64")
PAIRS = list(itertools.permutations(TYPES, 2))


def patterns(dtype: str, *dims: int) -> Array:
    count = int(np.prod(dims)) * np.dtype(dtype).itemsize
    return np.random.default_rng(count).integers(0, 256, count, np.uint8).view(dtype).reshape(dims)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("source", "target"), PAIRS[::2])  # each type from and to several of each width; all beside TensorFlow
def test_bits_stay(source: str, target: str) -> None:
    a, b = np.dtype(source).itemsize, np.dtype(target).itemsize
    x = patterns(source, 3, 5, *([b // a] if b > a else []))
    for found in answers("tf.Bitcast", x, results=[str(BY_STORAGE[target])]):
        assert found[0].dtype.name == target and found[0].shape == (3, 5, *([a // b] if a > b else []))
        assert found[0].tobytes() == x.tobytes()


def test_a_last_axis_that_makes_no_number_is_refused() -> None:
    with pytest.raises(Problem, match=r"2 numbers of f16 make one of f32: the last extent of tensor<3x4xf16> must be 2"):
        tosa_of(text_of("tf.Bitcast", [patterns("float16", 3, 4)], ["f32"]))


PROGRAM = """
import numpy as np, sys, tensorflow as tf
import ml_dtypes
for line in sys.stdin.read().split():
    source, target, dims, code = line.split(":")
    x = np.frombuffer(bytes.fromhex(code), source).reshape([int(n) for n in dims.split(",")])
    y = tf.bitcast(tf.constant(x), tf.as_dtype(target)).numpy()
    print(",".join(map(str, y.shape)), y.tobytes().hex())
"""


@pytest.mark.sampled(4)
def test_tensorflow_has_the_same_shapes_and_bits() -> None:
    pytest.importorskip("tensorflow", reason="tensorflow is not installed (the extra `tensorflow`)")
    cases = []
    for source, target in PAIRS:
        a, b = np.dtype(source).itemsize, np.dtype(target).itemsize
        cases.append((source, target, patterns(source, 2, 3, *([b // a] if b > a else []))))
    lines = [f"{s}:{t}:{','.join(map(str, x.shape))}:{x.tobytes().hex()}" for s, t, x in cases]
    run = subprocess.run([sys.executable, "-c", PROGRAM], input="\n".join(lines), capture_output=True, text=True, check=True)
    for (_, target, x), line in zip(cases, run.stdout.splitlines(), strict=True):
        found = answers("tf.Bitcast", x, results=[str(BY_STORAGE[target])])[1][0]
        assert line.split() == [",".join(map(str, found.shape)), found.tobytes().hex()]
