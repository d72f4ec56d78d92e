"""Kinds of tensors in one handle type: dense, scalar and of strings; what takes which, and what converts them."""
from __future__ import annotations

import pytest

from .programs import CPU, body, dense, run, shown

SCALAR = '%s = corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [2], value = 3 : i32} : 1\n'
DENSE = dense("%d", "[2]", "[1 : i32, 2 : i32]")
STRINGS = '%s = corert.const_string_tensor {shape = [2], value = ["a", "b"]}\n'


@pytest.mark.parametrize(("operands", "expected"), [
    ("%d, %d", "DenseHostTensor dtype = i32, shape = [2], values = [2, 4]"),
    ("%d, %s", "DenseHostTensor dtype = i32, shape = [2], values = [4, 5]"),
    ("%s, %d", "DenseHostTensor dtype = i32, shape = [2], values = [4, 5]"),
    ("%s, %s", "ScalarHostTensor dtype = i32, shape = [2], value = 6")])
def test_one_operation_adds_dense_and_scalar_tensors(operands: str, expected: str) -> None:
    text = f'{SCALAR}{DENSE} %r = corert.executeop(%cpu) "tfrt_test.add"({operands}) : 1\n %end = {shown("%r", "%ch0")}'
    assert body(text) == [expected]


def test_a_scalar_tensor_becomes_dense_where_an_operation_wants_that() -> None:
    text = f'{SCALAR}{DENSE} %r = corert.executeop(%cpu) "tosa.add"(%s, %d) : 1\n %c = {shown("%r", "%ch0")}\n'
    assert body(f"{text} %end = {shown('%s', '%c')}") == ["DenseHostTensor dtype = i32, shape = [2], values = [4, 5]",
                                                          "ScalarHostTensor dtype = i32, shape = [2], value = 3"]


@pytest.mark.parametrize("operation", ['"tosa.abs"(%s)', '"add"(%s, %s)', '"tosa.add"(%s, %d)', '"tfrt_test.add"(%s, %d)'])
def test_an_operation_on_numbers_refuses_strings(operation: str) -> None:
    text = f"func.func @f() -> !corert.tensorhandle {{{CPU}{STRINGS}{DENSE} %r = corert.executeop(%cpu) {operation} : 1\n"
    printed, errors = run(f"{text} tfrt.return %r : !corert.tensorhandle }}")
    assert len(errors) == 1 and printed[-1].startswith("'f' returned <<error: ")


def test_numbers_are_converted_by_an_operation_and_not_by_themselves() -> None:
    floats = dense("%f", "[2]", "[1.5 : f32, 2.5 : f32]")
    cast = '%c = corert.executeop(%cpu) "tfrt_test.cast"(%d) {type = f32} : 1\n'
    add = '%r = corert.executeop(%cpu) "tfrt_test.add"({0}, %f) : 1\n'
    assert body(f"{DENSE}{floats}{cast}{add.format('%c')} %end = {shown('%r', '%ch0')}") == [
        "DenseHostTensor dtype = f32, shape = [2], values = [2.500000e+00, 4.500000e+00]"]
    text = f"func.func @f() -> !corert.tensorhandle {{{CPU}{DENSE}{floats}{add.format('%d')}"
    assert run(f"{text} tfrt.return %r : !corert.tensorhandle }}")[1] == [
        "6: incompatible dtypes for tfrt_test.add: tensor<2xi32> and tensor<2xf32>"]
