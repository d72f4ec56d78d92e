"""CMSIS-NN's kernels for the layers of a network: a program that calls them one after the other with the same data, and the
library, compiled from the sources that the user has. It is only measured beside tosaic; nothing of it is kept here.

The sources are a checkout of https://github.com/ARM-software/CMSIS-NN, in the folder that `--cmsis-nn` names, or in `CMSIS-NN`
of the folder where the comparisons keep their environments (`$TOSAIC_BENCH`, `~/.cache/tosaic/bench`).
"""
from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..peers.environment import cache
from . import quantization
from .boards import HERE, Board, Count
from .layers import Layer, padding

KERNELS = "Source/*/*_s8*.c", "Source/NNSupportFunctions/*_s16*.c", "Source/NNSupportFunctions/*_q7*.c"
"""The sources of kernels for int8, and of what they call."""
COMPILE = ("-O3", "-ffreestanding", "-fbuiltin", "-ffunction-sections", f"-I{HERE / 'cmsis_nn_include'}", "-w")
"""-ffreestanding: without a C library's headers; -fbuiltin: a memcpy of four bytes is a load all the same."""
SCRATCH = 1 << 17
HEAD = """
#include "console.h"
#include "counting.h"
#include "arm_nnfunctions.h"

static int8_t scratch[SCRATCH] __attribute__((aligned(16)));
"""
WEIGHTED = "&context, &params, &scales, &x_dims, x{n}, &w_dims, w{n}, &b_dims, {bias}, &y_dims, y{n}"
CALLS = {
    "CONV_2D": ("cmsis_nn_conv_params", "arm_convolve_wrapper_s8", "&params, &x_dims, &w_dims, &y_dims"),
    "DEPTHWISE_CONV_2D": ("cmsis_nn_dw_conv_params", "arm_depthwise_conv_wrapper_s8", "&params, &x_dims, &w_dims, &y_dims"),
    "FULLY_CONNECTED": ("cmsis_nn_fc_params", "arm_fully_connected_wrapper_s8", "&w_dims"),
}
"""Of each kind with weights: the type of its parameters, its kernel, and what the size of its scratch memory depends on."""


def default_folder() -> Path:
    return cache() / "CMSIS-NN"


def missing(folder: Path) -> str:
    """Why there are no sources in a folder; empty where there are."""
    header = folder / "Include" / "arm_nnfunctions.h"
    return "" if header.exists() else f"there is no {header}; git clone https://github.com/ARM-software/CMSIS-NN {folder}"


def library(folder: Path, board: Board, place: Path) -> Path:
    """The kernels, compiled for a board's processor."""
    sources = sorted({path for pattern in KERNELS for path in folder.glob(pattern)})
    gcc, cpu = board.machine.compiler[0], [f for f in board.machine.compiler if f.startswith("-m")]
    objects = []
    for source in sources:
        objects.append(str(place / f"{source.stem}.o"))
        subprocess.run([gcc, *cpu, *COMPILE, f"-I{folder / 'Include'}", "-c", str(source), "-o", objects[-1]], check=True)
    archive = place / "libcmsis_nn.a"
    subprocess.run([gcc.replace("-gcc", "-ar"), "rcs", str(archive), *objects], check=True)
    return archive


def counts(folder: Path, archive: Path, board: Board, layers: Sequence[Layer], place: Path) -> list[Count]:
    """Each layer's kernel on a board."""
    (place / "main.c").write_text(program(layers))
    return board.counts(place, [place / "main.c", archive], ["-isystem", str(folder / "Include"), "-isystem",
                                                             str(HERE / "cmsis_nn_include"), "-Wl,--gc-sections"])


# ---- the program ---------------------------------------------------------------------------------------------------------
def program(layers: Sequence[Layer]) -> str:
    bodies = "\n".join(call(number, layer) for number, layer in enumerate(layers))
    runs = "\n".join(f"    if ((code = call{n}()) != 0) return code;" for n in range(len(layers)))
    return f"{HEAD.replace('SCRATCH', str(SCRATCH))}{bodies}\nint main(void) {{\n    int code = 0;\n{runs}\n    return 0;\n}}\n"


def call(number: int, layer: Layer) -> str:
    """The function that makes the call of one layer, and its arrays."""
    arrays = [array("int8_t", f"{'xz'[i]}{number}", x) for i, x in enumerate(layer.arrays)]
    arrays.append(f"static int8_t y{number}[{layer.expected.size}] __attribute__((aligned(16)));")
    match layer.kind:
        case "ADD": body = [added(number, layer)]
        case "SOFTMAX": body = [softmax(number, layer)]
        case "AVERAGE_POOL_2D": body = [*pooled(number, layer)]
        case _:
            arrays += weights(number, layer)
            body = [*weighted(number, layer)]
    return "\n".join([*arrays, f"static int call{number}(void) {{", *(f"    {line}" for line in body),
                      f"    print_bytes(y{number}, sizeof y{number});", "    return 0;", "}"])


def array(type: str, name: str, values: np.ndarray | Sequence[int]) -> str:
    numbers = ", ".join(map(str, np.asarray(values).ravel().tolist()))
    return f"static const {type} {name}[] __attribute__((aligned(16))) = {{{numbers}}};"


def weights(number: int, layer: Layer) -> Iterable[str]:
    assert layer.weights is not None and layer.weights.data is not None
    pairs = quantization.rescaling(layer)
    yield array("int8_t", f"w{number}", layer.weights.data.view(np.int8))
    if layer.bias is not None and layer.bias.data is not None:
        yield array("int32_t", f"b{number}", layer.bias.data.view(np.int32))
    yield array("int32_t", f"m{number}", [m for m, _ in pairs])
    yield array("int32_t", f"s{number}", [s for _, s in pairs])


def dims(name: str, shape: Sequence[int | None]) -> str:
    """Four extents; those of a network that is counted are all known."""
    return f"const cmsis_nn_dims {name} = {{{', '.join(map(str, shape))}}};"


def weighted(number: int, layer: Layer) -> Iterable[str]:
    """A convolution or product. Sums of weights, which TFLite Micro computes when it starts, are not counted."""
    assert layer.weights is not None
    x, y, w = layer.inputs[0], layer.output, layer.weights
    type, kernel, sized = CALLS[layer.kind]
    bias = f"b{number}" if layer.bias is not None else "0"
    is_dense = layer.kind == "FULLY_CONNECTED"
    depth, channels = w.shape[-1], y.shape[-1]
    yield f"const {type} params = {{{fields(layer)}}};"
    yield dims("x_dims", (1, 1, 1, depth) if is_dense else x.shape)
    yield dims("w_dims", (depth, 1, 1, channels) if is_dense else w.shape)
    yield dims("b_dims", (1, 1, 1, channels))
    yield dims("y_dims", (1, 1, 1, channels) if is_dense else y.shape)
    own = f", {int(len(w.scales) > 1)}" if is_dense and w.scales is not None else ""
    scales = "cmsis_nn_quant_params" if is_dense else "cmsis_nn_per_channel_quant_params"
    yield f"const {scales} scales = {{(int32_t *)m{number}, (int32_t *)s{number}{own}}};"
    yield f"const cmsis_nn_context context = {{scratch, {kernel_size(kernel)}({sized})}};"
    yield "if (context.size > (int32_t)sizeof scratch) return 5;"
    if is_dense:
        yield (f"if (context.size) arm_vector_sum_s8((int32_t *)scratch, {depth}, {channels}, w{number}, {-x.zero_point}, 0, "
               f"{bias});")
    yield f"if (COUNTED({kernel}({WEIGHTED.format(n=number, bias=bias)})) != ARM_CMSIS_NN_SUCCESS) return 6;"


def kernel_size(kernel: str) -> str:
    """The function that says how much scratch memory a kernel takes."""
    return kernel.replace("fully_connected_wrapper", "fully_connected") + "_get_buffer_size"


def fields(layer: Layer) -> str:
    """The parameters of a convolution, pool or product, member by member."""
    low, high = quantization.limits(layer)
    activation = f".activation = {{{low}, {high}}}"
    offsets = f".input_offset = {-layer.inputs[0].zero_point}, .output_offset = {layer.output.zero_point}"
    if layer.kind == "FULLY_CONNECTED":
        return f"{offsets}, {activation}"
    given, window = layer.options, layer.window
    assert window is not None
    spread = {side: given.get(f"dilation_{side}", 1) for side in "wh"}
    before = {side: padding(size or 1, extent, given[f"stride_{side}"], spread[side], given["is_valid"])
              for side, size, extent in zip("hw", layer.inputs[0].shape[1:3], window)}
    tiles = (f".stride = {{{given['stride_w']}, {given['stride_h']}}}, .padding = {{{before['w']}, {before['h']}}}, "
             f"{activation}")
    if layer.kind == "AVERAGE_POOL_2D":
        return tiles
    multiplied = ".ch_mult = 1, " if layer.kind == "DEPTHWISE_CONV_2D" else ""
    return f"{offsets}, {multiplied}.dilation = {{{spread['w']}, {spread['h']}}}, {tiles}"


def pooled(number: int, layer: Layer) -> Iterable[str]:
    x, y = layer.inputs[0], layer.output
    yield f"const cmsis_nn_pool_params params = {{{fields(layer)}}};"
    yield dims("x_dims", x.shape)
    yield dims("w_dims", (1, layer.options["window_h"], layer.options["window_w"], 1))
    yield dims("y_dims", y.shape)
    yield f"const cmsis_nn_context context = {{scratch, arm_avgpool_s8_get_buffer_size({y.shape[2]}, {x.shape[3]})}};"
    yield "if (context.size > (int32_t)sizeof scratch) return 5;"
    yield f"if (COUNTED(arm_avgpool_s8(&context, &params, &x_dims, x{number}, &w_dims, &y_dims, y{number})) != 0) return 6;"


def added(number: int, layer: Layer) -> str:
    (a, b), found = (-t.zero_point for t in layer.inputs), quantization.addition(layer)
    low, high = quantization.limits(layer)
    terms = f"{a}, {found['a'][0]}, {found['a'][1]}, {b}, {found['b'][0]}, {found['b'][1]}, {quantization.ADD_SHIFT}"
    result = f"{layer.output.zero_point}, {found['sum'][0]}, {found['sum'][1]}, {low}, {high}, {layer.expected.size}"
    return f"if (COUNTED(arm_elementwise_add_s8(x{number}, z{number}, {terms}, y{number}, {result})) != 0) return 6;"


def softmax(number: int, layer: Layer) -> str:
    fixed, shift, least = quantization.softmax(layer)
    rows, size = layer.expected.size // layer.expected.shape[-1], layer.expected.shape[-1]
    return f"(void)COUNTED((arm_softmax_s8(x{number}, {rows}, {size}, {fixed}, {shift}, {least}, y{number}), 0));"
