"""Each fault of a text is a problem at its line and column, in words that say what was expected there."""
from __future__ import annotations

import pytest
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

WHOLE_TEXTS = [
    ("modul {}", 1, 1, "expected an operation, found 'modul'"),
    ("module {", 1, 8, "the text ends where an operation or '}' is expected"),
    ("module }", 1, 8, "expected '{', 'attributes' or a name, as in @main, found '}'"),
    ("func.func f() { return }", 1, 11, "expected a name, as in @main or 'private', found 'f'"),
    ("func.func @f( { return }", 1, 15, "expected ')', a value, as in %0 or a type, found '{'"),
    ("func.func @f(%a tensor<2xf32>) { return }", 1, 17, "expected ':', found 'tensor'"),
    ("func.func @f(%a: tensor<2xf32) { return }", 1, 30, "expected '>' at the end of the tensor type, found ')'"),
    ("func.func @f(%a: tensr<2xf32>) { return }", 1, 18, "unknown type tensr"),
    ("func.func @f(%a: tensor<2xq32>) { return }", 1, 27, "unknown type q32"),
    ("func.func @f(%a: tensor<2xf32>", 1, 30, "the text ends where ',', ')' or '{' is expected"),
    ("func.func @f() { return", 1, 23, "the text ends where an operation or '}' is expected"),
    ("func.func @f()", 1, 11, "the function @f has no body"),
    ("func.func @f(tensor<2xf32>) { return }", 1, 14, "argument 0 of @f has no name"),
    ("func.func @f() {\n}", 2, 1, "expected return at the end of the block"),
    ("func.func @f() { tosa.yield }", 1, 18, "tosa.yield is not allowed in this block"),
    ("tosa.variable @x", 1, 16, "the text ends where ':', '=' or '{' is expected"),
    ("tosa.variable @x = : tensor<1xf32>", 1, 20, "expected an attribute's value, found ':'"),
    ("tosa.variable @x = dense<1> : tensor<1xi8> tensor<1xf32>", 1, 44, "expected an operation, found 'tensor'"),
    ("tosa.variable x : tensor<f32>", 1, 15, "expected a name, as in @main, found 'x'"),
    ('"tosa.variable"() <{sym_name = "x", type = i8, var_shape = dense<1> : tensor<1xindex>, '
     "initial_value = dense<1> : tensor<2xi8>}> : () -> ()",
     1, 1, "the variable is tensor<1xi8>, its initial value is tensor<2xi8>"),
    ('"tosa.variable"() <{sym_name = "x", type = i8}> : () -> ()',
     1, 37, "type of tosa.variable must be a tensor type"),
    ("module {} module {}", 1, 11, "expected the end of the text after the module"),
    ("module { module {} }", 1, 10, "a module inside a module is not supported"),
    ("#a = #b\nmodule attributes {x = #a} {}", 1, 6, "unknown attribute alias #b"),
    ("#a = [#a]\nmodule attributes {x = #a} {}", 2, 24, "the alias #a contains itself"),
    ("!a = !b\n!b = !a\nfunc.func @f(%x: !a) { return }",
     3, 18, "types or their aliases are nested more than 32 deep"),
    ("#a = 1\n#a = 2", 2, 1, "#a is defined twice"),
    ("func.func @f(%a: tensor<2xf32>, %a: tensor<2xf32>) { return }", 1, 33, "%a is defined twice"),
    ("func.func @f(%a: !x) { return }", 1, 18, "unknown type alias !x"),
    ("func.func @f(%a: !tosa.shape<x>) { return }", 1, 29, "expected the rank of the shape, as in !tosa.shape<4>"),
    ("func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n^bb0(%b: tensor<2xf32>):\n return %b : "
     "tensor<2xf32>\n}",
     2, 1, "the arguments of @f are named in its signature, its first block has no header"),
    ("{-# dialect_resources: { builtin: { a: 1 } #-}", 1, 44, "expected ',' or '}', found '#-'"),
    ("module attributes {a = array<i32: 1, x>} {}", 1, 38, "expected an integer of type i32, found x"),
    ("module attributes {a = array<f32: 1>} {}", 1, 35, "expected a number of type f32, found 1"),
    ("module attributes {a = [1, 2} {}", 1, 29, "expected ',' or ']', found '}'"),
    ("module attributes {a = 1 : tensor<2xf32>} {}", 1, 28, "a number cannot be of type tensor<2xf32>"),
    ("module attributes {a b} {}", 1, 22, "expected ',', '=' or '}', found 'b'"),
    ('module attributes {a = "x} {}', 1, 24, "the string is not closed on its line"),
    ("module attributes {a = loc(} {}", 1, 31, "the text ends where '(', ')' or a location is expected"),
    ("$", 1, 1, "expected an operation, found '$'"),
    ("module {} trailing", 1, 11, "expected an operation, found 'trailing'"),
    ('module {} "', 1, 11, "the string is not closed on its line"),
    ("func.func @f() -> tensor<2xf32 { return }", 1, 32, "expected '>' at the end of the tensor type, found '{'"),
    ("%0 = module {}", 1, 1, "module has no results"),
]
"""A text, the line and column of the problem, and what it says."""

OPERATIONS = [
    ("%0 = tosa.abs %a (tensor<2x3xf32>) -> tensor<2x3xf32>", 2, 20, "expected ':', '{', '[' or a name, found '('"),
    ("%0 = tosa.abs %a : (tensor<2x3xf32> -> tensor<2x3xf32>",
     2, 39, "expected ',' or ')' in the list of types, found '->'"),
    ("%0 = tosa.abs %a : (tensor<2x3xf32>) tensor<2x3xf32>",
     2, 40, "expected '->' and the result types, found 'tensor'"),
    ("%0 = tosa.abs %a : (tensor<2x3xf32>) -> ", 3, 3, "unknown type return"),
    ("%0 = tosa.abs %a : (tensor<2x3xf32>) -> tensor<2x3xfoo>", 2, 54, "unknown type foo"),
    ("%0 = tosa.abs %a : tensor<2x3xf32>",
     2, 22, "expected types, as in (tensor<2xf32>) -> tensor<2xf32>, found tensor<2x3xf32>"),
    ("%0 tosa.abs %a : (tensor<2x3xf32>) -> tensor<2x3xf32>", 2, 3, "expected '=' and an operation after %0"),
    ("%0 = tosa.abs %b : (tensor<2x3xf32>) -> tensor<2x3xf32>", 2, 17, "unknown value %b"),
    ("%0 = tosa.abs %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>\n%1 = tosa.abs %0 : (tensor<2x3xf32>) "
     "-> tensor<2x3xf32>",
     2, 17, "%1 is used before it is defined"),
    ("%0 = tosa.abs %a : (tensor<3xf32>) -> tensor<3xf32>",
     2, 17, "operand 0, %a, is tensor<2x3xf32>, but its type here is tensor<3xf32>"),
    ("%0 = tosa.abs %a, %a : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     2, 26, "tosa.abs has 2 operands, but 1 operand types"),
    ("%0:2 = tosa.abs %a : (tensor<2x3xf32>) -> tensor<2x3xf32>", 2, 3, "2 results are named, but the operation has 1"),
    ("%0 = tosa.abs %a : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  %0 = tosa.abs %a : (tensor<2x3xf32>) "
     "-> tensor<2x3xf32>",
     3, 3, "%0 is defined twice"),
    ("%0 = tosa.abs %a#1 : (tensor<2x3xf32>) -> tensor<2x3xf32>", 2, 17, "%a has no result number 1"),
    ("%0 = tosa.argmax %a {axis = 1 : i32, axis = 2 : i32} : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 40, "the attribute axis is given twice"),
    ("%0 = tosa.argmax %a {} : (tensor<2x3xf32>) -> tensor<2xi32>", 2, 8, "tosa.argmax needs the attribute axis"),
    ("%0 = tosa.argmax %a {axis = 1 : q7} : (tensor<2x3xf32>) -> tensor<2xi32>", 2, 35, "unknown type q7"),
    ("%0 = tosa.argmax %a {axis = 1.5 : f32} : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 24, "axis of tosa.argmax must be an integer, as in 1 : i32"),
    ("%0 = tosa.argmax %a {axis = 99999999999 : i32} : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 31, "99999999999 does not fit i32 (-2147483648 to 4294967295)"),
    ("%0 = tosa.argmax %a {axis = 1 : i32, nan_mode = MAYBE} : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 40, "nan_mode of tosa.argmax must be PROPAGATE or IGNORE, it is MAYBE"),
    ("%0 = tosa.argmax %a {axis = } : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 31, "expected an attribute's value, found '}'"),
    ("%0 = tosa.argmax %a {axis 1 : i32} : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 29, "expected ',', '=' or '}', found '1'"),
    ("%0 = tosa.argmax %a {axis = 1 : i32 : (tensor<2x3xf32>) -> tensor<2xi32>",
     2, 39, "expected ',' or '}', found ':'"),
    ("%0 = tosa.clamp %a {min_val = 0 : i8, max_val = 1 : i8} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     2, 23, "min_val of tosa.clamp is of type i8, but operand 0 holds f32"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2]> : tensor<3xi32>}> : () -> tensor<3xi32>',
     2, 45, "expected 3 elements in this list of tensor<3xi32>, found 2"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2, 3, 4]> : tensor<3xi32>}> : () -> tensor<3xi32>',
     2, 50, "more than 3 elements in this list of tensor<3xi32>"),
    ('%0 = "tosa.const"() <{values = dense<[[1], [2, 3]]> : tensor<2x1xi32>}> : () -> tensor<2x1xi32>',
     2, 50, "more than 1 elements in this list of tensor<2x1xi32>"),
    ('%0 = "tosa.const"() <{values = dense<[1, x]> : tensor<2xi32>}> : () -> tensor<2xi32>',
     2, 44, "expected a number, found 'x'"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2> : tensor<2xi32>}> : () -> tensor<2xi32>', 2, 40, "'[' is not closed"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2 : tensor<2xi32>}> : () -> tensor<2xi32>',
     2, 34, "dense<...> is not well formed"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2]>}> : () -> tensor<2xi32>',
     2, 47, "expected ':' and the type of the constant"),
    ('%0 = "tosa.const"() <{values = dense<1> : tensor<2xf32>}> : () -> tensor<2xf32>',
     2, 40, "expected a number of type f32, found 1"),
    ('%0 = "tosa.const"() <{values = dense<1.0> : tensor<2xi32>}> : () -> tensor<2xi32>',
     2, 40, "expected an integer of type i32, found 1.0"),
    ('%0 = "tosa.const"() <{values = dense<300> : tensor<2xi8>}> : () -> tensor<2xi8>',
     2, 40, "300 does not fit i8 (-128 to 255)"),
    ('%0 = "tosa.const"() <{values = dense<[1, 2, 300]> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 47, "300 does not fit i8 (-128 to 255)"),
    ('%0 = "tosa.const"() <{values = dense<"0x0102"> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 40, "2 bytes of data, but tensor<3xi8> takes 3 (or 1 for all elements alike)"),
    ('%0 = "tosa.const"() <{values = dense<"0x0102GG"> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 47, "'G' is no hexadecimal digit"),
    ('%0 = "tosa.const"() <{values = dense<"0x01\n02"> : tensor<2xi8>}> : () -> tensor<2xi8>',
     2, 45, "'\\n' is no hexadecimal digit"),
    ('%0 = "tosa.const"() <{values = dense<"0x01020"> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 43, "a hexadecimal string needs an even number of digits"),
    ('%0 = "tosa.const"() <{values = dense<1> : tensor<?xi8>}> : () -> tensor<?xi8>',
     2, 34, "a constant needs a static type, not tensor<?xi8>"),
    ('%0 = "tosa.const"() <{values = dense<1> : tensor<99999x99999xi8>}> : () -> tensor<3xi8>',
     2, 34, "tensor<99999x99999xi8> has 9999800001 bytes, more than the limit of 2^31 - 1"),
    ('%0 = "tosa.const"() <{values = dense<1> : tensor<99999999999999999999xi8>}> : () -> tensor<3xi8>',
     2, 52, "the extent is more than 2^63 - 1"),
    ('%0 = "tosa.const"() <{values = dense_resource<w> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 49, "the text has no resource w"),
    ('%0 = "tosa.const"() <{values = dense_resource<__elided__> : tensor<3xi8>}> : () -> tensor<3xi8>',
     2, 49, "the text has no resource __elided__"),
    ('%0 = "tosa.const"() : () -> tensor<3xi8>', 2, 8, "tosa.const needs the attribute values"),
    ('%0 = "tosa.const"() <{values = 3 : i8}> : () -> tensor<3xi8>',
     2, 25, "values of tosa.const must be a constant, as in dense<0> : tensor<1xi8>"),
    ('%0 = "tosa.const() <{values = 3 : i8}> : () -> tensor<3xi8>', 2, 8, "the string is not closed on its line"),
    ('%0 = "tosa.abs"(%a) {x = "a\\q"} : (tensor<2x3xf32>) -> tensor<2x3xf32>',
     2, 30, 'expected \\n, \\t, \\", \\\\ or two hexadecimal digits'),
    ("scf.forall (%i) in (2) { }", 2, 3, "the form of scf.forall is not known"),
    ('%0 = foreign.constant_of dense<1> : tensor<2xi8>', 2, 8, "the form of foreign.constant_of is not known"),
    ("retrun %a : tensor<2xf32>", 2, 3, "expected an operation or '}', found 'retrun'"),
    ('cf.assert %a, "wrong"', 2, 3, "the form of cf.assert is not known"),
    ("cf.br ^bb1\n^bb2:", 2, 9, "there is no block ^bb1"),
    ('"cf.br"()[^bb1] : () -> ()\n^bb2:', 2, 13, "there is no block ^bb1"),
    ("func.func @g() { return }", 2, 3, "func.func is not allowed inside a function"),
    ("tosa.yield %a : tensor<2x3xf32>", 2, 3, "tosa.yield is not allowed in this block"),
    ("return\n%0 = tosa.abs %a : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     2, 3, "return must be the last operation of this block"),
    ("%r = tosa.cond_if %a -> (tensor<f32>) { tosa.yield } ",
     2, 54, "expected 'else' and the second region of tosa.cond_if"),
    ("%r = tosa.cond_if %a : tensor<2x3xf32> -> tensor<f32> { %0 = tosa.abs } else { tosa.yield }",
     2, 73, "expected ':', '{', operands, as in %0, %1 or a name, found '}'"),
    ("%r = tosa.while_loop (%a) : () -> () { tosa.yield } do { tosa.yield }", 2, 27, "expected '=', found ')'"),
    ("%r = tosa.while_loop (%i = %a) : (tensor<2x3xf32>) -> tensor<2x3xf32> { tosa.yield } do { tosa.yield ",
     4, 1, "the text ends where an operation or '}' is expected"),
    ("tosa.variable_write @x, %a, : tensor<2x3xf32>", 2, 29, "expected ':' or '{', found ','"),
    ("tosa.variable_read @x", 3, 3, "expected ':' or '{', found 'return'"),
    ("% = tosa.abs %a : () -> ()", 2, 3, "expected a name after '%'"),
]
"""The same for operations in the second line of a function with an argument `%a`."""


@pytest.mark.parametrize(("text", "line", "column", "message"), WHOLE_TEXTS)
def test_a_fault_of_a_text_is_found_where_it_is(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read_module(text)
    assert caught.value.message == message
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (line, column)


@pytest.mark.parametrize(("text", "line", "column", "message"), OPERATIONS)
def test_a_fault_of_an_operation_is_found_where_it_is(text: str, line: int, column: int, message: str) -> None:
    test_a_fault_of_a_text_is_found_where_it_is(
        f"func.func @f(%a: tensor<2x3xf32>) {{\n  {text}\n  return\n}}", line, column, message)


@pytest.mark.parametrize(("text", "line", "column", "message"), WHOLE_TEXTS)
def test_a_message_shows_the_line_with_a_mark(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read_module(text, "model.mlir")
    first, shown, mark, *_ = str(caught.value).split("\n")
    assert first.startswith(f"model.mlir:{line}:{column}: error[{caught.value.kind}]: ")
    shown, mark = shown.split("| ", 1)[1], mark.split("| ", 1)[1]
    whole = text.split("\n")[line - 1]
    assert shown == whole or shown.strip(".") in whole
    assert set(mark.strip()) == {"^"}
    assert shown != whole or mark.index("^") == column - 1


def test_a_long_line_is_cut_around_the_fault() -> None:
    blob = "00" * 100_000
    with pytest.raises(Problem) as caught:
        read_module(f'module attributes {{a = dense<"0x{blob}"> : tensor<99999xi8>, b = dense<"0x{blob}"}} {{}}')
    assert max(map(len, str(caught.value).split("\n"))) < 200


def test_a_message_holds_nothing_that_drives_a_terminal() -> None:
    with pytest.raises(Problem) as caught:
        read_module("module \x1b]0;title\x07 \u202e {", "a\x1b.mlir")
    assert str(caught.value).replace("\n", "").isprintable()


def test_an_operator_of_another_dialect_names_the_form_that_can_be_read() -> None:
    with pytest.raises(Problem) as caught:
        read_module("func.func @f(%a: tensor<i1>) { scf.forall (%i) in (2) { } return }")
    assert caught.value.unsupported
    assert "--mlir-print-op-generic" in (caught.value.help or "")
