"""Graphs of one operation, written on one line, as MLIR text.

    conv2d 1x5x5x2xi8 3x3x3x2xi8 3xi32 1xi8=3 1xi8=0 -> 1x5x5x3xi32 | pad = array<i64: 1, 1, 1, 1>, ...
    reshape 2x3xi8 [3,2] -> 3x2xi8

Operands are inputs of a type, constants of a type (`=`) or shapes (`[...]`); behind the arrow are the results' types,
behind the bar the attributes. The operation stands on line `LINE`.
"""
from __future__ import annotations

from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

LINE = 3


def text(line: str) -> str:
    """The MLIR text of a graph; constants on line 2."""
    head, _, attributes = line.partition(" | ")
    left, _, right = head.partition("->")
    name, *operands = left.split()
    inputs, constants, types = [], [], []
    for number, operand in enumerate(operands):
        kind, _, value = operand.partition("=")
        if kind.startswith("["):
            numbers = kind.count(",") + (kind != "[]")
            type = f"!tosa.shape<{numbers}>"
            constants.append(f'%x{number} = "tosa.const_shape"() <{{values = dense<{kind}> : tensor<{numbers}xindex>}}> '
                             f": () -> {type}")
        elif value:
            type = f"tensor<{kind}>"
            constants.append(f'%x{number} = "tosa.const"() <{{values = dense<{value}> : {type}}}> : () -> {type}')
        else:
            type = spelled(kind)
            inputs.append(f"%x{number}: {type}")
        types.append(type)
    results = [spelled(r) for r in right.split()]
    names, given = ", ".join(f"%r{i}" for i in range(len(results))), ", ".join(f"%x{i}" for i in range(len(types)))
    operation = (f'{names + " = " if results else ""}"tosa.{name}"({given}) <{{{attributes}}}> : ({", ".join(types)}) -> '
                 f"({', '.join(results)})")
    end = f"return {names} : {', '.join(results)}" if results else "return"
    return (f"func.func @f({', '.join(inputs)}) -> ({', '.join(results)}) {{\n{' '.join(constants)}\n{operation}\n{end}\n}}")


def spelled(type: str) -> str:
    """A type as MLIR spells it: `shape<2>` is a shape, anything else a tensor."""
    return f"!tosa.{type}" if type.startswith("shape") else f"tensor<{type}>"


def verified(line: str) -> Module:
    """The module of a graph that `verify` takes."""
    module = read_module(text(line))
    verify(module)
    return module


def problem_of(line: str) -> Problem | None:
    """What is wrong with a graph; None where nothing is."""
    try:
        verified(line)
    except Problem as problem:
        return problem
    return None


def assert_refused(line: str, words: str) -> None:
    """The problem is the operation's: it names the operator, says these words, and is no lack of tosaic's."""
    problem = problem_of(line)
    assert problem is not None, f"this is taken: {line}"
    assert words in problem.message, f"{problem.message!r} says nothing of {words!r}: {line}"
    assert f"tosa.{line.split()[0]}" in problem.message
    assert not problem.unsupported
    assert problem.position is not None and problem.position.line == LINE


def changed(line: str, old: str, new: str) -> str:
    """The line with one part changed, which must be there just once."""
    assert line.count(old) == 1, f"{old!r} is {line.count(old)} times in {line!r}"
    return line.replace(old, new)
