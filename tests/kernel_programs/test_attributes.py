"""Attributes of operations as values of a program, and as the text's attributes reach an operation."""
from __future__ import annotations

import pytest
from tosaic.jit.op_by_op.program_text.reader import read_program
from tosaic.jit.op_by_op.programs.attribute_conversion import attributes_lines, operation_attributes
from tosaic.runtime.errors import Problem

from .programs import run

NEW = '%a = "corert.create_op_attrs"() : () -> !corert.opattrs\n'
CHAINED = "(!corert.opattrs, !tfrt.chain) -> !tfrt.chain"


def attributes(*kernels: str) -> list[str]:
    """What kernels on the attributes %a print; each gets the chain of the one before."""
    text = f"func.func @f() -> !tfrt.chain {{\n %c0 = tfrt.new.chain\n {NEW}"
    for number, kernel in enumerate(kernels):
        name, _, given = kernel.partition(" ")
        text += f' %c{number + 1} = "{name}"(%a, %c{number}) {given} : {CHAINED}\n'
    printed, errors = run(f"{text} tfrt.return %c{len(kernels)} : !tfrt.chain }}")
    assert not errors
    return printed[1:-1]


SET, ARRAY, SHOW = "corert.op_attrs_set.", "corert.op_attrs_set_array.", "tfrt_test.corert.op_attrs_print"


def test_attributes_are_empty_at_first() -> None:
    assert attributes(SHOW) == ["OpAttrs is empty"]


@pytest.mark.parametrize(("kernel", "expected"), [
    (f"{SET}bool {{key = \"k\", value = false}}", "type=BOOL value=0"),
    (f"{SET}bool {{key = \"k\", value = 1 : i1}}", "type=BOOL value=1"),
    (f"{SET}i8 {{key = \"k\", value = -1 : i8}}", "type=I8 value=-1"),
    (f"{SET}i16 {{key = \"k\", value = 300 : i16}}", "type=I16 value=300"),
    (f"{SET}i32 {{key = \"k\", value = 3 : i32}}", "type=I32 value=3"),
    (f"{SET}i64 {{key = \"k\", value = 3}}", "type=I64 value=3"),
    (f"{SET}ui8 {{key = \"k\", value = 255 : ui8}}", "type=UI8 value=255"),
    (f"{SET}ui16 {{key = \"k\", value = 3 : ui16}}", "type=UI16 value=3"),
    (f"{SET}ui32 {{key = \"k\", value = 3 : ui32}}", "type=UI32 value=3"),
    (f"{SET}ui64 {{key = \"k\", value = 18446744073709551615 : ui64}}", "type=UI64 value=18446744073709551615"),
    (f"{SET}f32 {{key = \"k\", value = 1.0 : f32}}", "type=F32 value=1.0"),
    (f"{SET}f64 {{key = \"k\", value = 0.1}}", "type=F64 value=0.1"),
    (f"{SET}str {{key = \"k\", value = \"some text\"}}", 'type=STRING value="some text"'),
    (f"{SET}dense {{key = \"k\", value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>}}",
     "type=DENSE value=dtype=I32, rank=2, elt_count=4"),
    (f"{SET}dtype {{key = \"k\", value = bf16}}", "type=DTYPE value=BF16"),
    (f"{SET}shape {{key = \"k\", value = #corert.shape<1x?x3>}}", "type=SHAPE value=<1x?x3>"),
    (f"{SET}shape {{key = \"k\", value = #corert.shape<*>}}", "type=SHAPE value=<*>"),
    (f"{SET}shape {{key = \"k\", value = #corert.shape<>}}", "type=SHAPE value=<>"),
    (f"{SET}shape {{key = \"k\", value = [4, 5]}}", "type=SHAPE value=<4x5>"),
    (f"{SET}aggregate {{key = \"k\", value = [1 : i32, [2.0 : f32], \"x\"]}}",
     'type=AGGREGATE value={0: type=I32 value=1, 1: type=F32 value=[2.0], 2: type=STRING value="x"}'),
    (f"{ARRAY}i32 {{key = \"k\", value = [1 : i32, 65536 : i32]}}", "type=I32 value=[1, 65536]"),
    (f"{ARRAY}i64 {{key = \"k\", value = []}}", "type=I64 value=[]"),
    (f"{ARRAY}f32 {{key = \"k\", value = [1.0 : f32, -2.5 : f32]}}", "type=F32 value=[1.0, -2.5]"),
    (f"{ARRAY}bool {{key = \"k\", value = [true, 0 : i1]}}", "type=BOOL value=[1, 0]"),
    (f"{ARRAY}str {{key = \"k\", value = [\"a\", \"b\"]}}", 'type=STRING value=["a", "b"]'),
    (f"{ARRAY}dtype {{key = \"k\", value = [f32, i1]}}", "type=DTYPE value=[F32, I1]"),
    (f"{ARRAY}shape {{key = \"k\", value = [[1, 2], #corert.shape<?>]}}", "type=SHAPE value=[<1x2>, <?>]"),
    (f"{ARRAY}i32 {{key = \"k\", value = [{', '.join(f'{n} : i32' for n in range(1, 9))}]}}",
     "type=I32 value=[1, 2, 3, 4, 5...]"),
])
def test_an_attribute_prints_its_type_and_value(kernel: str, expected: str) -> None:
    assert attributes(kernel, SHOW) == ["OpAttrs contains 1 entries:", f"  'k' {expected}"]


def test_attributes_print_sorted_by_name() -> None:
    assert attributes(f'{SET}i32 {{key = "b", value = 1 : i32}}', f'{SET}str {{key = "a", value = "x"}}', SHOW) == [
        "OpAttrs contains 2 entries:", "  'a' type=STRING value=\"x\"", "  'b' type=I32 value=1"]


def test_there_may_be_more_than_six_attributes() -> None:
    names = "jihgfedcba"
    assert attributes(*(f'{SET}i32 {{key = "{name}", value = {n} : i32}}' for n, name in enumerate(names)), SHOW) == [
        "OpAttrs contains 10 entries:", *(f"  '{name}' type=I32 value={names.index(name)}" for name in sorted(names))]


def test_frozen_attributes_stay_as_they_are() -> None:
    text = f"""func.func @f() -> !tfrt.chain {{
 %c0 = tfrt.new.chain
 {NEW} %c1 = "{SET}i32"(%a, %c0) {{key = "x", value = 1 : i32}} : {CHAINED}
 %f, %c2 = "tfrt_test.corert.op_attrs_freeze"(%a, %c1) : (!corert.opattrs, !tfrt.chain) -> (!corert.opattrs_ref, !tfrt.chain)
 %c3 = "{SET}i32"(%a, %c2) {{key = "y", value = 2 : i32}} : {CHAINED}
 %c4 = "tfrt_test.corert.op_attrs_ref_print"(%f, %c3) : (!corert.opattrs_ref, !tfrt.chain) -> !tfrt.chain
 %c5 = "{SHOW}"(%a, %c4) : {CHAINED}
 tfrt.return %c5 : !tfrt.chain }}"""
    assert run(text)[0][1:-1] == ["OpAttrs contains 1 entries:", "  'x' type=I32 value=1", "OpAttrs contains 2 entries:",
                                  "  'x' type=I32 value=1", "  'y' type=I32 value=2"]


def test_a_name_is_set_once_and_the_first_value_stays() -> None:
    text = f"""func.func @f() -> (!tfrt.chain, !tfrt.chain) {{
 %c0 = tfrt.new.chain
 {NEW} %c1 = "{SET}i32"(%a, %c0) {{key = "x", value = 1 : i32}} : {CHAINED}
 %c2 = "{SET}i32"(%a, %c1) {{key = "x", value = 2 : i32}} : {CHAINED}
 %c3 = "{SHOW}"(%a, %c1) : {CHAINED}
 tfrt.return %c2, %c3 : !tfrt.chain, !tfrt.chain }}"""
    printed, errors = run(text)
    assert printed[1:] == ["OpAttrs contains 1 entries:", "  'x' type=I32 value=1",
                           "'f' returned <<error: the attribute 'x' has been set before>>,!tfrt.chain value"]
    assert errors == ["5: the attribute 'x' has been set before"]


# Attributes that the text gives an operation

def passed(text: str) -> list[str]:
    """The attributes that an operation gets."""
    program = read_program("func.func @g() { tfrt.return } func.func @f() { %c = tfrt.new.chain %h = corert.get_op_handler %c "
                           f'"cpu" corert.executeop(%h) "op"() {text} : 0 tfrt.return }}')
    return attributes_lines(operation_attributes(program.function("f").body.kernels[-1].attributes))[1:]


@pytest.mark.parametrize(("text", "expected"), [
    ("{k = [5]}", "type=I64 value=[5]"), ("{k = []}", "type=I64 value=[]"), ("{k = 1 : i32}", "type=I32 value=1"),
    ("{k = 1.0 : f32}", "type=F32 value=1.0"), ("{k = 1.0}", "type=F64 value=1.0"), ("{k = 7}", "type=I64 value=7"),
    ("{k = 1.1 : f16}", "type=F16 value=1.099609375"), ("{k = [1.1 : bf16]}", "type=BF16 value=[1.1015625]"),
    ("{k = true}", "type=BOOL value=1"), ('{k = "s"}', 'type=STRING value="s"'), ("{k = f16}", "type=DTYPE value=F16"),
    ("{k = [1 : i32, 2 : i32]}", "type=I32 value=[1, 2]"), ("{k = [true, false]}", "type=BOOL value=[1, 0]"),
    ('{k = ["a", "b"]}', 'type=STRING value=["a", "b"]'), ("{k = [f32, i8]}", "type=DTYPE value=[F32, I8]"),
    ("{k = dense<1> : tensor<2xi8>}", "type=DENSE value=dtype=I8, rank=1, elt_count=2"),
    ("{k = #corert.shape<2x?>}", "type=SHAPE value=<2x?>"), ("{k = @g}", "type=FUNCTION value=@g"),
    ("{k = {x = 1 : i32, y = {}}}", "type=AGGREGATE value={x: type=I32 value=1, y: type=AGGREGATE value={}}"),
    ("{k = [1 : i32, 2.0 : f32]}", "type=AGGREGATE value={0: type=I32 value=1, 1: type=F32 value=2.0}"),
])
def test_an_operation_gets_its_attributes_by_their_types(text: str, expected: str) -> None:
    assert passed(text) == [f"  'k' {expected}"]


@pytest.mark.parametrize("text", ["{k}", "{k = tensor<2xi32>}"])
def test_what_is_no_attribute_of_an_operation_is_a_problem(text: str) -> None:
    with pytest.raises(Problem) as caught:
        passed(text)
    assert caught.value.kind == "attribute" and "attribute k" in caught.value.message
