"""Calls, branches and loops of kernel programs, with numbers and with tensors that decide; errors on the way."""
from __future__ import annotations

import pytest

from .programs import CPU, dense, run, shown

HANDLES = "(!tfrt.chain, !corert.tensorhandle)"


def function(name: str, arguments: str, results: str, text: str) -> str:
    return f"func.func @{name}({arguments}) -> ({results}) {{\n{text}\n}}\n"


def results(text: str) -> list[str]:
    """What is printed, without the functions that are not run."""
    printed, errors = run(text)
    assert not errors
    return [line for line in printed if not line.startswith("--- ")]


PICK = "".join(function(name, "%c: !tfrt.chain, %x: !corert.tensorhandle, %y: !corert.tensorhandle", HANDLES[1:-1],
                        f"tfrt.return %c, {value} : !tfrt.chain, !corert.tensorhandle")
               for name, value in (("first", "%x"), ("second", "%y")))
ONE_TWO = dense("%a", "[2]", "[1 : i32]") + dense("%b", "[2]", "[2 : i32]")
COND = "%r:2 = corert.cond %p @first @second (%ch0, %a, %b)"
COND += " : (!corert.tensorhandle, !corert.tensorhandle) -> (!corert.tensorhandle)\n"


# Numbers decide

IF = function("pick", "%c: i1, %a: i32, %b: i32", "i32", """%r = tfrt.if %c, %a, %b : (i32, i32) -> (i32) {
  tfrt.return %a : i32
} else {
  tfrt.return %b : i32
}
tfrt.return %r : i32""")


@pytest.mark.parametrize(("condition", "expected"), [("1", "45"), ("false", "129")])
def test_if_runs_one_of_its_regions(condition: str, expected: str) -> None:
    text = function("f", "", "i32", f"""%a = tfrt.constant.i32 45
 %b = tfrt.constant.i32 129 %c = tfrt.constant.i1 {condition}
 %r = tfrt.call @pick(%c, %a, %b) : (i1, i32, i32) -> i32
 tfrt.return %r : i32""")
    assert results(IF + text) == [f"'f' returned {expected}"]


@pytest.mark.parametrize(("condition", "expected"), [("1", ["hello host executor!"]), ("0", [])])
def test_if_without_else_gives_nothing(condition: str, expected: list[str]) -> None:
    text = f"""func.func @f() {{ %c = tfrt.new.chain %p = tfrt.constant.i1 {condition}
 tfrt.if %p, %c : (!tfrt.chain) -> () {{ %d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain tfrt.return }}
 tfrt.return }}"""
    assert results(text) == expected


def test_cond_calls_one_of_two_functions() -> None:
    text = function("same", "%x: i32", "i32", "tfrt.return %x : i32")
    text += function("double", "%x: i32", "i32", "%y = tfrt.add.i32 %x, %x tfrt.return %y : i32")
    text += function("f", "", "i32, i32", """%a = tfrt.constant.i32 41 %t = tfrt.constant.i1 1 %n = tfrt.constant.i1 0
 %x = tfrt.cond %t @same @double (%a) : (i32) -> (i32)
 %y = tfrt.cond %n @same @double (%a) : (i32) -> (i32)
 tfrt.return %x, %y : i32, i32""")
    assert results(text) == ["'f' returned 41,82"]


def test_repeat_hands_what_it_returns_to_the_next_iteration() -> None:
    text = """func.func @f() { %n = tfrt.constant.i32 4 %c = tfrt.new.chain %v = tfrt.constant.i32 1
 %r:2 = tfrt.repeat.i32 %n, %c, %v : !tfrt.chain, i32 {
   %d = tfrt.print.i32 %v, %c
   %w = tfrt.add.i32 %v, %v
   tfrt.return %d, %w : !tfrt.chain, i32
 }
 tfrt.print.i32 %r#1, %r#0
 tfrt.return }"""
    assert results(text) == [f"int32 = {n}" for n in (1, 2, 4, 8, 16)]


@pytest.mark.parametrize("count", [0, -3])
def test_repeat_of_no_turns_gives_back_what_it_takes(count: int) -> None:
    text = f"""%n = tfrt.constant.i32 {count} %v = tfrt.constant.i32 7
 %r = tfrt.repeat.i32 %n, %v : i32 {{ %w = tfrt.add.i32 %v, %v tfrt.return %w : i32 }}
 tfrt.repeat.i32 %n {{ tfrt.return }}
 tfrt.return %r : i32"""
    assert results(function("f", "", "i32", text)) == ["'f' returned 7"]


def test_a_thousand_asynchronous_turns_need_no_deep_stack() -> None:
    text = """%n = tfrt.constant.i32 1000 %v = tfrt.constant.i32 42
 %r = tfrt.repeat.i32 %n, %v : i32 {
   %one = tfrt.constant.i32 1
   %w = "tfrt_test.async_add.i32"(%v, %one) : (i32, i32) -> i32
   tfrt.return %w : i32
 }
 tfrt.return %r : i32"""
    assert results(function("f", "", "i32", text)) == ["'f' returned 1042"]


def test_loops_and_branches_nest() -> None:
    text = """%n = tfrt.constant.i32 3 %v = tfrt.constant.i32 0
 %r = tfrt.repeat.i32 %n, %n, %v : i32, i32 {
   %s = tfrt.repeat.i32 %n, %v : i32 {
     %one = tfrt.constant.i32 1
     %w = tfrt.add.i32 %v, %one
     tfrt.return %w : i32
   }
   %big = tfrt.constant.i32 5
   %p = tfrt.lessequal.i32 %big, %s
   %t = tfrt.if %p, %s, %big : (i32, i32) -> i32 { tfrt.return %big : i32 } else { tfrt.return %s : i32 }
   tfrt.return %n, %t : i32, i32
 }"""
    text = text.replace("%r =", "%m, %r =") + "\n tfrt.return %r : i32"
    assert results(function("f", "", "i32", text)) == ["'f' returned 5"]


CASES = "".join(function(f"branch{n}", "%c: !tfrt.chain, %x: i32", "!tfrt.chain, i32",
                         f"%n = tfrt.constant.i32 {n + 2} %y = tfrt.add.i32 %x, %n tfrt.return %c, %y : !tfrt.chain, i32")
                for n in range(3))
CASE = """%i = tfrt.constant.i32 {0} %x = tfrt.constant.i32 40 %c = tfrt.new.chain
 %d, %r = tfrt.case %i [@branch0, @branch1, @branch2] (%c, %x) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
 tfrt.return %r : i32"""


@pytest.mark.parametrize(("index", "expected"), [(0, 42), (1, 43), (2, 44)])
def test_case_calls_the_function_of_its_index(index: int, expected: int) -> None:
    assert results(CASES + function("f", "", "i32", CASE.replace("{0}", str(index)))) == [f"'f' returned {expected}"]


@pytest.mark.parametrize("index", [-1, 3])
def test_case_with_an_index_outside_is_an_error(index: int) -> None:
    printed, errors = run(CASES + function("f", "", "i32", CASE.replace("{0}", str(index))))
    message = f"tfrt.case has 3 branches, there is no number {index}"
    assert printed[-1] == f"'f' returned <<error: {message}>>" and errors == [f"12: {message}"]


WHILE = function("step", "%c: !tfrt.chain, %n: i32", "!tfrt.chain, i32, i1", """%one = tfrt.constant.i32 1
 %five = tfrt.constant.i32 5
 %m = {0} %d = tfrt.print.i32 %m, %c %p = tfrt.lessequal.i32 %m, %five
 tfrt.return %d, %m, %p : !tfrt.chain, i32, i1""")


@pytest.mark.parametrize("add", ["tfrt.add.i32 %n, %one", '"tfrt_test.async_add.i32"(%n, %one) : (i32, i32) -> i32'])
def test_while_runs_until_its_last_result_is_false(add: str) -> None:
    text = WHILE.replace("{0}", add) + function("f", "", "i32", """%c = tfrt.new.chain %n = tfrt.constant.i32 3
 %p = tfrt.constant.i1 true
 %d, %m = tfrt.while %p @step(%c, %n) parallel_iterations(4) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
 tfrt.return %m : i32""")
    assert results(text) == ["int32 = 4", "int32 = 5", "int32 = 6", "'f' returned 6"]


def test_while_that_is_false_at_once_gives_back_what_it_takes() -> None:
    text = WHILE.replace("{0}", "tfrt.add.i32 %n, %one") + function("f", "", "i32", """%c = tfrt.new.chain
 %n = tfrt.constant.i32 9
 %p = tfrt.constant.i1 false
 %d, %m = tfrt.while %p @step(%c, %n) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
 tfrt.return %m : i32""")
    assert results(text) == ["'f' returned 9"]


def test_an_error_as_condition_is_the_result_and_nothing_runs() -> None:
    text = WHILE.replace("{0}", "tfrt.add.i32 %n, %one") + IF + function("f", "", "i32, i32, i32, i32", """%c = tfrt.new.chain
 %n = tfrt.constant.i32 9 %x = "tfrt_test.fail"() : () -> i32 %p = tfrt.equal.i32 %x, %n
 %d, %m = tfrt.while %p @step(%c, %n) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
 %q = tfrt.call @pick(%p, %n, %n) : (i1, i32, i32) -> i32
 %r = tfrt.repeat.i32 %x, %n : i32 { tfrt.return %n : i32 }
 %e, %s = tfrt.case %x [@zero] (%c, %n) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
 tfrt.return %m, %q, %r, %s : i32, i32, i32, i32""")
    text += function("zero", "%c: !tfrt.chain, %n: i32", "!tfrt.chain, i32", "tfrt.return %c, %n : !tfrt.chain, i32")
    printed, errors = run(text)
    assert ",".join(["<<error: something bad happened>>"] * 4) in printed[3] and len(errors) == 1
    assert not any(line.startswith("int32") for line in printed)


def test_cancelling_in_a_loop_ends_it() -> None:
    text = """%c = tfrt.new.chain %n = tfrt.constant.i32 5 %i = tfrt.constant.i32 0
 %d, %r = tfrt.repeat.i32 %n, %c, %i : !tfrt.chain, i32 {
   %e = tfrt.print.i32 %i, %c
   %one = tfrt.constant.i32 1
   %p = tfrt.lessequal.i32 %one, %i
   %g, %x = tfrt.if %p, %e, %one : (!tfrt.chain, i32) -> (!tfrt.chain, i32) {
     %y, %h = "tfrt_test.cancel"(%e) : (!tfrt.chain) -> (i32, !tfrt.chain)
     tfrt.return %h, %y : !tfrt.chain, i32
   } else {
     tfrt.return %e, %one : !tfrt.chain, i32
   }
   %j = tfrt.add.i32 %i, %x
   tfrt.return %g, %j : !tfrt.chain, i32
 }
 tfrt.print.i32 %r, %d
 tfrt.return %r : i32"""
    assert results(function("f", "", "i32", text)) == ["int32 = 0", "int32 = 1", "'f' returned <<error: Cancelled>>"]


def test_calls_may_recurse_so_deep_and_no_deeper() -> None:
    text = function("f", "", "i32", "%r = tfrt.call @f() : () -> i32 tfrt.return %r : i32")
    printed, errors = run(text)
    message = "more than 64 calls are inside each other, the last one of @f"
    assert printed[-1] == f"'f' returned <<error: {message}>>" and errors == [f"2: {message}"]


# Tensors decide

@pytest.mark.parametrize(("predicate", "expected"), [
    ("const_dense_tensor dense<1> : tensor<1xi32>", 1), ("const_dense_tensor dense<0> : tensor<i8>", 2),
    ("const_dense_tensor dense<-1> : tensor<1x1xi64>", 1), ("const_dense_tensor dense<true> : tensor<i1>", 1),
    ("const_dense_tensor dense<false> : tensor<1xi1>", 2), ("create_dense_tensor.ui8 {shape = [], value = [3 : ui8]}", 1),
    ('const_string_tensor {shape = [1], value = ["x"]}', 1), ('const_string_tensor {shape = [], value = [""]}', 2)])
@pytest.mark.parametrize("operation", [None, "async.noop", "async.noop_no_md"])
def test_a_tensor_is_true_if_its_element_is_not_zero_or_empty(predicate: str, expected: int, operation: str | None) -> None:
    make = f"%q = corert.{predicate}\n %p = corert.executeop(%cpu) \"tfrt_test.{operation}\"(%q) : 1\n" if operation else (
        f"%p = corert.{predicate}\n")
    text = PICK + function("f", "", "!tfrt.chain",
                           f"{CPU}{ONE_TWO}{make}{COND} %end = {shown('%r#1', '%r#0')} tfrt.return %end : !tfrt.chain")
    assert results(text)[0] == f"DenseHostTensor dtype = i32, shape = [2], values = [{expected}, {expected}]"


@pytest.mark.parametrize(("predicate", "message"), [
    ("corert.const_dense_tensor dense<1> : tensor<2xi32>", "a predicate has one element, this one has shape = [2]"),
    ("corert.const_dense_tensor dense<1.0> : tensor<1xf32>", "a predicate is a bool, an integer or a string, not f32"),
    ('corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [1], value = 1 : i32} : 1',
     "a predicate is a dense tensor or one of strings, not a scalar tensor"),
    ('"tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle', "invalid tensorhandle")])
def test_another_tensor_as_predicate_is_an_error_and_no_branch_runs(predicate: str, message: str) -> None:
    text = PICK + function("f", "", HANDLES[1:-1], f"{CPU}{ONE_TWO} %p = {predicate}\n{COND} tfrt.return %r#0, %r#1 : "
                                                   f"{HANDLES[1:-1]}")
    printed, errors = run(text)
    assert printed[-1] == f"'f' returned <<error: {message}>>,<<error: {message}>>" and len(errors) == 1


def test_an_error_as_argument_of_a_branch_is_the_result() -> None:
    text = PICK + function("f", "", HANDLES[1:-1], f"{CPU}{ONE_TWO} %p = corert.const_dense_tensor dense<1> : tensor<i1>\n"
                           '%x = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle\n'
                           f"{COND.replace('%b', '%x')} tfrt.return %r#0, %r#1 : {HANDLES[1:-1]}")
    assert run(text)[0][-1] == "'f' returned <<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>"


def loop(condition: str, add: str = "") -> str:
    """Functions of a loop that adds two as long as the number and one are not zero."""
    arguments = "%c: !tfrt.chain, %x: !corert.tensorhandle"
    text = function("go", arguments, HANDLES[1:-1], f"{CPU}{dense('%one', '[1]', '[1 : i32]')}"
                    f'%p = corert.executeop(%cpu) "tfrt_test.add"(%x, %one) : 1\n {condition} '
                    f"tfrt.return %d, %p : {HANDLES[1:-1]}")
    return text + function("add", arguments, HANDLES[1:-1], f"{CPU}{dense('%two', '[1]', '[2 : i32]')}"
                           f'%y = corert.executeop(%cpu) "tfrt_test.add"(%x, %two) : 1\n {add or "%z = " + NOOP}'
                           f"%d = {shown('%z', '%c')}\n tfrt.return %d, %z : {HANDLES[1:-1]}")


NOOP = 'corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%y) : 1\n'
SAME = "%d = tfrt.merge.chains %c : !tfrt.chain\n"
LOOP = "%d, %r = corert.while @go @add (%ch0, %a) : (!corert.tensorhandle) -> (!corert.tensorhandle)\n"
NINE = dense("%a", "[1]", "[-9 : i32]")


def test_while_of_tensors_runs_until_the_predicate_is_false() -> None:
    text = loop(SAME) + function("f", "", "!tfrt.chain",
                                 f"{CPU}{NINE}{LOOP} %end = {shown('%r', '%d')} tfrt.return %end : !tfrt.chain")
    assert results(text) == [*(f"DenseHostTensor dtype = i32, shape = [1], values = [{n}]" for n in (-7, -5, -3, -1, -1)),
                             "'f' returned !tfrt.chain value"]


@pytest.mark.parametrize(("make", "condition", "message"), [
    ('%a = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle\n', SAME, "invalid tensorhandle"),
    (NINE, '%d = "tfrt_test.error_chain"(%c) : (!tfrt.chain) -> !tfrt.chain\n', "error chain")])
def test_an_error_ends_while_of_tensors_and_its_body_does_not_run(make: str, condition: str, message: str) -> None:
    text = loop(condition) + function("f", "", HANDLES[1:-1], f"{CPU}{make}{LOOP} tfrt.return %d, %r : {HANDLES[1:-1]}")
    printed, errors = run(text)
    assert printed[2:] == ["--- Running 'f'", f"'f' returned <<error: {message}>>,<<error: {message}>>"] and len(errors) == 1


def test_an_error_in_the_body_ends_while_of_tensors() -> None:
    text = loop(SAME, '%z = corert.executeop(%cpu) "tfrt_test.error.tensor"(%y) : 1\n')
    text += function("f", "", HANDLES[1:-1], f"{CPU}{NINE}{LOOP} tfrt.return %d, %r : {HANDLES[1:-1]}")
    message = "error from tfrt_test.error.tensor implementation"
    printed, errors = run(text)
    assert printed[-1] == f"'f' returned <<error: {message}>>,<<error: {message}>>" and len(errors) == 1


def test_a_tensor_chooses_a_case() -> None:
    text = PICK + function("f", "", "!tfrt.chain", f"""{CPU}{ONE_TWO} %i = corert.const_dense_tensor dense<1> : tensor<1xi32>
 %n = corert.tensorhandle_to_int32 %i
 %d, %r = tfrt.case %n [@first, @second] (%ch0, %a, %b) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> {HANDLES}
 %end = {shown('%r', '%d')} tfrt.return %end : !tfrt.chain""")
    assert results(text)[0] == "DenseHostTensor dtype = i32, shape = [2], values = [2, 2]"


# Composite operations

SQUARE = function("square", "%c: !tfrt.chain, %x: !corert.tensorhandle", HANDLES[1:-1],
                  '%cpu = corert.get_op_handler %c "cpu"\n %y = corert.executeop(%cpu) "tfrt_test.matmul"(%x, %x) : 1\n'
                  f" tfrt.return %c, %y : {HANDLES[1:-1]}")
PURE = function("square", "%x: !corert.tensorhandle", "!corert.tensorhandle", "%c = tfrt.new.chain "
                '%cpu = corert.get_op_handler %c "cpu"\n %y = corert.executeop(%cpu) "tfrt_test.matmul"(%x, %x) : 1\n'
                " tfrt.return %y : !corert.tensorhandle")
COMPOSITE = """%op = "corert.make_composite_op"() {fn = @square} : () -> !corert.op
 %r = "corert.execute_crt_op"(%op, %a) {op_attrs = [], op_func_attrs = []} :
   (!corert.op, !corert.tensorhandle) -> !corert.tensorhandle
"""


@pytest.mark.parametrize("square", [SQUARE, PURE])
@pytest.mark.parametrize("make", ["", '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'])
def test_a_composite_operation_runs_its_function(square: str, make: str) -> None:
    text = CPU + dense("%a", "[1, 1]", "[2.0 : f32]") + make + (COMPOSITE.replace("%a", "%b") if make else COMPOSITE)
    text += f"%end = {shown('%r', '%ch0')} tfrt.return %end : !tfrt.chain"
    assert results(square + function("f", "", "!tfrt.chain", text))[0] == (
        "DenseHostTensor dtype = f32, shape = [1, 1], values = [4.000000e+00]")


def test_a_composite_operation_with_a_wrong_number_of_arguments_is_an_error() -> None:
    text = SQUARE + function("f", "", "!corert.tensorhandle", f"""{CPU}
 %op = "corert.make_composite_op"() {{fn = @square}} : () -> !corert.op
 %r = "corert.execute_crt_op"(%op) : (!corert.op) -> !corert.tensorhandle
 tfrt.return %r : !corert.tensorhandle""")
    assert run(text)[0][-1] == "'f' returned <<error: @square takes 1 tensor handles and gives 1, not 0 and 1>>"
