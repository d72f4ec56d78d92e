"""Functions of the loop IR for tests, built with the builder as a schedule does it."""
from __future__ import annotations

from collections.abc import Sequence

from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import Buffer, Load
from tosaic.lowering.kernels.kernel import Compute, Kernel, Step
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import INDEX, Function, Literal, Operand, Type
from tosaic.lowering.loops.program import Program

F32 = Type("float32")


def argument(name: str = "x", *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, dtype, shape, "argument")


def result(name: str = "y", *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, dtype, shape, "result")


def temporary(name: str = "t", *shape: int, dtype: str = "float32") -> Buffer:
    return Buffer(name, dtype, shape, "temporary")


def unary(out: Buffer, x: Buffer, op: str = "abs", by_rows: bool = False) -> Function:
    """out[i] = op(x[i])."""
    b, i = Builder(out.name, by_rows), Axis("i", out.size)
    low, high = b.rows or (None, None)
    b.loop(i, lambda: b.store(out, Affine.of(i), b.op(op, b.load(x, Affine.of(i)))), low=low, high=high)
    return b.finish()


def blurred(x: Buffer, y: Buffer, count: int, first: int = -1) -> Function:
    """y[i] = x[i - 1] + x[i] + x[i + 1], where these exist: the inner loop's bounds depend on the outer index."""
    b, i, k = Builder("blurred"), Axis("i", count), Axis("k", 3)

    def outer() -> None:
        at = b.index(Affine.of(i))
        low = b.op("max", Literal(0, INDEX), b.op("sub", Literal(-first, INDEX), at))
        high = b.op("min", Literal(3, INDEX), b.op("sub", Literal(count - first, INDEX), at))
        (total,) = b.loop(k, inner, [Literal(0.0, F32)], low, high)
        b.store(y, Affine.of(i), total)

    def inner(total: Operand) -> Sequence[Operand]:
        return [b.op("add", total, b.load(x, Affine.of(i) + Affine.of(k) + first))]

    b.loop(i, outer)
    return b.finish()


def guarded(x: Buffer, y: Buffer, count: int, where: Range) -> Function:
    """y[i] = x[where's index] for each i where the condition holds."""
    b = Builder("guarded")
    (term, _), = where.index.terms
    assert isinstance(term, Axis)

    def body() -> None:
        b.store(y, Affine.of(term), Literal(0.0, F32))
        b.when(b.holds([where]), lambda: b.store(y, Affine.of(term), b.load(x, where.index)), likely=True)

    b.loop(term, body)
    return b.finish()


def everything() -> Function:
    """A function with each kind of statement."""
    x, y, m = argument("x", 40), result("y", 40), argument("m", 40, dtype="bool")
    s, n = Buffer("s", "float32", (8,), "scratch"), argument("n", 4, dtype="int64")
    b, i = Builder("everything", by_rows=True), Axis("i", 40)
    b.scratch(s)
    assert b.rows is not None

    def body(total: Operand, other: Operand) -> Sequence[Operand]:
        mask = b.load(m, Affine.of(0), 4)
        v = b.load(x, Affine.of(2), 4, active=3)
        lanes = b.op("lanes", b.index(Affine.of(i)), type=Type("int64", 4))
        w = b.load(x, Affine.of(i), 4, mask=b.op("lt", lanes, Literal(40, lanes.type)))
        at = b.op("max", b.load(n, Affine(), 4), Literal(0, lanes.type))
        at = b.op("min", at, Literal(39, lanes.type))
        g = b.gather(x, at, mask=mask)
        b.store(s, Affine.of(4), b.op("select", mask, g, b.op("add", v, w)), active=2)
        b.store(s, Affine(), b.shuffle(g, w, (0, 7, 3, 4)), streaming=True)
        b.when(b.op("any_false", mask, type=Type("bool")), lambda: b.store(s, Affine.of(4), total), likely=False)
        b.when(b.op("any_false", mask, type=Type("bool")), lambda: None)
        b.store(y, Affine.of(i), b.op("fma", total, Literal(-0.5, F32), b.load(s, Affine.of(4))))
        return [b.op("add", total, Literal(float("inf"), F32)), other]

    b.loop(i, body, [Literal(1e-30, F32), Literal(7, Type("uint8", 2))], *b.rows)
    return b.finish()


def program(functions: Sequence[Function], inputs: Sequence[Buffer], outputs: Sequence[Buffer],
            steps: Sequence[Step] | None = None) -> Program:
    """Functions that run one after the other; each writes the last of its params."""
    kernels = []
    for f in functions:
        out = f.params[-1]
        axes = tuple(Axis("i", n) for n in out.shape)
        kernels.append(Kernel(out, axes, Load(out, tuple(map(Affine.of, axes))), f"test.{f.name}"))
    return Program("main", tuple(inputs), tuple(outputs), tuple(kernels), tuple(functions),
                   tuple(steps if steps is not None else map(Compute, range(len(functions)))))
