"""A check that a branch makes of its own condition comes before the branch; writes move behind checks."""
from __future__ import annotations

import pytest
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.rewrite.lift_checks import lift_checks
from tosaic.lowering.rewrite.postpone_writes import postpone_writes
from tosaic.lowering.text.reader import read_module

CHECK = '"tosaic.assert"({}) <{{message = "m"}}> : (tensor<i1>) -> ()\n'
NAMES = {"tosaic.assert": "check", "tosa.variable_write": "write", "tosa.variable_read": "read", "tosa.cond_if": "if"}


def names(module: Module) -> list[str]:
    return [NAMES.get(o.op.name, o.op.name) for o in module.functions[0].body.walk()]


def branch(then: str = "", otherwise: str = "", before: str = "") -> Module:
    module = read_module(f"""tosa.variable @v = dense<0> : tensor<2xi32>
func.func @f(%c: tensor<i1>, %d: tensor<i1>, %x: tensor<2xi32>) {{
  {before}
  "tosa.cond_if"(%c, %c) ({{
  ^bb0(%a: tensor<i1>):
    {then}
    "tosa.yield"() : () -> ()
  }}, {{
  ^bb0(%b: tensor<i1>):
    {otherwise}
    "tosa.yield"() : () -> ()
  }}) : (tensor<i1>, tensor<i1>) -> ()
  return
}}""")
    verify(module)
    return module


WRITE = "tosa.variable_write @v, %x : tensor<2xi32>\n"


@pytest.mark.parametrize("condition", ["%c", "%b"])
def test_a_check_of_the_branchs_condition_is_lifted_and_the_branch_is_gone(condition: str) -> None:
    lifted = lift_checks(branch(otherwise=CHECK.format(condition)))
    verify(lifted)
    assert names(lifted) == ["check", "if"]
    assert lifted.functions[0].body.operations[0].operands == lifted.functions[0].arguments[:1]
    assert names(rewritten(branch(otherwise=CHECK.format(condition)))) == ["check"]


@pytest.mark.parametrize(("then", "otherwise"), [
    ("", CHECK.format("%d")), (CHECK.format("%c"), ""), ("", WRITE + CHECK.format("%c")),
    ("", CHECK.format("%d") + CHECK.format("%c"))], ids=["another condition", "other side", "behind a write", "behind a check"])
def test_any_other_check_stays(then: str, otherwise: str) -> None:
    module = branch(then, otherwise)
    assert lift_checks(module) is module


def test_a_write_moves_behind_checks_and_stays_before_a_read() -> None:
    late = postpone_writes(lift_checks(branch(otherwise=CHECK.format("%c"), before=WRITE)))
    verify(late)
    assert names(late) == ["check", "write", "if"]
    read = "%r = tosa.variable_read @v : tensor<2xi32>\n"
    assert names(postpone_writes(branch(before=WRITE + read + CHECK.format("%c")))) == ["write", "read", "check", "if"]
