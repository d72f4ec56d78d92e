"""Random functions, native against interpreted: LLVM combines neighbouring operations, so each alone is not enough."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import COMPARISONS, Buffer
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import INDEX, Function, Literal, Operand, Type
from tosaic.lowering.loops.text import print_function
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.target.presets import host

from .harness import Native, differences, interpreted, named
from .test_emit_operations import FLOATS, INTEGERS, OPERATIONS, REDUCTIONS, family, values

Array = np.ndarray[Any, Any]
HALVES = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
DTYPES = ("float32", "float32", "int8", "int32", "int32", "bool", "uint8", "int16", "int64", "float64", "float16",
          "bfloat16")
ROWS, SIZE = 3, 70
pytestmark = pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")


class Maker:
    """Makes one function of random statements over vectors of one length."""

    def __init__(self, seed: int, lanes: int, name: str) -> None:
        self.random, self.lanes = random.Random(seed), lanes
        self.b, self.axis = Builder(name), Axis("i", ROWS)
        self.data: dict[Buffer, Array] = {}
        self.pool: list[Operand] = []
        self.stores = 0

    def make(self) -> Function:
        start = [self.load() for _ in range(3)]
        ends = self.b.loop(self.axis, self.body, start)
        for x in ends:
            self.store(x, Affine())
        return self.b.finish()

    def body(self, *carried: Operand) -> Sequence[Operand]:
        self.pool = [*carried, *(self.load() for _ in range(3))]
        for _ in range(12):
            self.pool.append(self.statement())
        if self.random.random() < 0.5:
            condition = self.b.op("any_false", self.mask(), type=Type("bool"))
            self.b.when(condition, lambda: self.store(self.any(), Affine.of(self.axis) * SIZE),
                        self.random.choice([None, True]))
        for x in self.random.sample(self.pool, 6):
            self.store(x, Affine.of(self.axis) * SIZE)
        return [self.converted(self.any(), c.type.dtype) for c in carried]

    # ---- values ------------------------------------------------------------------------------------------------------
    def any(self, kinds: Sequence[str] = ()) -> Operand:
        """A value of the pool, of one of the dtypes if there is one, else cast to one."""
        fitting = [x for x in self.pool if not kinds or x.type.dtype in kinds]
        if fitting:
            return self.random.choice(fitting[-6:])
        return self.converted(self.any(), self.random.choice(kinds))

    def mask(self) -> Operand:
        return self.any(("bool",))

    def converted(self, x: Operand, dtype: str) -> Operand:
        """A cast; a float that becomes an integer is brought into range before."""
        b, type = self.b, x.type
        if type.dtype == dtype:
            return x
        if dtype in INTEGERS and type.dtype in HALVES:
            return self.converted(self.converted(x, "float32"), dtype)
        if dtype in INTEGERS and type.dtype in FLOATS:
            x = b.op("select", b.op("eq", x, x), x, Literal(0.0, type))
            x = b.op("min", b.op("max", x, Literal(0.0 if dtype[0] == "u" else -100.0, type)), Literal(100.0, type))
        return b.op("cast", x, type=Type(dtype, type.lanes))

    def load(self) -> Operand:
        """A load of some lanes, all of them, or through indices."""
        r, dtype = self.random, self.random.choice(DTYPES)
        buffer = Buffer(f"x{len(self.data)}", dtype, (ROWS * SIZE + 3 * self.lanes,), "argument")
        numbers = values("float32" if dtype in HALVES else dtype, 4000, r.randrange(2))
        with np.errstate(over="ignore"):
            self.data[buffer] = numbers[r.randrange(500):][:buffer.size].astype(dtype)
        at = Affine.of(r.randrange(self.lanes + 1)) + (Affine.of(self.axis) * SIZE if self.pool else 0)
        active = r.randrange(1, self.lanes + 1) if r.random() < 0.4 else self.lanes
        mask = self.mask() if self.pool and r.random() < 0.3 else None
        if self.pool and r.random() < 0.2:
            indices = self.converted(self.any(INTEGERS), "int64")
            indices = self.b.op("and", indices, Literal(63, indices.type))
            return self.b.gather(buffer, indices, active, mask)
        return self.b.load(buffer, at, self.lanes, active, mask)

    def store(self, x: Operand, at: Affine) -> None:
        """Into a buffer of its own; some of the lanes."""
        self.stores += 1
        out = Buffer(f"y{self.stores}", x.type.dtype, ((ROWS - 1) * SIZE + self.lanes,), "result")
        active = self.random.randrange(1, x.type.lanes + 1) if self.random.random() < 0.5 else x.type.lanes
        self.b.store(out, at, x, active, streaming=self.random.random() < 0.2)

    def statement(self) -> Operand:
        match self.random.randrange(10):
            case 0:
                return self.load()
            case 1 | 2:
                return self.converted(self.any(), self.random.choice((*DTYPES, *HALVES)))
            case 3:
                x = self.any()
                same = self.any((x.type.dtype,))
                return self.b.op("select", self.mask(), x, same)
            case 4:
                x = self.any()
                numbers = tuple(self.random.randrange(2 * self.lanes) for _ in range(self.lanes))
                return self.b.shuffle(x, self.any((x.type.dtype,)), numbers)
            case 5:
                return self.reduction()
        return self.operation()

    def reduction(self) -> Operand:
        x = self.any((*FLOATS, *INTEGERS, "bool"))
        op = self.random.choice(REDUCTIONS[family(x.type.dtype)])
        one = self.b.op(f"reduce_{op}", x, type=Type(x.type.dtype))
        return self.b.splat(one, self.lanes)

    def operation(self) -> Operand:
        x = self.any((*FLOATS, *INTEGERS, "bool"))
        dtype = x.type.dtype
        op, operands = self.random.choice(list(OPERATIONS[family(dtype)].items()))
        args = [x, *(self.any((dtype,)) for _ in range(operands - 1))]
        if op in ("shl", "ashr", "lshr"):
            args[1] = self.b.op("and", args[1], Literal(8 * ITEM_SIZES[dtype] - 1, x.type))
        elif operands == 2 and self.random.random() < 0.3:
            args[1] = Literal(self.random.choice([0, 1, 2, 7, 100]) if dtype != "bool" else 1, x.type)
        result = "bool" if op in COMPARISONS else dtype
        return self.b.op(op, *args, type=Type(result, x.type.lanes))


NAMES = ("host", "x86-64", "x86-64-v3", "32 bits")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8, 16, 64])
def test_random_functions_agree_with_the_interpreter(lanes: int, name: str) -> None:
    makers = [Maker(100 * lanes + i, lanes, f"f{i}") for i in range(NAMES.index(name) % 2, 12, 2)]
    functions = [m.make() for m in makers]
    with Native(functions, *named(name)) as native:
        for m, f in zip(makers, functions):
            verify(f)
            data = {b: m.data[b] for b in f.params if b in m.data}
            for shift in (0, 3):
                faults = differences(native.run(f, data, shift=shift), interpreted(f, data))
                assert not faults, "\n".join([*faults, print_function(f)])


def test_random_functions_have_every_operation() -> None:
    text = "\n".join(print_function(Maker(100 * lanes + i, lanes, "f").make()) for lanes in (4, 16) for i in range(40))
    for operations in OPERATIONS.values():
        for op in operations:
            assert f" {op} " in text
    assert Type("int64") == INDEX
