"""ASSERT: its rules, its text, and that nothing drops it."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.dialects.tosaic.assertion import Assert
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.prune import prune
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter

HEAD = "func.func @f(%c: tensor<1x1xi1>, %x: tensor<2xi1>, %n: tensor<i32>) {\n"
GENERIC = HEAD + '  "tosaic.assert"(%c) <{message = "a \\22quoted\\22 \\5C message"}> : (tensor<1x1xi1>) -> ()\n  return\n}\n'


@pytest.mark.parametrize("text", [GENERIC, HEAD + 'tosaic.assert %c {message = "a \\22quoted\\22 \\5C message"} : '
                                                  "(tensor<1x1xi1>) -> ()\nreturn\n}"], ids=["generic", "custom"])
def test_it_is_read_and_prints_as_it_is_read(text: str) -> None:
    module = read_module(text)
    verify(module)
    op = module.functions[0].body.operations[0].op
    assert isinstance(op, Assert) and op.message == 'a "quoted" \\ message'
    assert '"tosaic.assert"(%c) <{message = "a \\22quoted\\22 \\5C message"}> : (tensor<1x1xi1>) -> ()' in print_module(module)
    assert print_module(read_module(print_module(module))) == print_module(module)


@pytest.mark.parametrize(("operation", "message"), [
    ('"tosaic.assert"(%x) <{message = "m"}> : (tensor<2xi1>) -> ()', "must have one element, it is tensor<2xi1>"),
    ('"tosaic.assert"(%n) <{message = "m"}> : (tensor<i32>) -> ()', "must be a tensor of i1, not tensor<i32>"),
    ('"tosaic.assert"() <{message = "m"}> : () -> ()', "tosaic.assert does not take 0 operands"),
    ('"tosaic.assert"(%c, %c) <{message = "m"}> : (tensor<1x1xi1>, tensor<1x1xi1>) -> ()', "does not take 2 operands"),
    ('"tosaic.assert"(%c) : (tensor<1x1xi1>) -> ()', "tosaic.assert needs the attribute message"),
    ('"tosaic.assert"(%c) <{message = 3 : i32}> : (tensor<1x1xi1>) -> ()', "message of tosaic.assert must be a string"),
    ('%r = "tosaic.assert"(%c) <{message = "m"}> : (tensor<1x1xi1>) -> tensor<i1>', "has 0 results, 1 are declared")])
def test_one_that_makes_no_sense_is_refused_at_its_place(operation: str, message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        verify(read_module(f"{HEAD}  {operation}\n  return\n}}"))
    assert caught.value.position is not None and caught.value.position.line == 2


def test_it_is_kept_though_nothing_reads_it_in_branches_too() -> None:
    text = HEAD + """  "tosa.cond_if"(%c) ({
    "tosaic.assert"(%c) <{message = "m"}> : (tensor<1x1xi1>) -> ()
    "tosa.yield"() : () -> ()
  }, {
    "tosa.yield"() : () -> ()
  }) : (tensor<1x1xi1>) -> ()
  return
}
"""
    module = prune(read_module(text))
    assert [o.op.name for o in module.functions[0].body.walk()] == ["tosa.cond_if", "tosaic.assert"]


def test_the_interpreter_ends_with_the_message_at_its_place() -> None:
    run = Interpreter(read_module(GENERIC, "m.mlir"), "f")
    others = np.zeros(2, bool), np.zeros((), np.int32)
    assert run(np.ones((1, 1), bool), *others) == ()
    with pytest.raises(Problem) as caught:
        run(np.zeros((1, 1), bool), *others)
    assert str(caught.value).startswith('m.mlir:2:3: error[check]: a "quoted" \\ message\n')
