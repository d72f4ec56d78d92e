"""Random programs of operations with injected errors, what they mean, and a way to run them op by op."""
from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from tosaic import Problem, TensorHandle

OPERATIONS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
IDENTITIES = ("async.noop", "async.noop_no_md")
SHAPE = (3,)


@dataclass(frozen=True)
class Step:
    op: str
    operands: tuple[int, ...]
    is_last_use: tuple[bool, ...]


@dataclass(frozen=True)
class Program:
    """`sources` are arrays, or the message of an error; values are numbered, sources first."""
    sources: tuple[np.ndarray | str, ...]
    steps: tuple[Step, ...]


def program(seed: int, steps: int = 15) -> Program:
    """A program that follows from its seed."""
    r = random.Random(seed)
    sources = tuple(f"error {n}" if r.random() < 0.2 else np.array([r.randrange(-9, 9) for _ in range(SHAPE[0])], np.int32)
                    for n in range(4))
    chosen = []
    for n in range(steps):
        op = r.choice((*OPERATIONS, *IDENTITIES)) if r.random() < 0.95 else "test.fail"
        chosen.append((op, tuple(r.randrange(4 + n) for _ in range(2 if op in OPERATIONS else 1))))
    last = {value: n for n, (_, operands) in enumerate(chosen) for value in operands}
    return Program(sources, tuple(
        Step(op, operands, tuple(last[v] == n and operands.count(v) == 1 and r.random() < 0.8 for v in operands))
        for n, (op, operands) in enumerate(chosen)))


def meaning(p: Program) -> list[np.ndarray | str]:
    """What each value is: an array, or the message of the error that reaches it."""
    values: list[np.ndarray | str] = list(p.sources)
    for step in p.steps:
        given = [values[n] for n in step.operands]
        error = next((v for v in given if isinstance(v, str)), None)
        if error is not None:
            values.append(error)
        elif step.op == "test.fail":
            values.append(f"test.fail: step {given[0].tolist()}")
        else:
            values.append(OPERATIONS[step.op](*given) if step.op in OPERATIONS else given[0])
    return values


def register(rt) -> None:
    """The operation that fails."""
    def fail(call):
        raise Problem(f"step {call.arrays[0].tolist()}")

    rt.register("test.fail", fail, lambda inputs, _: inputs)


def settle(resolve, source) -> None:
    """Give a source its value."""
    if isinstance(source, str):
        resolve.fail(Problem(source))
    else:
        resolve.set(source)


def run(rt, p: Program, sources: list[TensorHandle], handler: str = "cpu") -> list[TensorHandle | None]:
    """Every value that nobody took over, as a handle."""
    values: list[TensorHandle | None] = list(sources)
    del sources
    for step in p.steps:
        arguments = []
        for n, is_last in zip(step.operands, step.is_last_use):
            arguments.append(values[n])
            if is_last:
                values[n] = None
        results: list[TensorHandle | None] = [None]
        rt.execute(step.op, handler, None, arguments, None, results)
        values.append(results[0])
    return values


def check(values: list[TensorHandle | None], wanted: list[np.ndarray | str], also: tuple[str, ...] = ()) -> None:
    """Each value is what it should be, or an error of a kind in `also`."""
    for number, (value, expected) in enumerate(zip(values, wanted)):
        if value is None:
            continue
        assert value.wait(60), f"value {number} never comes"
        if value.error is not None and value.error.kind in also:
            continue
        if isinstance(expected, str):
            assert value.error is not None and value.error.message == expected, number
        else:
            assert value.error is None and np.array_equal(value.get(), expected), number
