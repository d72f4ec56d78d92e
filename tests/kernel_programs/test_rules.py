"""Texts that are wrong: every one is a Problem at its line and column, and nothing else escapes."""
from __future__ import annotations

import random

import pytest
from tosaic.jit.op_by_op.program_text.reader import read_program
from tosaic.runtime.errors import Problem

from .test_text import FORMS, GENERIC

ARGUMENTS = "%c: !tfrt.chain, %h: !corert.ophandler, %x: !corert.tensorhandle, %n: i32, %p: i1"
PICK = """func.func @pick(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}
"""


def problem(text: str) -> Problem:
    with pytest.raises(Problem) as caught:
        read_program(text, "p.mlir")
    assert caught.value.position is not None
    return caught.value


def wrong(kernel: str) -> tuple[str, int, int]:
    """The message and the place of what is wrong with a kernel; it stands on line 5."""
    found = problem(f"{PICK}func.func @f({ARGUMENTS}) {{\n  {kernel}\n  tfrt.return\n}}")
    assert found.position is not None
    return found.message, found.position.line, found.position.column


@pytest.mark.parametrize(("kernel", "message", "column"), [
    # kernels and types
    ("tfrt.unknown %c", "there is no kernel tfrt.unknown", 3),
    ('%r = "corert.unknown"(%c) : (!tfrt.chain) -> i32', "there is no kernel corert.unknown", 8),
    ('%r = "tosa.add"(%n, %n) : (i32, i32) -> i32', "there is no kernel tosa.add", 8),
    ('%r = "tfrt.new.chain"() : () -> !foo.bar', "there is no type !foo.bar of values in a kernel program", 35),
    # operands
    ("tfrt.print.i32 %p, %c", "tfrt.print.i32 takes a i32 as operand 0, %p is a i1", 3),
    ("tfrt.print.i32 %n", "tfrt.print.i32 takes (i32, !tfrt.chain), found 1 operand", 3),
    ("tfrt.print.i32 %n, %c, %c", "tfrt.print.i32 takes (i32, !tfrt.chain), found 3 operands", 3),
    ('%r = corert.executeop(%h) "an.op"(%n) : 1',
     "corert.executeop takes a !corert.tensorhandle as operand 1, %n is a i32", 8),
    ('%r = corert.executeop(%c) "an.op"() : 1',
     "corert.executeop takes a !corert.ophandler as operand 0, %c is a !tfrt.chain", 8),
    ('%r = corert.executeop(%h, %c) "an.op"() : 1',
     "corert.executeop takes its op handler in the first brackets, found 2 operands", 8),
    ('%r = corert.executeop.seq(%h) "an.op"() : 1',
     "corert.executeop.seq takes its op handler and a chain in the first brackets, found 1 operands", 8),
    ('%r = corert.executeop.seq(%h, %x) "an.op"() : 0',
     "corert.executeop.seq takes a !tfrt.chain as operand 1, %x is a !corert.tensorhandle", 8),
    ('"corert.print_tensorhandle"(%x) : (!corert.tensorhandle) -> !tfrt.chain',
     "corert.print_tensorhandle takes (!corert.tensorhandle, !tfrt.chain), found 1 operand", 3),
    ('%r = corert.get_op_handler %h "cpu"',
     "corert.get_op_handler takes a !tfrt.chain as operand 0, %h is a !corert.ophandler", 8),
    ('tfrt.print.i32 %n, %c : i32, i32', "%c is a !tfrt.chain, but its type here is i32", 27),
    ('"tfrt.print.i32"(%n, %c) : (i32) -> !tfrt.chain', "2 operands, but 1 type here", 30),
    ("%d = tfrt.new.chain : () -> i32", "it gives (!tfrt.chain), but its type here is (i32)", 25),
    # results
    ("%r:2 = tfrt.new.chain", "2 results are named, but tfrt.new.chain has 1", 3),
    ('%r = corert.executeop(%h) "an.op"() : 2', "1 result is named, but corert.executeop has 2", 3),
    ('%r = "tfrt.new.chain"() : () -> i32', "tfrt.new.chain gives (!tfrt.chain), not (i32)", 8),
    ('%r = "corert.executeop"(%h) {op_name = "a"} : (!corert.ophandler) -> i32',
     "corert.executeop gives (!corert.tensorhandle), not (i32)", 8),
    # attributes
    ('"corert.register_op_handler"(%h) : (!corert.ophandler) -> !tfrt.chain',
     "corert.register_op_handler needs the attribute name", 3),
    ('"corert.register_op_handler"(%h) {name = 1} : (!corert.ophandler) -> !tfrt.chain',
     "corert.register_op_handler needs a string as its attribute name", 3),
    ('%r = "corert.executeop"(%h) {op_name = "a", op_attrs = [1 : i32]} : (!corert.ophandler) -> !corert.tensorhandle',
     "corert.executeop has a key and a value in each of its op_attrs, the key a string", 8),
    ('%r = "corert.executeop"(%h) {op_name = "a", op_attrs = [[1 : i32, 2]]} : (!corert.ophandler) -> !corert.tensorhandle',
     "corert.executeop has a key and a value in each of its op_attrs, the key a string", 8),
    ('%r = "corert.executeop"(%h) {op_name = "a", op_attrs = 1} : (!corert.ophandler) -> !corert.tensorhandle',
     "corert.executeop has a key and a value in each of its op_attrs, the key a string", 8),
    ('%r = "corert.executeop"(%h) {op_name = "a", op_attrs = [["k", 1], ["k", 2]]} :'
     " (!corert.ophandler) -> !corert.tensorhandle",
     "corert.executeop has the attribute k twice", 8),
    ('%r = "corert.executeop"(%h) {op_name = "a", op_func_attrs = [["k", 1]]} : (!corert.ophandler) -> !corert.tensorhandle',
     "corert.executeop has functions in op_func_attrs, k is none", 8),
    ('%r = "corert.executeop"(%h) : (!corert.ophandler) -> !corert.tensorhandle',
     "corert.executeop needs the attribute op_name", 8),
    ("%r = corert.create_dense_tensor.i32 {shape = [3], value = [1 : i32, 2 : i32]}",
     "corert.create_dense_tensor.i32 has 2 values for a shape of 3 elements", 8),
    ("%r = corert.create_dense_tensor.i32 {shape = [3], value = [1]}",
     "corert.create_dense_tensor.i32 needs numbers of type i32 as its attribute value", 8),
    ("%r = corert.create_dense_tensor.i32 {shape = [-3], value = [1 : i32]}",
     "corert.create_dense_tensor.i32 needs a list of extents that are not negative as its attribute shape", 8),
    ("%r = corert.create_dense_tensor.i32 {shape = [100000, 100000], value = [1 : i32]}",
     "corert.create_dense_tensor.i32 makes 10000000000 elements, more than 268435456", 8),
    ("%r = corert.const_string_tensor {shape = [1], value = [1]}",
     "corert.const_string_tensor needs a list of strings as its attribute value", 8),
    ('%r = "corert.const_dense_tensor"() {value = 1} : () -> !corert.tensorhandle',
     "corert.const_dense_tensor needs a constant, as in dense<1> : tensor<i32> as its attribute value", 8),
    ('%r = "tfrt.constant.i32"() {value = 1 : i64} : () -> i32',
     "tfrt.constant.i32 needs a number of type i32 as its attribute value", 8),
    # functions
    ("tfrt.call @nobody(%c) : (!tfrt.chain) -> ()", "tfrt.call calls @nobody, which the program does not have", 3),
    ("tfrt.call @pick(%c) : (!tfrt.chain) -> ()",
     "tfrt.call calls @pick as (!tfrt.chain) -> (), but it is (!tfrt.chain, !corert.tensorhandle) -> "
     "(!tfrt.chain, !corert.tensorhandle)", 3),
    ('"tfrt.call"(%c) : (!tfrt.chain) -> ()', "tfrt.call needs a function as its attribute callee", 3),
    ("%r:2 = corert.cond %n @pick @pick (%c, %x) : (!corert.tensorhandle) -> (!corert.tensorhandle)",
     "corert.cond takes a !corert.tensorhandle as operand 0, %n is a i32", 10),
    ("%r:2 = corert.cond %x @pick @pick (%x, %x) : (!corert.tensorhandle) -> (!corert.tensorhandle)",
     "expected a chain as the first operand in the brackets", 37),
    ("%r:2 = corert.while @pick @pick (%c, %n) : (i32) -> (i32)",
     "corert.while takes a chain and then tensor handles, not (!tfrt.chain, i32)", 10),
    ("%r:3 = corert.while @pick @pick (%c, %x, %x) : (!corert.tensorhandle, !corert.tensorhandle) -> "
     "(!corert.tensorhandle, !corert.tensorhandle)",
     "corert.while calls @pick as (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, "
     "!corert.tensorhandle), but it is (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)", 10),
    ("%r:2 = tfrt.case %p [@pick] (%c, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)",
     "tfrt.case takes a i32 as operand 0, %p is a i1", 10),
    ("%r:2 = tfrt.while %p @pick(%c, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)",
     "tfrt.while calls @pick as (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, i1), but it is "
     "(!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)", 10),
    ('%r = "corert.make_composite_op"() {fn = @f} : () -> !corert.op',
     "corert.make_composite_op takes a function of a chain and tensor handles, @f is (!tfrt.chain, !corert.ophandler, "
     "!corert.tensorhandle, i32, i1) -> ()", 8),
    # regions
    ("tfrt.if %n : () -> () { tfrt.return }", "tfrt.if takes a i1 as operand 0, %n is a i32", 3),
    ("%r = tfrt.if %p, %n : (i32) -> i32 { tfrt.return %n : i32 }", "tfrt.if with results needs a region for else", 8),
    ("tfrt.if %p, %n : (i32) -> () { tfrt.return %n : i32 }", "tfrt.return has 1 operand, but tfrt.if gives 0", 34),
    ("tfrt.if %p : () -> () { tfrt.print.i32 %n, %c tfrt.return }", "unknown value %n", 42),
    ("%r = tfrt.repeat.i32 %n, %n : i32 { tfrt.return }", "tfrt.return has 0 operands, but tfrt.repeat.i32 gives 1", 39),
    ("%r = tfrt.repeat.i32 %n, %c : !tfrt.chain { tfrt.return %n : i32 }", "unknown value %n", 59),
    ("%a, %b = tfrt.repeat.i32 %n, %n, %n : i32, i32 { tfrt.return %n, %n : i32, i32 }",
     "%n is passed twice, but the region has one name for it", 12),
    ('"tfrt.new.chain"() ({ tfrt.return }) : () -> !tfrt.chain', "tfrt.new.chain has no regions, found 1", 3),
    ('"tfrt.if"(%p) : (i1) -> ()', "tfrt.if has one region or two, found 0", 3),
    # names
    ("tfrt.print.i32 %m, %c", "unknown value %m", 18), ("tfrt.print.i32 %n#1, %c", "%n has no result number 1", 18),
    ("%n = tfrt.new.chain", "%n is defined twice", 3), ("%d:0 = tfrt.new.chain", "%d cannot stand for 0 values", 3),
    # syntax
    ("tfrt.print.i32(%n %c)", "expected ')', found '%c'", 21),
    ("%r = 1", "expected a kernel, found '1'", 8),
    ("%r tfrt.new.chain", "expected '=', found 'tfrt.new.chain'", 6),
    ('%r = corert.executeop(%h) an.op() : 1', "expected a string, found 'an.op'", 29),
    ('%r = corert.executeop(%h) "an.op" : 1', "expected '(', found ':'", 37),
    ('%r = corert.executeop(%h) "an.op() : 1', "the string is not closed on its line", 29),
    ('%r = corert.executeop(%h) "an.op"() {k = } : 1', "expected an attribute's value, found '}'", 44),
    ('%r = corert.executeop(%h) "an.op"() {k = 1, k = 2} : 1', "the attribute k is given twice", 47),
    ('%r = corert.executeop(%h) "an.op"() {k = 1 : tensor<2xi32>} : 1', "a number cannot be of type tensor<2xi32>", 48),
    ('%r = corert.executeop(%h) "an.op"() {k = 300 : i8} : 1', "300 does not fit i8 (-128 to 255)", 44),
    ('%r = corert.executeop(%h) "an.op"() {k = #foo.bar<1>} : 1', "the attribute #foo.bar is not known", 44),
    ('%r = corert.executeop(%h) "an.op"() {k = #corert.shape<1x>} : 1',
     "expected a shape, as in #corert.shape<1x?x3>, found '#corert.shape'", 44),
    ('%r = corert.executeop(%h) "an.op"() {k = dense<[1]> : i32} : 1', "a constant cannot be of type i32", 57),
    ('%r = corert.executeop(%h) "an.op"() {k = dense<[1]> : tensor<2xi32>} : 1',
     "expected 2 elements in this list of tensor<2xi32>, found 1", 52),
    ('%r = corert.executeop(%h) "an.op"() {k = "\\z"} : 1', 'expected \\n, \\t, \\", \\\\ or two hexadecimal digits', 45),
    ("%r = tfrt.constant.i32 1.5", "expected an integer of type i32, found 1.5", 26),
    ("%r = tfrt.constant.f32 1", "expected a number of type f32, found 1", 26),
    ("%r = tfrt.constant.i32", "expected a number, found 'tfrt.return'", 3),
    ("%r:2 = tfrt.case %n @pick (%c, %x) : (i32) -> i32", "expected '[', found '@pick'", 23),
    ("tfrt.new.chain loc(", "the location is not closed", 21),
])
def test_what_is_wrong_with_a_kernel_is_said_at_its_place(kernel: str, message: str, column: int) -> None:
    found, line, at = wrong(kernel)
    assert (found, at) == (message, column)
    assert line == (6 if kernel.endswith("tfrt.constant.i32") else 5)


@pytest.mark.parametrize(("kernel", "message"), [
    ('corert.op_attrs_set.i32 {key = "k", value = 1}', "numbers of type i32"),
    ('corert.op_attrs_set.f32 {key = "k", value = 1 : i32}', "numbers of type f32"),
    ('corert.op_attrs_set.bool {key = "k", value = 2 : i32}', "true or false"),
    ('corert.op_attrs_set.str {key = "k", value = 2 : i32}', "a string"),
    ('corert.op_attrs_set.dense {key = "k", value = [1]}', "a constant, as in dense<1> : tensor<i32>"),
    ('corert.op_attrs_set.aggregate {key = "k", value = 1}', "a list"),
    ('corert.op_attrs_set.shape {key = "k", value = "x"}', "a shape, as in #corert.shape<1x?x3> or [1, 3]"),
    ('corert.op_attrs_set.dtype {key = "k", value = 1}', "a type, as in f32"),
    ('corert.op_attrs_set_array.i32 {key = "k", value = [1]}', "a list of numbers of type i32"),
    ('corert.op_attrs_set_array.i32 {key = "k", value = 1 : i32}', "a list"),
    ('corert.op_attrs_set_array.str {key = "k", value = ["a", 1]}', "a list of a string")])
def test_a_setter_takes_values_of_its_type(kernel: str, message: str) -> None:
    name, _, given = kernel.partition(" ")
    text = '%a = "corert.create_op_attrs"() : () -> !corert.opattrs\n'
    text += f'"{name}"(%a, %c) {given} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain'
    assert wrong(text)[0] == f"{name} needs {message} as its attribute value"


@pytest.mark.parametrize(("text", "message", "line", "column"), [
    ("func.func @f() -> i32 {\n  tfrt.return\n}", "tfrt.return has 0 operands, but the function @f gives 1", 2, 3),
    ("func.func @f(%x: i32) {\n  tfrt.return %x : i32\n}", "tfrt.return has 1 operand, but the function @f gives 0", 2, 3),
    ("func.func @f(%x: i32) -> !tfrt.chain {\n  tfrt.return %x : i32\n}",
     "tfrt.return: operand 0, %x, is a i32, but the function @f gives a !tfrt.chain", 2, 3),
    ("func.func @f(%x: i32) -> i32 { tfrt.return %x : i64 }", "%x is a i32, but its type here is i64", 1, 49),
    ("func.func @f() { }", "expected tfrt.return before the end of the body", 1, 18),
    ("func.func @f() { tfrt.return", "the text ends where '}' is expected", 1, 28),
    ("func.func @f() {", "the text ends where a kernel is expected", 1, 16),
    ("func.func @f() { tfrt.return %c = tfrt.new.chain }", "unknown value %c", 1, 30),
    ("func.func @f(%a: i32, %a: i32) { tfrt.return }", "%a is defined twice", 1, 23),
    ("func.func @f(i32) { tfrt.return }", "expected a value, as in %0, found 'i32'", 1, 14),
    ("func.func f() { tfrt.return }", "expected a function's name, as in @main, found 'f'", 1, 11),
    ("func.func @f() { tfrt.return }\nfunc.func @f() { tfrt.return }", "the function @f is defined twice", 2, 11),
    ("%c = tfrt.new.chain", "expected a function, as in func.func @main(), found '%c'", 1, 1),
    ("module { func.func @f() { tfrt.return } } tfrt", "expected the end of the text, found 'tfrt'", 1, 43),
    ("module { func.func @f() { tfrt.return }", "the text ends where '}' is expected", 1, 39)])
def test_what_is_wrong_with_a_function_is_said_at_its_place(text: str, message: str, line: int, column: int) -> None:
    found = problem(text)
    assert found.position is not None
    assert (found.message, found.position.line, found.position.column) == (message, line, column)


def test_a_problem_shows_the_line_where_it_is_and_the_one_where_the_value_comes_from() -> None:
    found = problem("func.func @f(%c: !tfrt.chain) {\n  %n = tfrt.constant.i64 1\n  tfrt.print.i32 %n, %c\n  tfrt.return\n}")
    assert str(found) == """\
p.mlir:3:3: error[kernel]: tfrt.print.i32 takes a i32 as operand 0, %n is a i64
    3 |   tfrt.print.i32 %n, %c
      |   ^^^^^^^^^^^^^^
  p.mlir:2:3: it comes from here
    2 |   %n = tfrt.constant.i64 1
      |   ~"""


@pytest.mark.parametrize("text", ["func.func @f() { tfrt.if %p : () -> () " + "{ tfrt.if %p : () -> () " * 500,
                                  'func.func @f(%h: !corert.ophandler) { corert.executeop(%h) "a"() {k = ' + "[" * 5000,
                                  "func.func @f(%p: i1) { " + "tfrt.if %p, %p : (i1) -> () { " * 500])
def test_deep_nesting_is_a_problem(text: str) -> None:
    assert problem(text).kind in ("nesting", "symbol")


@pytest.mark.parametrize("text", [FORMS, GENERIC])
def test_a_text_that_has_been_damaged_is_read_or_is_a_problem(text: str) -> None:
    """Cut off, with pieces taken out, doubled or changed: never another exception."""
    chance = random.Random(7)
    for _ in range(600):
        start, length = chance.randrange(len(text)), chance.randrange(12)
        damaged = chance.choice([text[:start], text[:start] + text[start + length:], text[:start] + text[start:start + length]
                                 + text[start:], text[:start] + chance.choice('%@"#<>{}[]():,=!-0a\\\n') + text[start + 1:]])
        try:
            read_program(damaged)
        except Problem as found:
            assert found.position is not None
