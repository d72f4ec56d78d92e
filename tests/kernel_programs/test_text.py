"""The text of kernel programs: every kernel in its forms is read, printed in the newer one, and read again to the same."""
from __future__ import annotations

import pytest
from tosaic.jit.op_by_op.program_text.kernel_program import Program
from tosaic.jit.op_by_op.program_text.kernel_table import OPEN, SIGNATURES
from tosaic.jit.op_by_op.program_text.printer import print_program
from tosaic.jit.op_by_op.program_text.reader import is_program, read_program

from .test_operations import DOCUMENT

VALUES = {"name": '"n"', "key": '"k"', "fn": "@fn", "shape": "[2]"}
FN = "func.func @fn(%c: !tfrt.chain) -> !tfrt.chain {\n  tfrt.return %c : !tfrt.chain\n}\n\n"


def again(text: str) -> str:
    """What a program prints as; that reads back and prints the same."""
    printed = print_program(read_program(text))
    assert print_program(read_program(printed)) == printed
    return printed


def value(name: str, kernel: str) -> str:
    """An attribute of a kernel, of the type that its name says."""
    family, _, type = kernel.rpartition(".")
    if name in VALUES:
        return VALUES[name]
    if kernel == "ts.build_shape":
        return "[1]"
    if kernel.startswith("corert.const"):
        return '["a"]' if "string" in kernel else "dense<1> : tensor<i32>"
    one = {"bool": "true", "str": '"s"', "dense": "dense<1> : tensor<2xi32>", "aggregate": "[1, true]", "dtype": "f32",
           "shape": "#corert.shape<1x?>"}.get(type) or f"1{'.0' * ('f' in type)} : {type}"
    return f"[{one}]" if family.endswith(("_array", "create_dense_tensor")) else one


@pytest.mark.parametrize("kernel", sorted(SIGNATURES))
def test_every_kernel_of_the_table_is_read_printed_and_read_again(kernel: str) -> None:
    signature = SIGNATURES[kernel]
    arguments = ", ".join(f"%a{n}: {t}" for n, t in enumerate(signature.operands))
    given = f" {{{', '.join(f'{n} = {value(n, kernel)}' for n in signature.attributes)}}}" if signature.attributes else ""
    results = ", ".join(f"%r{n}" for n in range(len(signature.results)))
    types = f"({', '.join(signature.operands)}) -> ({', '.join(signature.results)})"
    uses = ", ".join(f"%a{n}" for n in range(len(signature.operands)))
    text = f'{FN}func.func @f({arguments}) {{\n  {results} = "{kernel}"({uses}){given} : {types}\n  tfrt.return\n}}\n'
    first = read_program(text).function("f").body.kernels[0]
    second = read_program(again(text)).function("f").body.kernels[0]
    assert first.name == second.name == kernel
    assert first.operand_types == second.operand_types == signature.operands
    assert set(first.attributes) == set(second.attributes) == set(signature.attributes)


FORMS = """\
func.func @custom(%ch: !tfrt.chain, %h: !corert.ophandler, %x: !corert.tensorhandle, %p: i1, %n: i32) -> (!tfrt.chain, i32) {
  %ch0 = tfrt.new.chain
  %ch1 = corert.register_op_handler %h "cpu"
  %cpu = corert.get_op_handler %ch1 "cpu"
  %a = corert.executeop(%cpu) "some.op"(%x, %x) {axis = 1 : i32, f = @pick} : 1
  corert.executeop(%cpu) "some.op"() : 0
  %ch2, %b, %c = corert.executeop.seq(%cpu, %ch0) "some.op"(%a) : 2
  %d = corert.const_dense_tensor dense<[0, 1]> : tensor<2xi32>
  %e = corert.const_string_tensor {shape = [2 : i64], value = ["a", "b"]}
  %f = corert.create_dense_tensor.ui64 {shape = [1 : i64], value = [2 : ui64]}
  %ch3 = "corert.print_tensorhandle"(%a, %ch2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %ch4, %g = corert.cond %x @pick @pick (%ch3, %a) : (!corert.tensorhandle) -> (!corert.tensorhandle)
  %ch5, %i = corert.while @pick @pick (%ch4, %g) : (!corert.tensorhandle) -> (!corert.tensorhandle)
  %j = corert.tensorhandle_to_int32 %i
  %ch6, %k = tfrt.case %j [@pick, @pick] (%ch5, %i) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %ch7, %l = tfrt.call @pick(%ch6, %k) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %ch8, %m = tfrt.cond %p @pick @pick (%ch7, %l) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %o = tfrt.while %p @next(%n) parallel_iterations(4) : (i32) -> (i32)
  %q = tfrt.constant.i32 -42
  %r = tfrt.constant.i1 true
  %s = tfrt.constant.f32 0.5
  %t = tfrt.add.i32 %o, %q
  %u = tfrt.if %p, %n, %t : (i32, i32) -> (i32) {
    tfrt.return %n : i32
  } else {
    tfrt.return %t : i32
  }
  %v, %ch9 = tfrt.repeat.i32 %n, %u, %ch8 : i32, !tfrt.chain {
    %ch10 = tfrt.print.i32 %u, %ch8
    tfrt.repeat.i32 %u {
      tfrt.return
    }
    tfrt.return %u, %ch10 : i32, !tfrt.chain
  }
  %ch11 = tfrt.merge.chains %ch9, %v : !tfrt.chain, i32
  tfrt.return %ch11, %v : !tfrt.chain, i32
}

func.func @pick(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}

func.func @next(%n: i32) -> (i32, i1) {
  %p = tfrt.constant.i1 0
  tfrt.return %n, %p : i32, i1
}
"""


def test_all_custom_forms_print_as_they_are_read() -> None:
    assert again(FORMS) == FORMS
    used = {kernel.name for function in read_program(FORMS).functions for kernel in function.body.walk()}
    assert OPEN - used == {"corert.execute_crt_op"}


GENERIC = """
module {
  func.func private @f(%h: !corert.ophandler, %x: !corert.tensorhandle, %n: i32) -> i32 attributes {tfrt.sync, a = 1} {
    %0 = "tfrt.new.chain"() : () -> !tfrt.chain loc("a.mlir":1:2)
    %1:2 = "corert.executeop.seq"(%h, %0, %x) {op_name = "an.op", op_attrs = [["axis", 1 : i32]], op_func_attrs = [["g", @g]]}
        : (!corert.ophandler, !tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
    %2 = "tfrt.constant.i1"() <{value = true}> : () -> i1
    %3 = "tfrt.if"(%2, %n) ({
    ^bb0(%y: i32):
      "tfrt.return"(%y) : (i32) -> ()
    }, {
    ^bb0(%z: i32):
      %4 = "tfrt.add.i32"(%z, %z) : (i32, i32) -> i32
      "tfrt.return"(%4) : (i32) -> ()
    }) : (i1, i32) -> i32
    %5 = "tfrt.call"(%3) {callee = @g} : (i32) -> i32
    %op = "corert.make_composite_op"() {fn = @k} : () -> !corert.op
    %6 = "corert.execute_crt_op"(%op, %1#1) {op_attrs = [["a", 2.0]], op_func_attrs = []}
        : (!corert.op, !corert.tensorhandle) -> !corert.tensorhandle
    tfrt.return %5 : i32 loc(fused["x", "y"("z":1:2)])
  }
  func @g(%a: i32) -> i32 { tfrt.return %a : i32 }  // the older keyword
  func @k(%a: !corert.tensorhandle) -> (!corert.tensorhandle) { tfrt.return %a : !corert.tensorhandle }
}
"""
NEWER = """\
func.func @f(%h: !corert.ophandler, %x: !corert.tensorhandle, %n: i32) -> i32 attributes {tfrt.sync, a = 1 : i64} {
  %0 = tfrt.new.chain
  %v1_0, %v1_1 = corert.executeop.seq(%h, %0) "an.op"(%x) {axis = 1 : i32, g = @g} : 1
  %2 = tfrt.constant.i1 true
  %3 = tfrt.if %2, %n : (i32) -> (i32) {
    tfrt.return %n : i32
  } else {
    %4 = tfrt.add.i32 %n, %n
    tfrt.return %4 : i32
  }
  %5 = tfrt.call @g(%3) : (i32) -> (i32)
  %op = "corert.make_composite_op"() {fn = @k} : () -> !corert.op
  %6 = "corert.execute_crt_op"(%op, %v1_1) {op_attrs = [["a", 2.0 : f64]], op_func_attrs = []} : (!corert.op, \
!corert.tensorhandle) -> !corert.tensorhandle
  tfrt.return %5 : i32
}

func.func @g(%a: i32) -> i32 {
  tfrt.return %a : i32
}

func.func @k(%a: !corert.tensorhandle) -> !corert.tensorhandle {
  tfrt.return %a : !corert.tensorhandle
}
"""


def test_the_generic_form_prints_in_the_custom_one() -> None:
    assert again(GENERIC) == NEWER


def test_the_documents_spelling_prints_in_the_newer_one() -> None:
    assert again(DOCUMENT) == """\
func.func @example() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %cpu = corert.get_op_handler %ch "cpu"
  %lhs = corert.executeop(%cpu) "test.create_dense_tensor"() {shape = [1 : i64, 1 : i64], values = [-1.0 : f32]} : 1
  %rhs = corert.executeop(%cpu) "test.create_dense_tensor"() {shape = [1 : i64, 1 : i64], values = [-2.0 : f32]} : 1
  %result = corert.executeop(%cpu) "test.add"(%lhs, %rhs) : 1
  %ch0 = tfrt.new.chain
  %ch1 = "corert.print_tensorhandle"(%result, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %ch1 : !tfrt.chain
}
"""


@pytest.mark.parametrize(("written", "printed"), [
    ('corert.get_op_handler(%c, "cpu")', '%h = corert.get_op_handler %c "cpu"'),
    ('corert.get_op_handler %c "cpu"', '%h = corert.get_op_handler %c "cpu"'),
    ('corert.get_op_handler(%c, "a\\22b") : (!tfrt.chain) -> !corert.ophandler', '%h = corert.get_op_handler %c "a\\22b"'),
    ('"corert.get_op_handler"(%c) {name = "x"} : (!tfrt.chain) -> !corert.ophandler', '%h = corert.get_op_handler %c "x"')])
def test_a_kernel_of_fixed_types_may_be_written_in_several_ways(written: str, printed: str) -> None:
    text = f"func.func @f(%c: !tfrt.chain) {{ %h = {written} tfrt.return }}"
    assert again(text).split("\n")[1].strip() == printed


def test_results_are_counted_by_their_names_where_the_text_gives_no_number() -> None:
    text = """func.func @f(%h: !corert.ophandler, %c: !tfrt.chain) {
  %d = corert.executeop.seq(%h, %c) "a"()
  %e:3 = corert.executeop.seq(%h, %d) "b"()
  %x, %y = corert.executeop(%h) "c"(%e#1, %e#2)
  corert.executeop(%h) "d"()
  tfrt.return }"""
    kernels = read_program(text).function("f").body.kernels
    assert [len(k.results) for k in kernels] == [1, 3, 2, 0]
    assert [line.split('"')[0].strip() + line[-4:] for line in again(text).split("\n")[1:5]] == [
        "%d = corert.executeop.seq(%h, %c) : 0", "%e_0, %e_1, %e_2 = corert.executeop.seq(%h, %d) : 2",
        "%x, %y = corert.executeop(%h) : 2", "corert.executeop(%h) : 0"]


def test_names_that_meet_again_in_regions_print_apart() -> None:
    text = "func.func @f(%p: i1, %a: i32) { tfrt.if %p, %a : (i32) -> () { %b = tfrt.add.i32 %a, %a tfrt.return } " \
           "%b = tfrt.add.i32 %a, %a tfrt.return }"
    assert [line.strip() for line in again(text).split("\n")[1:7]] == [
        "tfrt.if %p, %a : (i32) -> () {", "%b = tfrt.add.i32 %a, %a", "tfrt.return", "}", "%b_1 = tfrt.add.i32 %a, %a",
        "tfrt.return"]


@pytest.mark.parametrize(("text", "expected"), [
    (DOCUMENT, True), (FORMS, True), (GENERIC, True), ("func.func @f() { tfrt.return }", True),
    ("", False), ("module {}", False), ("// tfrt.new.chain\nmodule {}", False),
    ('module { func.func @main() { return } } // corert.x', False),
    ('%0 = "tosa.add"(%a, %b) : (i, i) -> i loc("tfrt.add")', False)])
def test_a_kernel_program_shows_in_its_text(text: str, expected: bool) -> None:
    assert is_program(text) is is_program(text.encode()) is expected


def test_an_empty_text_is_an_empty_program() -> None:
    assert isinstance(read_program(""), Program) and not read_program("  // nothing\n").functions
