"""Graphs with variables in branches and loops, call after call, in Arm's reference model: through our writer of .tosa files and
through Arm's serialiser, the results and the variables are those of compiled code and of the interpreter."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.flatbuffer.reader import read_module as read_file
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables
from tosaic.runtime.variables import Context

from ..fuzz.generators.unwritten import (
    CONDITIONS,
    VARIABLES,
    Body,
    If,
    Statement,
    While,
    Write,
    generated,
    text_of,
)
from . import environment
from .arm_model import Model, serialised, tools

CALLS = 3

REGION = """
  tosa.variable @v = dense<[1.0, 2.0]> : tensor<2xf32>
  func.func @main(%x: tensor<2xf32>, %c: tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>) {
    %t = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<2xf32>) -> tensor<2xf32> {
    ^bb0(%a: tensor<2xf32>):
      %r = tosa.variable_read @v : tensor<2xf32>
      %s = tosa.add %r, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      tosa.variable_write @v, %s : tensor<2xf32>
      tosa.yield %s : tensor<2xf32>
    } else {
    ^bb0(%a: tensor<2xf32>):
      tosa.yield %a : tensor<2xf32>
    }
    %f = tosa.variable_read @v : tensor<2xf32>
    return %t, %f : tensor<2xf32>, tensor<2xf32>
  }
"""


@pytest.fixture(autouse=True)
def needs_tools() -> None:
    try:
        tools()
    except environment.Unavailable as reason:
        pytest.skip(str(reason))


def test_a_branch_of_the_file_writes_the_variable_that_is_read_behind_it(tmp_path: Path) -> None:
    model = Model(write_module(read_module(REGION)), tmp_path / "model")
    found = model.call([np.array([10, 20], np.float32), np.array(True)])
    assert found is not None and [r.tolist() for r in found] == [[11, 22], [11, 22]]


def one_write(body: Body) -> Body:
    """The body with one write of each variable in each block, the first one: the model takes no second."""
    return replace(body, statements=tuple(writing_once(body.statements)))


def writing_once(statements: Iterable[Statement]) -> Iterator[Statement]:
    seen: set[str] = set()
    for statement in statements:
        match statement:
            case Write(variable) if variable in seen:
                continue
            case Write(variable):
                seen.add(variable)
            case If():
                statement = replace(statement, then=one_write(statement.then), otherwise=one_write(statement.otherwise))
            case While():
                statement = replace(statement, test=tuple(writing_once(statement.test)), body=one_write(statement.body))
        yield statement


def check(seed: int, folder: Path) -> Counter[str]:
    """A random program, with a first value for each variable: results and variables of some calls in all five ways; how many
    calls of the model were compared, by serialiser."""
    rng, program, compared = random.Random(seed), generated(seed, assertions=False), Counter[str]()
    program = replace(program, initials={name: rng.randint(-9, 9) for name in program.initials}, body=one_write(program.body))
    module = read_module(text_of(program, shows_variables=True))
    ours = write_module(module)
    isolated = read_file(ours)  # regions that take all that they use, which tosa-opt wants
    models = [Model(ours, folder / "ours"), Model(serialised(print_module(isolated), folder), folder / "arms")]
    engines = [Interpreter(module, "main", InterpreterVariables()),
               *(Traced(m, "main").lower().compile(Context("arm")) for m in (module, isolated))]
    variables: dict[str, Array] | None = None
    for number in range(CALLS):
        inputs = [np.array(rng.randint(-99, 99), np.int32), *(np.array(rng.random() < 0.5) for _ in CONDITIONS)]
        right = [int(r) for r in engines[0](*inputs)]
        for engine in engines[1:]:
            assert [int(r) for r in engine(*inputs)] == right, (seed, number)
        for model in models:
            if (found := model.call(inputs, variables)) is not None:
                assert [int(r) for r in found] == right, (seed, number, model.folder.name)
                compared[model.folder.name] += 1
        variables = {name: np.array(value, np.int32) for name, value in zip(VARIABLES, right[1:], strict=True)}
    return compared


def check_all(seeds: range, folder: Path) -> None:
    """Nine of ten calls are compared; in the others the model crashes."""
    compared = Counter[str]()
    for seed in seeds:
        (folder / str(seed)).mkdir()
        compared += check(seed, folder / str(seed))
    print(f"{compared['ours']} and {compared['arms']} of {CALLS * len(seeds)} calls compared")
    assert min(compared["ours"], compared["arms"]) >= 0.9 * CALLS * len(seeds), compared


def test_chained_calls_are_equal_in_arms_model(tmp_path: Path) -> None:
    check_all(range(20), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("group", range(10))
def test_three_hundred_more_graphs(group: int, tmp_path: Path) -> None:
    check_all(range(1000 + 30 * group, 1030 + 30 * group), tmp_path)
