"""The calls of `operator_tables.py`: arrays by name, and for each function of `tosaic.ops` and each operator of `tosaic.tosa`
what it is called with."""
from __future__ import annotations

ARRAYS = {
    "x": "np.array([[0.25, 1.0, 4.0], [0.5, 2.0, 9.0]], np.float32)",
    "y": "np.array([1.0, 2.0, 3.0], np.float32)",
    "z": "np.array([[-1.5, 0.0, 2.5], [3.0, -0.5, 1.0]], np.float32)",
    "u": "np.array([0.1, 0.5, 0.9], np.float32)",
    "w": "np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)",
    "s": "np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)",
    "n": "np.array([[1, 2, 3], [6, 5, 4]], np.int32)",
    "m": "np.array([[3, 1, 2], [1, 2, 3]], np.int32)",
    "places": "np.array([2, 0], np.int32)",
    "b": "np.array([[True, False, True], [False, False, True]])",
    "c": "np.array([[True, True, False], [False, True, True]])",
    "image": "np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)",
    "volume": "np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2, 1)",
    "weight": "np.ones((1, 2, 2, 2), np.float32)",
    "weight3": "np.ones((1, 2, 2, 2, 1), np.float32)",
    "filters": "np.ones((2, 2, 2, 1), np.float32)",
    "bias": "np.zeros(1, np.float32)",
    "bias2": "np.zeros(2, np.float32)",
    "rows": "np.array([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], np.float32)",
    "new": "np.array([[[7.0, 8.0]]], np.float32)",
    "where": "np.array([[2, 0]], np.int32)",
    "one": "np.array([[1]], np.int32)",
    "signal": "np.array([[[1.0, 2.0], [3.0, 4.0]]], np.float32)",
    "quiet": "np.zeros((1, 2, 2), np.float32)",
    "q": "np.array([-128, 0, 127], np.int8)",
    "codes": "np.arange(-128, 128).astype(np.int8)[::-1].copy()",
    "v": "np.array([1.0, 2.0], np.float32)",
    "long": "np.linspace(-4, 4, 64, dtype=np.float32).reshape(1, 2, 32)",
    "wide": "np.linspace(-4, 4, 32, dtype=np.float32).reshape(1, 1, 1, 32)",
}
"""Arrays, as an example writes them."""

USUAL = ("x", "x, y", "u", "x, 1", "n", "n, m", "b", "b, c", "u, u", "z", "s", "s, s", "x, n", "u, u, u",
         "y, y", "n, 1", "x, 1, 0", "[x, x]")
"""What a function that no table has is tried with, in this order."""

OPS = {
    "argmax": "x, 1", "argmin": "x, 1", "astype": "z, np.int32", "broadcast_arrays": "x, y", "broadcast_to": "y, (2, 3)",
    "clip": "x, 1.0, 3.0", "concatenate": "[x, x], 1", "dot": "y, y", "expand_dims": "y, 0", "flip": "x, 1",
    "full_like": "x, 7",
    "left_shift": "n, m", "right_shift": "n, m", "logical_and": "b, c", "logical_or": "b, c", "logical_xor": "b, c",
    "logical_not": "b", "matmul": "x, w", "moveaxis": "x, 0, 1", "negative": "z", "abs": "z", "absolute": "z", "outer": "y, y",
    "pad": "x, 1", "reshape": "x, (3, 2)", "sign": "z", "split": "x, 3, 1", "squeeze": "x[None]", "stack": "[x, x], 0",
    "swapaxes": "x, 0, 1", "take": "x, places, 1", "tile": "x, (1, 2)", "where": "b, x, 0.0", "relu": "z", "all": "b, 1",
    "any": "b, 1", "max": "x, 1", "min": "x, 1", "amax": "x, 1", "amin": "x, 1", "sum": "x, 0", "mean": "x, 0", "prod": "x, 1",
    "einsum": "'ij,kj->ik', x, x", "arange": "5", "empty": "(2, 3)", "eye": "3", "full": "(2, 3), 7", "identity": "3",
    "linspace": "0.0, 1.0, 5", "ones": "(2, 3)", "zeros": "(2, 3)", "tri": "3", "permute_dims": "x, (1, 0)",
    "sliding_window_view": "y, 2", "take_along_axis": "x, np.array([[2], [0]]), 1", "linalg.matrix_power": "s, 2",
    "linalg.cond": "s, 1", "polyfit": "y, [2, 4, 7], 1",
    "complex": "x, x", "fft.fftfreq": "4", "fft.rfftfreq": "4",
    "apply_along_axis": "lambda row: row[::-1], 1, x", "apply_over_axes": "ops.sum, x, (0, 1)", "choose": "n % 2, [x, z]",
    "dsplit": "volume[0], 2", "histogram": "x, 3", "piecewise": "y, [y < 2, y > 2], [-1, lambda v: v * v]",
    "select": "[b, c], [x, z]", "insert": "x, 1, 7, 1", "delete": "x, 1, 1",
    "block": "[[x, z], [z, x]]", "digitize": "x, [1, 2, 4]", "interp": "u, [0, 1], [10, 20]", "resize": "y, (2, 3)",
    "softmax": "x", "special.softmax": "x, -1", "special.log_softmax": "x, -1", "special.logsumexp": "x, -1",
}
"""Arguments of functions of `ops`, and of those of its namespaces."""

REFERENCES = {
    "relu": "np.maximum(z, 0)", "sigmoid": "1 / (1 + np.exp(-x))", "rsqrt": "1 / np.sqrt(x)", "astype": "z.astype(np.int32)",
    "erf": "np.vectorize(math.erf)(x)", "softmax": "np.exp(x) / np.exp(x).sum(-1, keepdims=True)",
    "logsumexp": "np.log(np.exp(x).sum(-1))", "empty": "np.zeros((2, 3))", "empty_like": "np.zeros_like(x)",
    "complex": "x + 1j * x", "sliding_window_view": "np.lib.stride_tricks.sliding_window_view(y, 2)",
    "apply_over_axes": "np.apply_over_axes(np.sum, x, (0, 1))",
}
"""What functions compute that NumPy has under no such name, or takes otherwise."""

SENTENCES = {
    "relu": "Each element, or 0 where it is negative.", "sigmoid": "1 / (1 + exp(-x)) of each element.",
    "rsqrt": "1 / sqrt(x) of each element.", "erf": "The error function of each element.",
    "softmax": "Exponentials along an axis, divided by their sum.",
    "logsumexp": "The logarithm of the sum of the exponentials along an axis, without overflow.",
}
"""What functions do whose docstring says nothing and that NumPy does not have."""


def calls(template: str, names: str) -> dict[str, str]:
    return {name: template.format(name) for name in names.split()}


LONG = "tosa.cast_to_block_scaled(long, block_size='BLOCK_SIZE_32', to='f8E4M3FN')"
WIDE = LONG.replace("long", "wide")
"""Block-scaled tensors: values and scales."""

TOSA: dict[str, str] = {
    **calls("tosa.{}(x)", "ceil cos erf exp floor identity log reciprocal rsqrt sigmoid sin tanh identityn"),
    **calls("tosa.{}(z)", "abs negate"),
    **calls("tosa.{}(x, z)", "add sub mul maximum minimum pow equal greater greater_equal"),
    **calls("tosa.{}(n, m)", "bitwise_and bitwise_or bitwise_xor int_div intdiv logical_left_shift logical_right_shift"),
    **calls("tosa.{}(n)", "bitwise_not clz"),
    **calls("tosa.{}(b, c)", "logical_and logical_or logical_xor"),
    **calls("tosa.{}(x, axis=1)", "argmax reduce_max reduce_min reduce_prod reduce_product reduce_sum reverse"),
    **calls("tosa.{}(b, axis=1)", "reduce_all reduce_any"),
    **calls("tosa.{}(image, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0))", "avg_pool2d max_pool2d"),
    **calls("tosa.{}(image, kernel=[2, 2], stride=[2, 2], pad=[0, 0, 0, 0])", "avg_pool2d_adaptive max_pool2d_adaptive"),
    **calls("tosa.tile(v, tosa.{}([7], [2]))",
            "add_shape sub_shape mul_shape div_ceil_shape div_floor_shape mod_shape max_shape min_shape"),
    **calls("tosa.tile(v, tosa.{}([2]))", "exp2_shape log2_ceil_shape log2_floor_shape"),
    "arithmetic_right_shift": "tosa.arithmetic_right_shift(n, m, round=True)",
    "assert_equal_shape": "(tosa.assert_equal_shape([2, 3], [2, 3], allow_broadcast=False), tosa.identity(x))[1]",
    "cast": "tosa.cast(z, to='i32')",
    "cast_from_block_scaled":
        f"tosa.cast_from_block_scaled(*{LONG}, block_size='BLOCK_SIZE_32', to='f32')",
    "cast_to_block_scaled": f"{LONG}",
    "clamp": "tosa.clamp(x, min_val=0.5, max_val=2.0)",
    "concat": "tosa.concat(x, z, axis=0)",
    "concat_shape": "tosa.tile(x, tosa.concat_shape([1], [2]))",
    "const": "tosa.add(v, tosa.const([10.0, 20.0], 'f32'))",
    "const_shape": "tosa.reshape(x, tosa.const_shape([3, 2]))",
    "conv2d": "tosa.conv2d(image, weight, bias, stride=(2, 2))",
    "conv2d_block_scaled": f"tosa.conv2d_block_scaled(*{WIDE}, "
                           f"*{WIDE}, bias, pad=[0, 0, 0, 0], "
                           "stride=[1, 1], dilation=[1, 1], block_size='BLOCK_SIZE_32')",
    "conv3d": "tosa.conv3d(volume, weight3, bias)",
    "depthwise_conv2d": "tosa.depthwise_conv2d(image, filters, bias2)",
    "dim": "tosa.reshape(y, tosa.dim(x, axis=1))",
    "fft2d": "tosa.fft2d(signal, quiet, inverse=False)",
    "gather": "tosa.gather(rows, where)",
    "logical_not": "tosa.logical_not(b)",
    "matmul": "tosa.matmul(rows, signal)",
    "matmul_t": "tosa.matmul_t(rows, signal)",
    "matmul_t_block_scaled": f"tosa.matmul_t_block_scaled(*{LONG}, "
                             f"*{LONG}, block_size='BLOCK_SIZE_32')",
    "pad": "tosa.pad(x, [0, 0, 1, 1])",
    "rescale": "tosa.rescale(n, [1 << 30], [29], to='i8')",
    "reshape": "tosa.reshape(x, [3, 2])",
    "reshape_block_scaled": f"tosa.reshape_block_scaled(*{LONG}, tosa.const_shape([2, 1, 32]), "
                            "block_size='BLOCK_SIZE_32')",
    "resize": "tosa.resize(image, [2, 1, 2, 1], [0, 0], [1, 1], mode='NEAREST_NEIGHBOR')",
    "rfft2d": "tosa.rfft2d(signal)",
    "row_gather": "tosa.row_gather(rows, one, 2)",
    "row_gather_block_scaled": f"tosa.row_gather_block_scaled(*{LONG}, one, tosa.const([1], 'i32'), "
                               "block_size='BLOCK_SIZE_32')",
    "scatter": "tosa.scatter(rows, one, new)",
    "select": "tosa.select(b, x, z)",
    "slice": "tosa.slice(x, [0, 1], [2, 2])",
    "slice_shape": "tosa.tile(v, tosa.slice_shape([2, 3, 4], 1, 1))",
    "table": "tosa.table(q, codes)",
    "tile": "tosa.tile(x, [1, 2])",
    "transpose": "tosa.transpose(x, perms=[1, 0])",
    "transpose_conv2d": "tosa.transpose_conv2d(image, weight, bias, stride=(2, 2))",
}
"""Calls of operators of the specification."""
