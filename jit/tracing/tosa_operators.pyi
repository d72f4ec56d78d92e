"""Types of `tosaic.tosa`. From the table of operators: pytest tests/project/test_public_names.py --update-golden"""
from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from .tensor import Tensor

Operand: TypeAlias = Tensor | ArrayLike

def abs(x: Operand) -> Tensor:
    """Absolute value; the least integer stays."""

def add(a: Operand, b: Operand) -> Tensor:
    """a + b."""

def add_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Sums of extents."""

def argmax(x: Operand, *, axis: int, nan_mode: str = ..., to: Any = ...) -> Tensor:
    """The place of the first greatest value along an axis, which goes. PROPAGATE takes a NaN for greatest, IGNORE for
    least. TOSA 1.0, tensor operators."""

def arithmetic_right_shift(a: Operand, b: Operand, *, round: bool = ...) -> Tensor:
    """a >> b, the sign coming in from above; with `round`, plus the last bit that was shifted out."""

def assert_equal_shape(shape1: Operand, shape2: Operand, *, allow_broadcast: bool = ...) -> tuple[()]:
    """No result: two shapes that must be equal when compiling. With `allow_broadcast`, an extent of 1 in either equals
    any."""

def avg_pool2d(x: Operand, input_zp: Operand = ..., output_zp: Operand = ..., *, kernel: Sequence[int], stride:
               Sequence[int] = ..., pad: Sequence[int] = ..., acc_type: Any = ...) -> Tensor:
    """The mean of a window; integers by a 32-bit reciprocal of the count. TOSA 1.0, tensor operators."""

def avg_pool2d_adaptive(x: Operand, input_zp: Operand = ..., output_zp: Operand = ..., kernel: Operand = ..., stride:
                        Operand = ..., pad: Operand = ..., *, acc_type: Any = ...) -> Tensor:
    """The mean of a window; `kernel`, `stride` and `pad` are operands."""

def bitwise_and(a: Operand, b: Operand) -> Tensor:
    """Bits that are set in both."""

def bitwise_not(x: Operand) -> Tensor:
    """Every bit flipped."""

def bitwise_or(a: Operand, b: Operand) -> Tensor:
    """Bits that are set in either."""

def bitwise_xor(a: Operand, b: Operand) -> Tensor:
    """Bits in which the two differ."""

def cast(x: Operand, *, to: Any = ..., input_unsigned: bool = ...) -> Tensor:
    """Float to integer rounds to the nearest, ties to even, and saturates (NaN: 0); integers wrap; bool is `!= 0`.
    Floats round to the nearest; what is too large is infinite, NaN in f8E4M3FN. `input_unsigned` (TOSA 1.1) takes the
    bits of an integer for a number without sign."""

def cast_from_block_scaled(data: Operand, scale: Operand, *, block_size: Any, to: Any = ...) -> Tensor:
    """Values times their scales. TOSA 1.1 draft, type conversion."""

def cast_to_block_scaled(x: Operand, *, block_size: Any, to: Any = ..., stochastic_round: bool = ...
        ) -> tuple[Tensor, Tensor]:
    """The nearest values (`to`) with their scales, two results. TOSA 1.1 draft, type conversion. `stochastic_round`, which the
    draft had for a time, must not be true."""

def ceil(x: Operand) -> Tensor:
    """The least integer that is not below."""

def clamp(x: Operand, *, min_val: Any, max_val: Any, nan_mode: str = ...) -> Tensor:
    """The nearest number in [min_val, max_val]. A NaN stays, or with nan_mode IGNORE becomes min_val."""

def clz(x: Operand) -> Tensor:
    """Zeros above the highest bit that is set; the width for 0."""

def concat(*operands: Operand, axis: int) -> Tensor:
    """Tensors one after the other along an axis. TOSA 1.0, data layout."""

def concat_shape(*shapes: Operand) -> Tensor:
    """Shapes one after the other; none of them is empty."""

def const(values: Any, dtype: Any = ...) -> Tensor:
    """A constant."""

def const_shape(values: Sequence[int]) -> Tensor:
    """A constant."""

def conv2d(x: Operand, weight: Operand, bias: Operand, input_zp: Operand = ..., weight_zp: Operand = ..., *, pad:
           Sequence[int] = ..., stride: Sequence[int] = ..., dilation: Sequence[int] = ..., acc_type: Any = ...,
           local_bound: bool = ...) -> Tensor:
    """2-D convolution. TOSA 1.0, tensor operators."""

def conv2d_block_scaled(x: Operand, x_scale: Operand, weight: Operand, weight_scale: Operand, bias: Operand, pad:
                        Operand, stride: Operand, dilation: Operand, *, block_size: Any) -> Tensor:
    """2-D convolution of block-scaled images with block-scaled weights; `pad`, `stride` and `dilation` are operands.
    TOSA 1.1 draft, tensor operators."""

def conv3d(x: Operand, weight: Operand, bias: Operand, input_zp: Operand = ..., weight_zp: Operand = ..., *, pad:
           Sequence[int] = ..., stride: Sequence[int] = ..., dilation: Sequence[int] = ..., acc_type: Any = ...,
           local_bound: bool = ...) -> Tensor:
    """3-D convolution; a weight is [OC, KD, KH, KW, IC]. TOSA 1.0, tensor operators."""

def cos(x: Operand) -> Tensor:
    """Cosine of an angle in radians."""

def custom(*operands: Operand, operator_name: str, domain_name: str, implementation_attrs: str = ..., declared: Any =
           ...) -> Tensor | tuple[Tensor, ...]:
    """An operator outside the specification; `implementation_attrs` is a text for its implementation. TOSA 1.0, custom
    operators."""

def depthwise_conv2d(x: Operand, weight: Operand, bias: Operand, input_zp: Operand = ..., weight_zp: Operand = ..., *,
                     pad: Sequence[int] = ..., stride: Sequence[int] = ..., dilation: Sequence[int] = ..., acc_type: Any
                     = ..., local_bound: bool = ...) -> Tensor:
    """Every channel with its own M filters; a weight is [KH, KW, C, M], output channel c*M + m.
    TOSA 1.0, tensor operators."""

def dim(x: Operand, *, axis: int) -> Tensor:
    """The extent of a tensor along an axis, as a shape of one."""

def div_ceil_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Quotients, rounded up."""

def div_floor_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Quotients, rounded down."""

def equal(a: Operand, b: Operand) -> Tensor:
    """a == b."""

def erf(x: Operand) -> Tensor:
    """The error function."""

def exp(x: Operand) -> Tensor:
    """e to the power of the operand."""

def exp2_shape(shape: Operand) -> Tensor:
    """2 to the power of each extent, which is at least 0 and below 31."""

def fft2d(input_real: Operand, input_imag: Operand, *, inverse: bool = ..., local_bound: bool = ...
        ) -> tuple[Tensor, Tensor]:
    """The transform of complex numbers, given and returned as real and imaginary parts [N, H, W]."""

def floor(x: Operand) -> Tensor:
    """The greatest integer that is not above."""

def gather(values: Operand, indices: Operand) -> Tensor:
    """out[n, w] = values[n, indices[n, w]]. TOSA 1.0, scatter and gather operators."""

def greater(a: Operand, b: Operand) -> Tensor:
    """a > b."""

def greater_equal(a: Operand, b: Operand) -> Tensor:
    """a >= b."""

def identity(x: Operand) -> Tensor:
    """The operand. TOSA 1.0, data nodes."""

def identityn(*operands: Operand) -> Tensor | tuple[Tensor, ...]:
    """Each of the operands: a list of results, such as the slices that a split becomes. Of TOSA before 1.0."""

def int_div(a: Operand, b: Operand) -> Tensor:
    """a / b, truncated. By 0 it is 0; the least integer by -1 is itself."""

def intdiv(a: Operand, b: Operand) -> Tensor:
    """a / b, truncated. By 0 it is 0; the least integer by -1 is itself."""

def log(x: Operand) -> Tensor:
    """Natural logarithm; NaN below 0."""

def log2_ceil_shape(shape: Operand) -> Tensor:
    """The least power of two that is not below, for each extent: its exponent."""

def log2_floor_shape(shape: Operand) -> Tensor:
    """The greatest power of two that is not above, for each extent: its exponent."""

def logical_and(a: Operand, b: Operand) -> Tensor:
    """True where both are."""

def logical_left_shift(a: Operand, b: Operand) -> Tensor:
    """a << b."""

def logical_not(x: Operand) -> Tensor:
    """True where the operand is false."""

def logical_or(a: Operand, b: Operand) -> Tensor:
    """True where either is."""

def logical_right_shift(a: Operand, b: Operand) -> Tensor:
    """a >> b, zeros coming in from above."""

def logical_xor(a: Operand, b: Operand) -> Tensor:
    """True where one is and the other is not."""

def matmul(a: Operand, b: Operand, a_zp: Operand = ..., b_zp: Operand = ..., *, to: Any = ...) -> Tensor:
    """Products of matrices. TOSA 1.0, tensor operators."""

def matmul_t(a: Operand, b: Operand, a_zp: Operand = ..., b_zp: Operand = ..., *, to: Any = ...) -> Tensor:
    """Products with transposed matrices, rows of one with rows of the other; a batch of one goes with any batch.
    TOSA 1.1, tensor operators."""

def matmul_t_block_scaled(a: Operand, a_scale: Operand, b: Operand, b_scale: Operand, *, block_size: Any) -> Tensor:
    """Products of rows with rows, all of them block-scaled; a batch of one goes with any batch. TOSA 1.1 draft, tensor
    operators."""

def max_pool2d(x: Operand, *, kernel: Sequence[int], stride: Sequence[int] = ..., pad: Sequence[int] = ..., nan_mode:
               str = ...) -> Tensor:
    """The greatest value of a window. TOSA 1.0, tensor operators."""

def max_pool2d_adaptive(x: Operand, kernel: Operand, stride: Operand, pad: Operand, *, nan_mode: str = ...) -> Tensor:
    """The greatest value of a window; `kernel`, `stride` and `pad` are operands."""

def max_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """The greater extent of each pair."""

def maximum(a: Operand, b: Operand, *, nan_mode: str = ...) -> Tensor:
    """The greater of the two. A NaN is the result, or with nan_mode IGNORE only where both are."""

def min_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """The smaller extent of each pair."""

def minimum(a: Operand, b: Operand, *, nan_mode: str = ...) -> Tensor:
    """The smaller of the two. A NaN is the result, or with nan_mode IGNORE only where both are."""

def mod_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Remainders of extents."""

def mul(a: Operand, b: Operand, shift: Operand = ...) -> Tensor:
    """a * b. i8 and i16 give i32. i32 keeps the low half, or with a shift is (a * b + 2**(shift-1)) >> shift."""

def mul_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Products of extents."""

def negate(x: Operand, input1_zp: Operand = ..., output_zp: Operand = ...) -> Tensor:
    """output_zp - (x - input1_zp); i8 and i16 are clipped, i32 and i64 wrap. Zero points are 0 for all types but i8."""

def pad(x: Operand, padding: Operand, pad_const: Operand = ...) -> Tensor:
    """A border of one value; `padding` holds before and after for each axis. TOSA 1.0, data layout."""

def pow(a: Operand, b: Operand) -> Tensor:
    """a to the power b. The specification defines it for a > 0, and a = 0 with b > 0; here it is IEEE 754's `pow`."""

def reciprocal(x: Operand) -> Tensor:
    """1 / x. Of f64, the reciprocal of RSQRT is a square root, correctly rounded, where one kernel computes both."""

def reduce_all(x: Operand, *, axis: int) -> Tensor:
    """True if all are true."""

def reduce_any(x: Operand, *, axis: int) -> Tensor:
    """True if any is true."""

def reduce_max(x: Operand, *, axis: int, nan_mode: str = ...) -> Tensor:
    """The greatest."""

def reduce_min(x: Operand, *, axis: int, nan_mode: str = ...) -> Tensor:
    """The least."""

def reduce_prod(x: Operand, *, axis: int) -> Tensor:
    """The product; integers, which TOSA does not multiply so, wrap."""

def reduce_product(x: Operand, *, axis: int) -> Tensor:
    """The product; integers, which TOSA does not multiply so, wrap."""

def reduce_sum(x: Operand, *, axis: int) -> Tensor:
    """The sum; integers wrap."""

def rescale(x: Operand, multiplier: Operand, shift: Operand, input_zp: Operand = ..., output_zp: Operand = ..., *,
            scale32: bool = ..., rounding_mode: str = ..., per_channel: bool = ..., input_unsigned: bool = ...,
            output_unsigned: bool = ..., to: Any = ...) -> Tensor:
    """(x - input_zp) * multiplier / 2**shift, rounded half up, + output_zp, clipped to the type of the result."""

def reshape(x: Operand, shape: Operand) -> Tensor:
    """The same elements in row-major order; one extent of the shape may be -1 and follows. TOSA 1.0, data layout."""

def reshape_block_scaled(*operands: Operand, block_size: Any) -> Tensor | tuple[Tensor, ...]:
    """The same elements in row-major order, their scales with them. TOSA 1.1 draft, data layout."""

def resize(x: Operand, scale: Operand, offset: Operand, border: Operand, *, mode: str) -> Tensor:
    """Output row o lies at (o * scale_d + offset) / scale_n in the input. `scale` holds n and d for rows, then for
    columns; `offset` and `border` one number for rows, one for columns. TOSA 1.0, image operators."""

def reverse(x: Operand, *, axis: int) -> Tensor:
    """An axis from its end to its start. TOSA 1.0, data layout."""

def rfft2d(input_real: Operand, *, local_bound: bool = ...) -> tuple[Tensor, Tensor]:
    """The transform of real numbers [N, H, W], of which the first W/2 + 1 columns are given; the others are their
    conjugates."""

def row_gather(values: Operand, indices: Operand, row_count: Operand) -> Tensor:
    """out[n, w * row_count + r] = values[n, indices[n, w] + r] for r below row_count, one i32 that is known when
    compiling. TOSA 1.1, scatter and gather operators."""

def row_gather_block_scaled(*operands: Operand, block_size: Any) -> Tensor | tuple[Tensor, ...]:
    """Rows by their number, their scales with them. TOSA 1.1 draft, scatter and gather operators."""

def rsqrt(x: Operand) -> Tensor:
    """1 / sqrt(x); NaN below 0, minus infinity for -0."""

def scatter(values: Operand, indices: Operand, rows: Operand) -> Tensor:
    """values_in, but row indices[n, w] is input[n, w]. TOSA 1.0, scatter and gather operators."""

def select(condition: Operand, yes: Operand, no: Operand) -> Tensor:
    """The second operand where the first is true, else the third."""

def sigmoid(x: Operand) -> Tensor:
    """1 / (1 + exp(-x))."""

def sin(x: Operand) -> Tensor:
    """Sine of an angle in radians."""

def slice(x: Operand, start: Operand, size: Operand) -> Tensor:
    """`size` elements from `start` along each axis; in MLIR -1 stands for all that follow. TOSA 1.0, data layout."""

def slice_shape(shape: Operand, start: Operand, size: Operand) -> Tensor:
    """`size` extents from extent `start` on; both are one i32, known when compiling."""

def sub(a: Operand, b: Operand) -> Tensor:
    """a - b."""

def sub_shape(shape1: Operand, shape2: Operand) -> Tensor:
    """Differences of extents."""

def table(x: Operand, table: Operand) -> Tensor:
    """i8: entry x + 128. i16: the line between two of 513 entries, 128 steps apart, with 7 fractional bits more."""

def tanh(x: Operand) -> Tensor:
    """Hyperbolic tangent."""

def tile(x: Operand, multiples: Operand) -> Tensor:
    """The tensor `multiples` times along each axis. TOSA 1.0, data layout."""

def transpose(x: Operand, *, perms: Sequence[int]) -> Tensor:
    """Axis perms[i] of the input becomes axis i. TOSA 1.0, data layout."""

def transpose_conv2d(x: Operand, weight: Operand, bias: Operand, input_zp: Operand = ..., weight_zp: Operand = ..., *,
                     out_pad: Sequence[int] = ..., stride: Sequence[int] = ..., acc_type: Any = ..., local_bound: bool =
                     ...) -> Tensor:
    """Every input pixel adds its multiple of the kernel to the output, `stride` apart; `out_pad` (top, bottom, left,
    right) widens the output, or narrows it where negative. TOSA 1.0, tensor operators."""
