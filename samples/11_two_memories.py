"""Sample 11: a detector that is larger than the fast memory, planned into SRAM and PSRAM.

The network is like the one-shot detectors that run on cameras: inverted residual blocks down to 1/32 of a picture of 320 x
320 pixels, a pyramid of three levels up and down again, and two heads on each, all in int8. Its weights are drawn by lot: what
a run moves does not depend on them. The table says how many bytes a run moves through each memory: with everything in PSRAM,
with each buffer in the first memory that has room, and as the default planner has it, which lets least through PSRAM.

    python samples/11_two_memories.py [FOLDER]
"""
from __future__ import annotations

import pathlib
import sys
import tempfile

import numpy as np
import tosaic

SIZE, SRAM, PSRAM = 320, 128 << 10, 8 << 20
Value = tuple[str, int, int, int]
"""A picture's name in the text, its height, width and channels."""


class Network:
    """The text of a network of TOSA operators, as it grows."""

    def __init__(self) -> None:
        self.draw, self.lines = np.random.default_rng(11), list[str]()

    def add(self, form: str, **words: object) -> str:
        """One operator more; the name of its result."""
        self.lines.append(f"  %{len(self.lines)} = " + form.format(**words))
        return f"%{len(self.lines) - 1}"

    def constant(self, data: np.ndarray, dtype: str) -> tuple[str, str]:
        """Its name and type."""
        type = f"tensor<{'x'.join(map(str, data.shape))}x{dtype}>"
        values = str(data.flat[0]) if data.size == 1 else f'"0x{data.tobytes().hex()}"'
        return self.add('"tosa.const"() <{{values = dense<{v}> : {t}}}> : () -> {t}', v=values, t=type), type

    def number(self, value: int, dtype: str) -> tuple[str, str]:
        return self.constant(np.array([value], {"i8": np.int8, "i32": np.int32}[dtype]), dtype)

    def shape(self, *values: int) -> str:
        return self.add("tosa.const_shape {{values = dense<{v}> : tensor<{n}xindex>}} : () -> !tosa.shape<{n}>",
                        v=list(values), n=len(values))

    def conv(self, x: Value, out: int, size: int = 1, stride: int = 1, depthwise: bool = False) -> Value:
        """A convolution, rescaled to int8."""
        name, h, w, c = x
        shape = (size, size, c, 1) if depthwise else (out, size, size, c)
        weights, wtype = self.constant(self.draw.integers(-64, 64, shape, np.int8), "i8")
        bias, btype = self.constant(self.draw.integers(-500, 500, out, np.int32), "i32")
        zero, ztype = self.number(0, "i8")
        to, pad = (h // stride, w // stride), (size - stride) // 2
        total = self.add(
            "tosa.{op} {x}, {k}, {b}, {z}, {z} {{acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: {p}>, stride = "
            "array<i64: {s}, {s}>}} : ({xt}, {kt}, {bt}, {zt}, {zt}) -> {t}", op="depthwise_conv2d" if depthwise else "conv2d",
            x=name, k=weights, b=bias, z=zero, p=", ".join(map(str, (pad, size - stride - pad) * 2)),
            s=stride, xt=typed(x), kt=wtype, bt=btype, zt=ztype, t=f"tensor<1x{to[0]}x{to[1]}x{out}xi32>")
        terms = size * size * (1 if depthwise else c)
        return self.rescaled((total, *to, out), 76 * terms ** 0.5)

    def rescaled(self, x: Value, divisor: float) -> Value:
        """int32 divided by a number, as int8."""
        shift = 30 + int(np.floor(np.log2(divisor)))
        (factor, ft), (bits, bt) = self.number(int(2 ** shift / divisor), "i32"), self.number(shift, "i8")
        (zero, zt), (none, nt) = self.number(0, "i32"), self.number(0, "i8")
        y = self.add("tosa.rescale {x}, {f}, {b}, {z}, {n} {{input_unsigned = false, output_unsigned = false, "
                     "per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}} : "
                     "({xt}, {ft}, {bt}, {zt}, {nt}) -> {t}", x=x[0], f=factor, b=bits, z=zero, n=none,
                     xt=typed(x, "i32"), ft=ft, bt=bt, zt=zt, nt=nt, t=typed(x))
        return (y, *x[1:])

    def relu(self, x: Value) -> Value:
        return (self.add("tosa.clamp {x} {{min_val = 0 : i8, max_val = 127 : i8}} : ({t}) -> {t}", x=x[0], t=typed(x)), *x[1:])

    def sum(self, x: Value, y: Value) -> Value:
        wide = [self.add("tosa.cast {x} : ({t}) -> {w}", x=v[0], t=typed(v), w=typed(v, "i32")) for v in (x, y)]
        total = self.add("tosa.add {a}, {b} : ({t}, {t}) -> {t}", a=wide[0], b=wide[1], t=typed(x, "i32"))
        return self.rescaled((total, *x[1:]), 1.5)

    def joined(self, x: Value, y: Value) -> Value:
        found = "", x[1], x[2], x[3] + y[3]
        return (self.add("tosa.concat {x}, {y} {{axis = 3 : i32}} : ({a}, {b}) -> {t}", x=x[0], y=y[0], a=typed(x),
                         b=typed(y), t=typed(found)), *found[1:])

    def doubled(self, x: Value) -> Value:
        """Each pixel four times."""
        found = "", 2 * x[1], 2 * x[2], x[3]
        scale, offset, border = self.shape(2, 1, 2, 1), self.shape(0, 0), self.shape(1, 1)
        return (self.add("tosa.resize {x}, {s}, {o}, {b} {{mode = NEAREST_NEIGHBOR}} : ({xt}, !tosa.shape<4>, !tosa.shape<2>, "
                         "!tosa.shape<2>) -> {t}", x=x[0], s=scale, o=offset, b=border, xt=typed(x), t=typed(found)),
                *found[1:])

    def block(self, x: Value, out: int, stride: int = 1) -> Value:
        """An inverted residual block: four times the channels, a depthwise convolution, and back."""
        wide = 4 * x[3]
        y = self.relu(self.conv(self.relu(self.conv(x, wide)), wide, 3, stride, depthwise=True))
        y = self.conv(y, out)
        return self.sum(x, y) if y[1:] == x[1:] else y

    def separable(self, x: Value, out: int) -> Value:
        return self.relu(self.conv(self.relu(self.conv(x, x[3], 3, depthwise=True)), out))


def typed(x: Value, dtype: str = "i8") -> str:
    return f"tensor<1x{x[1]}x{x[2]}x{x[3]}x{dtype}>"


def detector(size: int = SIZE) -> str:
    """The text of the model: boxes and classes of three levels."""
    net, picture = Network(), ("%picture", size, size, 3)
    x = net.block(net.relu(net.conv(picture, 16, 3, 2)), 24, 2)
    x = net.block(net.block(x, 24), 48, 2)
    eighth = x = net.block(net.block(x, 48), 48)
    x = net.block(net.block(x, 96, 2), 96)
    sixteenth = x = net.block(x, 96)
    x = net.block(net.block(x, 160, 2), 160)
    low = net.relu(net.conv(x, 96))
    middle = net.separable(net.joined(net.doubled(low), sixteenth), 96)
    levels = [net.separable(net.joined(net.doubled(net.relu(net.conv(middle, 48))), eighth), 64)]
    levels += [net.separable(net.joined(net.relu(net.conv(levels[0], 64, 3, 2)), middle), 96)]
    levels += [net.separable(net.joined(net.relu(net.conv(levels[1], 96, 3, 2)), low), 128)]
    outputs = [net.conv(net.separable(level, 64), channels) for level in levels for channels in (4, 8)]
    types = ", ".join(map(typed, outputs))
    names = ", ".join(x[0] for x in outputs)
    body = "\n".join(net.lines)
    return f"func.func @main(%picture: {typed(picture)}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n"


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    entry = tosaic.load(detector()).main
    both, slow = (tosaic.Pool("sram", SRAM), tosaic.Pool("psram", PSRAM)), (tosaic.Pool("psram", PSRAM),)
    ways = {"one pool": tosaic.Memory(pools=slow), "first fit": tosaic.Memory("greedy_by_size", pools=both),
            "least moved": tosaic.Memory(pools=both)}
    print(f"{'plan':12} {'sram bytes':>12} {'psram bytes':>12} {'through sram':>14} {'through psram':>14}")
    for name, memory in ways.items():
        lowered = entry.lower(tosaic.CompileOptions(tosaic.target("cortex-m7"), memory=memory))
        pools = {pool.name: pool for pool in lowered.report().pools}
        figures = [(pools[n].nbytes, pools[n].moved) if n in pools else (0, 0) for n in ("sram", "psram")]
        print(f"{name:12} {figures[0][0]:12,} {figures[1][0]:12,} {figures[0][1]:14,} {figures[1][1]:14,}")
    for path in lowered.save(folder, "detector").paths:
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
