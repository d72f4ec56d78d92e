"""Operations in kernel programs: what they make, what they print, when they run."""
from __future__ import annotations

import pytest

from .programs import CPU, body, dense, run, shown

DOCUMENT = """
func @example() -> !tfrt.chain {
  %cpu = corert.get_op_handler("cpu")

  // Create TensorHandles
  %lhs = corert.executeop(%cpu)
    "test.create_dense_tensor"() { shape = [1, 1], values = [-1.0 : f32] }
  %rhs = corert.executeop(%cpu)
    "test.create_dense_tensor"() { shape = [1, 1], values = [-2.0 : f32] }

  %result = corert.executeop(%cpu) "test.add" (%lhs, %rhs)
  %ch0 = tfrt.new.chain
  %ch1 = corert.print_tensorhandle(%result, %ch0)
  tfrt.return %ch1 : !tfrt.chain
}
"""


def test_the_example_of_the_design_document_runs() -> None:
    assert run(DOCUMENT) == (["--- Running 'example'",
                              "DenseHostTensor dtype = f32, shape = [1, 1], values = [-3.000000e+00]",
                              "'example' returned !tfrt.chain value"], [])


def test_operations_of_tensorflow_and_of_tosa_run_by_their_names() -> None:
    lines, errors = run("""func @f() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %cpu = corert.get_op_handler %ch "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() { shape = [2, 2], values = [-1.0 : f32] } : 1
  %axis = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() { shape = [1], values = [1 : i32] } : 1
  %b = corert.executeop(%cpu) "tf.Add"(%a, %a) : 1
  %c = corert.executeop(%cpu) "tf.MatMul"(%b, %a) {transpose_b = true} : 1
  %d = corert.executeop(%cpu) "tf.Sum"(%c, %axis) {keep_dims = true} : 1
  %e = corert.executeop(%cpu) "tosa.clamp"(%d) {min_val = 0.5 : f32, max_val = 7.0 : f32} : 1
  %f = corert.executeop(%cpu) "tf.Cast"(%e) {DstT = i32} : 1
  %ch1 = "corert.print_tensorhandle"(%f, %ch) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %g = corert.executeop(%cpu) "tf.Add"(%a, %axis) : 1
  %ch2 = "corert.print_tensorhandle"(%g, %ch1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %ch2 : !tfrt.chain
}""")
    wrong = "tf.Add: tosa.add takes operands of one type, not f32 and i32"
    assert lines == ["--- Running 'f'", "DenseHostTensor dtype = i32, shape = [2, 1], values = [7, 7]",
                     f"'f' returned <<error: {wrong}>>"]
    assert len(errors) == 1 and wrong in errors[0]


# Tensors and how they print

@pytest.mark.parametrize(("kernel", "expected"), [
    ("const_dense_tensor dense<[[0, 1], [2, 3]]> : tensor<2x2xi32>", "i32, shape = [2, 2], values = [0, 1, 2, 3]"),
    ("const_dense_tensor dense<7> : tensor<3xi8>", "i8, shape = [3], values = [7, 7, 7]"),
    ("const_dense_tensor dense<-0.5> : tensor<f64>", "f64, shape = [], values = [-5.000000e-01]"),
    ("const_dense_tensor dense<> : tensor<0x2xi16>", "i16, shape = [0, 2], values = []"),
    ("const_dense_tensor dense<1> : tensor<17xi64>", f"i64, shape = [17], values = [{', '.join('1' * 16)}, ... ]"),
    ("create_dense_tensor.ui64 {shape = [1], value = [18446744073709551615 : ui64]}",
     "ui64, shape = [1], values = [18446744073709551615]"),
    ("create_dense_tensor.i1 {shape = [2], value = [false, true]}", "i1, shape = [2], values = [0, 1]"),
    ("create_dense_tensor.i1 {shape = [2], value = [1 : i1]}", "i1, shape = [2], values = [1, 1]"),
    ("create_dense_tensor.i8 {shape = [2], value = [-1 : i8]}", "i8, shape = [2], values = [-1, -1]"),
    ("create_dense_tensor.i16 {shape = [], value = [-300 : i16]}", "i16, shape = [], values = [-300]"),
    ("create_dense_tensor.i32 {shape = [1, 1], value = [5 : i32]}", "i32, shape = [1, 1], values = [5]"),
    ("create_dense_tensor.i64 {shape = [1], value = [5]}", "i64, shape = [1], values = [5]"),
    ("create_dense_tensor.ui8 {shape = [1], value = [255 : ui8]}", "ui8, shape = [1], values = [255]"),
    ("create_dense_tensor.ui16 {shape = [1], value = [65535 : ui16]}", "ui16, shape = [1], values = [65535]"),
    ("create_dense_tensor.ui32 {shape = [1], value = [2 : ui32]}", "ui32, shape = [1], values = [2]"),
    ("create_dense_tensor.f32 {shape = [2], value = [0.1 : f32]}", "f32, shape = [2], values = [1.000000e-01, 1.000000e-01]"),
    ("create_dense_tensor.f64 {shape = [1], value = [1.5e300]}", "f64, shape = [1], values = [1.500000e+300]"),
    ("create_dense_tensor.f16 {shape = [2], value = [1.0 : f16, -2.0 : f16]}",
     "f16, shape = [2], values = [fp16(15360), fp16(49152)]"),
    ("create_dense_tensor.bf16 {shape = [1], value = [2.5 : bf16]}", "bf16, shape = [1], values = [bf16(16416)]"),
    ("const_dense_tensor dense<0x7F800000> : tensor<1xf32>", "f32, shape = [1], values = [inf]"),
])
def test_a_constant_tensor_prints_its_type_shape_and_values(kernel: str, expected: str) -> None:
    assert body(f"%a = corert.{kernel}\n %end = {shown('%a', '%ch0')}") == [f"DenseHostTensor dtype = {expected}"]


@pytest.mark.parametrize(("attributes", "expected"), [
    ('shape = [2], value = ["string", "tensor"]', 'shape = [2], values = ["string", "tensor"]'),
    ('shape = [], value = ["string"]', 'shape = [], values = ["string"]'),
    ('shape = [2], value = ["same"]', 'shape = [2], values = ["same", "same"]'),
    ('shape = [1, 2], value = ["", "\\22\\C3\\A9"]', 'shape = [1, 2], values = ["", ""é"]'),
])
def test_a_string_tensor_prints_its_strings(attributes: str, expected: str) -> None:
    text = f"%a = corert.const_string_tensor {{{attributes}}}\n"
    assert body(f"{text} %end = {shown('%a', '%ch0')}") == [f"StringHostTensor {expected}"]
    assert body(f'{text} %end = corert.executeop.seq(%cpu, %ch0) "tfrt_test.print"(%a) : 0') == [f"StringHostTensor {expected}"]


def test_one_value_fills_the_whole_shape() -> None:
    assert body(dense("%a", "[1, 3]", "[1 : i32]") + f"%end = {shown('%a', '%ch0')}") == [
        "DenseHostTensor dtype = i32, shape = [1, 3], values = [1, 1, 1]"]


def test_a_scalar_tensor_prints_one_value_and_adds_to_another_one() -> None:
    text = '%a = corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [2, 2], value = 3 : i32} : 1\n'
    text += '%b = corert.executeop(%cpu) "tfrt_test.add"(%a, %a) : 1\n' + dense("%c", "[2, 2]", "[1 : i32]")
    text += f'%d = corert.executeop(%cpu) "tfrt_test.add"(%b, %c) : 1\n %e = {shown("%b", "%ch0")}\n %end = {shown("%d", "%e")}'
    assert body(text) == ["ScalarHostTensor dtype = i32, shape = [2, 2], value = 6",
                          "DenseHostTensor dtype = i32, shape = [2, 2], values = [7, 7, 7, 7]"]


# Operations

A = dense("%a", "[1, 4]", "[1 : i32, 0 : i32, 2 : i32, 0 : i32]")
M = dense("%a", "[2, 2]", "[1.0 : f32, 2.0 : f32, 3.0 : f32, 4.0 : f32]")


@pytest.mark.parametrize(("make", "operation", "expected"), [
    (A, '"tfrt_test.add"(%a, %a)', "i32, shape = [1, 4], values = [2, 0, 4, 0]"),
    (A, '"tfrt_test.equal"(%a, %a)', "i1, shape = [1, 4], values = [1, 1, 1, 1]"),
    (A, '"tfrt_test.argmax"(%a) {axis = 1 : i32}', "i32, shape = [1], values = [2]"),
    (A, '"tfrt_test.reduce_mean"(%a) {axis = 0 : i32}', "i32, shape = [4], values = [1, 0, 2, 0]"),
    (A, '"tfrt_test.reduce_mean"(%a) {axis = -1 : i32}', "i32, shape = [1], values = [0]"),
    (M, '"tfrt_test.reduce_mean"(%a) {axis = 1 : i32}', "f32, shape = [2], values = [1.500000e+00, 3.500000e+00]"),
    (M, '"tfrt_test.matmul"(%a, %a)',
     "f32, shape = [2, 2], values = [7.000000e+00, 1.000000e+01, 1.500000e+01, 2.200000e+01]"),
    (M, '"tfrt_test.matmul"(%a, %a) {transpose_a = false, transpose_b = true}',
     "f32, shape = [2, 2], values = [5.000000e+00, 1.100000e+01, 1.100000e+01, 2.500000e+01]"),
    (M, '"tfrt_test.matmul"(%a, %a) {transpose_a = true, transpose_b = 0 : i1}',
     "f32, shape = [2, 2], values = [1.000000e+01, 1.400000e+01, 1.400000e+01, 2.000000e+01]"),
    (M, '"tosa.add"(%a, %a)', "f32, shape = [2, 2], values = [2.000000e+00, 4.000000e+00, 6.000000e+00, 8.000000e+00]"),
    (M, '"tosa.reduce_sum"(%a) {axis = 0 : i32}', "f32, shape = [1, 2], values = [4.000000e+00, 6.000000e+00]"),
])
def test_an_operation_gives_its_result(make: str, operation: str, expected: str) -> None:
    text = f"{make} %r = corert.executeop(%cpu) {operation} : 1\n %end = {shown('%r', '%ch0')}"
    assert body(text) == [f"DenseHostTensor dtype = {expected}"]


def test_an_operation_gives_as_many_handles_as_it_has_results() -> None:
    text = f'{M} %b, %c = corert.executeop(%cpu) "split"(%a) {{sections = 2, axis = 0}} : 2\n'
    text += f"%d = {shown('%c', '%ch0')}\n %end = {shown('%b', '%d')}"
    assert body(text) == ["DenseHostTensor dtype = f32, shape = [1, 2], values = [3.000000e+00, 4.000000e+00]",
                          "DenseHostTensor dtype = f32, shape = [1, 2], values = [1.000000e+00, 2.000000e+00]"]


def test_half_floats_print_as_bit_patterns_and_convert() -> None:
    text = dense("%a", "[1, 1]", "[-1.0 : f32]")
    text += '%h = corert.executeop(%cpu) "tfrt_test.cast"(%a) {type = "f16"} : 1\n'
    text += '%r = corert.executeop(%cpu) "tfrt_test.relu"(%h) : 1\n'
    text += '%f = corert.executeop(%cpu) "tfrt_test.cast"(%r) {type = f32} : 1\n'
    text += f'%c = {shown("%h", "%ch0")}\n %d = {shown("%r", "%c")}\n %end = {shown("%f", "%d")}'
    assert body(text) == ["DenseHostTensor dtype = f16, shape = [1, 1], values = [fp16(48128)]",
                          "DenseHostTensor dtype = f16, shape = [1, 1], values = [fp16(0)]",
                          "DenseHostTensor dtype = f32, shape = [1, 1], values = [0.000000e+00]"]


def test_an_operation_may_have_no_results_and_attributes_but_no_use() -> None:
    assert body('corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1\n'
                '%end = corert.executeop.seq(%cpu, %ch0) "tfrt_test.print"() : 0') == []


# Handles and other values

def test_a_shape_of_a_handle_prints() -> None:
    text = dense("%a", "[1, 4]", "[1 : i32]")
    text += '%s = "corert.tensorhandle_to_shape"(%a, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape\n'
    text += '%c = "ts.print_shape"(%s, %ch0) : (!ts.shape, !tfrt.chain) -> (!tfrt.chain)\n'
    text += '%t = "ts.build_shape"() {value = [1, 57, 92]} : () -> !ts.shape\n'
    text += '%end = "ts.print_shape"(%t, %c) : (!ts.shape, !tfrt.chain) -> (!tfrt.chain)'
    assert body(text) == ["shape = [1, 4]", "shape = [1, 57, 92]"]


def test_a_handle_becomes_a_tensor_and_a_handle_again() -> None:
    text = dense("%a", "[2]", "[4 : i32]")
    text += '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    text += '%t = "corert.tensorhandle_to_ht"(%b, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !t.tensor\n'
    text += '%h = "corert.ht_to_tensorhandle"(%t, %ch0) : (!t.tensor, !tfrt.chain) -> !corert.tensorhandle\n'
    assert body(f"{text} %end = {shown('%h', '%ch0')}") == ["DenseHostTensor dtype = i32, shape = [2], values = [4, 4]"]


def test_a_handle_of_one_integer_becomes_a_number() -> None:
    text = dense("%a", "[1]", "[-4 : i32]") + '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    assert body(f"{text} %n = corert.tensorhandle_to_int32 %b\n %end = tfrt.print.i32 %n, %ch0") == ["int32 = -4"]


@pytest.mark.parametrize(("type", "number", "expected"), [
    ("i1", "true", "int1 = 1"), ("i1", "0", "int1 = 0"), ("i8", "-128", "int8 = -128"), ("i16", "7", "int16 = 7"),
    ("i32", "-41", "int32 = -41"), ("i64", "9223372036854775807", "int64 = 9223372036854775807"), ("ui8", "255", "uint8 = 255"),
    ("ui16", "3", "uint16 = 3"), ("ui32", "3", "uint32 = 3"), ("ui64", "3", "uint64 = 3"),
    ("f32", "0.5", "f32 = 0.500000"), ("f64", "-1.0e2", "f64 = -100.000000")])
def test_numbers_print(type: str, number: str, expected: str) -> None:
    assert body(f"%n = tfrt.constant.{type} {number}\n %end = tfrt.print.{type} %n, %ch0") == [expected]


@pytest.mark.parametrize(("kernel", "expected"), [
    ("tfrt.add.i32", "int32 = -2147483648"), ("tfrt.equal.i32", "int1 = 0"), ("tfrt.lessequal.i32", "int1 = 0")])
def test_arithmetic_of_numbers(kernel: str, expected: str) -> None:
    printer = "tfrt.print.i1" if "int1" in expected else "tfrt.print.i32"
    assert body(f"%a = tfrt.constant.i32 2147483647\n %b = tfrt.constant.i32 1\n %c = {kernel} %a, %b\n"
                f"%end = {printer} %c, %ch0") == [expected]


def test_chains_merge_when_all_that_is_merged_is_there() -> None:
    text = '%one = tfrt.constant.i32 1\n %n = "tfrt_test.async_add.i32"(%one, %one) : (i32, i32) -> i32\n'
    text += "%c = tfrt.print.i32 %n, %ch0\n %m = tfrt.merge.chains %c, %n : !tfrt.chain, i32\n"
    assert body(text + '%end = "tfrt_test.print_hello"(%m) : (!tfrt.chain) -> !tfrt.chain') == [
        "int32 = 2", "hello host executor!"]


# When operations run

SCALAR = '%a = corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [2, 2], value = 1 : i32} : 1\n'


@pytest.mark.parametrize("operation", ["async.noop", "async.noop_no_md"])
def test_an_asynchronous_operation_gives_its_result_later(operation: str) -> None:
    text = f'{SCALAR} %b = corert.executeop(%cpu) "tfrt_test.{operation}"(%a) : 1\n %c = {shown("%b", "%ch0")}\n'
    scalar = "ScalarHostTensor dtype = i32, shape = [2, 2], value = 1"
    assert body(text + '%end = corert.executeop.seq(%cpu, %c) "tfrt_test.print"(%b) : 0') == [scalar, scalar]


def test_what_does_not_wait_is_not_held_up() -> None:
    text = f'{SCALAR} %b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n %c = {shown("%b", "%ch0")}\n'
    text += f'%d = {shown("%a", "%ch0")}\n %e = "tfrt_test.print_hello"(%d) : (!tfrt.chain) -> !tfrt.chain\n'
    assert body(text + "%end = tfrt.merge.chains %c, %e : !tfrt.chain, !tfrt.chain") == [
        "ScalarHostTensor dtype = i32, shape = [2, 2], value = 1", "hello host executor!",
        "ScalarHostTensor dtype = i32, shape = [2, 2], value = 1"]


def test_metadata_is_known_before_the_data_only_where_there_is_a_metadata_function() -> None:
    shape = '%s{0} = "corert.tensorhandle_to_shape"(%b{0}, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape\n'
    shape += '%c{0} = "ts.print_shape"(%s{0}, %ch0) : (!ts.shape, !tfrt.chain) -> !tfrt.chain\n'
    text = dense("%a", "[3]", "[1 : i32]") + dense("%x", "[5]", "[1 : i32]")
    text += '%b0 = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%a) : 1\n' + shape.format(0)
    text += '%b1 = corert.executeop(%cpu) "tfrt_test.async.noop"(%x) : 1\n' + shape.format(1)
    assert body(text + "%end = tfrt.merge.chains %c0, %c1 : !tfrt.chain, !tfrt.chain") == ["shape = [5]", "shape = [3]"]


def test_side_effects_keep_the_order_of_their_chain_not_of_their_data() -> None:
    text = f'{SCALAR} %b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    text += '%c = corert.executeop(%cpu) "tfrt_test.add"(%b, %b) : 1\n'
    text += '%d = corert.executeop.seq(%cpu, %ch0) "tfrt_test.print"(%c) : 0\n'
    text += '%end = corert.executeop.seq(%cpu, %d) "tfrt_test.print"(%a) : 0'
    assert body(text) == ["ScalarHostTensor dtype = i32, shape = [2, 2], value = 2",
                          "ScalarHostTensor dtype = i32, shape = [2, 2], value = 1"]


def test_the_order_of_kernels_in_the_text_means_nothing_where_no_chain_says_so() -> None:
    text = '%n = "tfrt_test.async_add.i32"(%one, %one) : (i32, i32) -> i32\n %c = tfrt.print.i32 %n, %ch0\n'
    assert body(f"%one = tfrt.constant.i32 1\n{text} %d = tfrt.print.i32 %one, %ch0\n"
                "%end = tfrt.merge.chains %c, %d : !tfrt.chain, !tfrt.chain") == ["int32 = 1", "int32 = 2"]


def test_functions_run_in_order_and_those_with_arguments_do_not() -> None:
    text = f"func.func @a(%x: i32) {{ tfrt.return }} func.func @b() -> i32 {{{CPU}"
    text += " %n = tfrt.constant.i32 4 tfrt.return %n : i32 }"
    assert run(text) == (["--- Not running 'a' because it has arguments.", "--- Running 'b'", "'b' returned 4"], [])


def test_a_function_gives_back_several_results() -> None:
    printed, _ = run("func.func @f() -> (i32, f32, !tfrt.chain) {\n %a = tfrt.constant.i32 -1\n %b = tfrt.constant.f32 2.5\n"
                     " %c = tfrt.new.chain\n tfrt.return %a, %b, %c : i32, f32, !tfrt.chain\n}")
    assert printed == ["--- Running 'f'", "'f' returned -1,2.500000,!tfrt.chain value"]
