"""How graphs are written: regions that see nothing of the blocks around them, versions, and what files cannot say."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.flatbuffer.decode import decode
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.records import BlockRecord, FileRecord
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.file_position import whole
from tosaic.lowering.graph.graph import Block, BlockBuilder, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F8E4M3, F16, F32, I1, I8, I32, I64, MXINT8, ElementType, TensorType, block_scaled
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module as read_text
from tosaic.runtime.errors import Problem

from .test_round_trip import CONTROL_FLOW, module_of


def record(module: Module) -> FileRecord:
    return decode(write_module(module), whole("test.tosa"))


def blocks(module: Module) -> dict[str, BlockRecord]:
    return {r.name: r.blocks[0] for r in record(module).regions}


def test_what_regions_capture_becomes_their_inputs() -> None:
    found = blocks(read_text(CONTROL_FLOW))
    assert list(found) == ["main", "then_0", "then_1", "else_1", "else_0", "cond_2", "body_2"]
    branch, loop = found["main"].operators[2:]
    assert branch.inputs == ("condition", "x", "condition")
    assert loop.inputs == ("n", "x", "0") and loop.outputs == ("4#0", "4#1", "4#2")
    assert found["then_0"].inputs == ("x_1", "condition_1") and found["then_1"].inputs == ("v1_1", "x_2")
    assert found["body_2"].inputs == ("i", "v", "v0_1") and found["body_2"].outputs == ("6", "7", "v0_1")
    assert found["cond_2"].outputs == ("5",)


def test_constants_that_regions_use_are_written_again_inside() -> None:
    found = blocks(read_text(CONTROL_FLOW))
    assert [o.code.name for o in found["cond_2"].operators] == ["CONST", "GREATER"]
    assert [o.code.name for o in found["else_1"].operators] == ["CONST"]
    assert [o.code.name for o in found["else_0"].operators] == []


def test_graphs_mean_the_same_when_their_captures_have_become_inputs() -> None:
    text = read_text(CONTROL_FLOW)
    file = read_module(write_module(text))
    for condition in (False, True):
        arrays = (np.array(condition), np.array([3, -4], np.int32), np.array(3, np.int32))
        expected = Traced(text, "main").compile()(*arrays)
        found = Traced(file, "main").compile()(*arrays)
        assert all(map(np.array_equal, expected, found))
    assert np.array_equal(found[2], [3 + 2 * 11, -4 + 2 * -2])


def test_constants_of_equal_bytes_are_written_once() -> None:
    def size(values: list[int]) -> int:
        block = BlockBuilder()
        found = [block.add(OPERATORS["tosa.const"](values=np.full(1000, n, np.int32)))[0] for n in values]
        return len(write_module(module_of(block, *found)))

    assert size([1, 1]) + 4000 <= size([1, 2])


# ---- versions ----------------------------------------------------------------------------------------------------
def module_with(name: str, operands: list[ElementType], result: ElementType, **fields: object) -> Module:
    """One operation on tensors of such elements; its types may be wrong."""
    values = tuple(Value(f"x{i}", TensorType((32,), e)) for i, e in enumerate(operands))
    out = Value("y", TensorType((32,), result))
    operation = Operation(OPERATORS[name](**fields), values, (out,))
    return Module((Function("main", Block(values, (operation,), (out,)), (out.type,)),))


CONVOLUTION = {"pad": (0,) * 4, "stride": (1, 1), "dilation": (1, 1)}


@pytest.mark.parametrize(("module", "version"), [
    (module_with("tosa.add", [I32, I32], I32), (1, 0, 2)),
    (module_with("tosa.add", [I64, I64], I64), (1, 1, 0)),
    (module_with("tosa.gather", [I8, I32], I8), (1, 0, 2)),
    (module_with("tosa.gather", [I1, I32], I1), (1, 1, 0)),
    (module_with("tosa.matmul", [F8E4M3, F8E4M3], F16), (1, 0, 2)),
    (module_with("tosa.matmul", [F8E4M3, F8E4M3], F32), (1, 1, 0)),
    (module_with("tosa.conv2d", [F8E4M3] * 2, F16, acc_type=F16, **CONVOLUTION), (1, 0, 2)),
    (module_with("tosa.conv2d", [F8E4M3] * 2, F16, acc_type=F32, **CONVOLUTION), (1, 1, 0)),
    (module_with("tosa.matmul_t", [I8, I8], I32), (1, 1, 0)),
    (module_with("tosa.reshape", [block_scaled(MXINT8)], block_scaled(MXINT8)), (1, 1, 0))])
def test_a_file_is_for_the_first_version_of_tosa_that_has_it_all(module: Module, version: tuple[int, int, int]) -> None:
    found = record(module)
    assert found.version == version
    assert found.features == (2 if "block_scaled" in str(module.functions[0].result_types) else 0)


def test_extents_that_follow_from_the_inputs_are_written() -> None:
    module = read_text("func.func @main(%x: tensor<3x2xf32>) -> tensor<?x2xf32> { %0 = tosa.exp %x : (tensor<3x2xf32>) -> "
                       "tensor<?x2xf32> return %0 : tensor<?x2xf32> }")
    assert [t.shape for t in blocks(module)["main"].tensors] == [(3, 2), (3, 2)]


# ---- what files cannot say ---------------------------------------------------------------------------------------
UNSIGNED = """
func.func @main(%x: tensor<2xui8>) -> tensor<2xui8> {
  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %s = "tosa.const"() <{values = dense<30> : tensor<1xi8>}> : () -> tensor<1xi8>
  %z = "tosa.const"() <{values = dense<128> : tensor<1xui8>}> : () -> tensor<1xui8>
  %o = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %m, %s, %z, %o {input_unsigned = true, output_unsigned = false, per_channel = false,
    rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<2xui8>, tensor<1xi32>, tensor<1xi8>, tensor<1xui8>,
    tensor<1xi8>) -> tensor<2xi8>
  %1 = tosa.rescale %0, %m, %s, %o, %z {input_unsigned = false, output_unsigned = true, per_channel = false,
    rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<2xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>,
    tensor<1xui8>) -> tensor<2xui8>
  return %1 : tensor<2xui8>
}
"""


def test_integers_have_no_signs_of_their_own() -> None:
    """RESCALE says it in its attributes, so that the bytes that it gives are the same."""
    text = read_text(UNSIGNED)
    verify(text)
    file = read_module(write_module(text))
    verify(file)
    assert [str(t) for t in file.functions[0].result_types] == ["tensor<2xi8>"]
    x = np.array([3, 200], np.uint8)
    assert Traced(text, "main").compile()(x).tolist() == [3, 200]
    assert Traced(file, "main").compile()(x.view(np.int8)).view(np.uint8).tolist() == [3, 200]


@pytest.mark.parametrize(("text", "message"), [
    ('func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { %0 = "tfl.relu"(%x) : (tensor<2xf32>) -> tensor<2xf32> '
     "return %0 : tensor<2xf32> }", "tfl.relu cannot be written to a .tosa file"),
    ('func.func @main(%c: tensor<i1>) { "tosaic.assert"(%c) <{message = "m"}> : (tensor<i1>) -> () return }',
     "tosaic.assert cannot be written to a .tosa file"),
    ("func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> { return %x : tensor<2xf64> }",
     "a .tosa file has no elements of f64"),
    ("func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }",
     "x is tensor<*xf32>, a .tosa file needs the rank"),
    ("func.func @main(%x: !tf_type.resource) { return }", "x is !tf_type.resource, a .tosa file has tensors and shapes only"),
    ("func.func @main(%x: tensor<2xf32>) { return } func.func @other(%y: tensor<?xf32>) { return }",
     "%y is tensor<?xf32>, but no input of @main has an unknown extent"),
    ("func.func private @f() { return }", "the module has no entry function, a .tosa file needs one")])
def test_what_a_file_cannot_say_is_a_problem(text: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        write_module(read_text(text))
    assert caught.value.message == message


def test_a_problem_of_an_operation_is_at_its_place() -> None:
    text = 'func.func @main(%x: tensor<f32>) {\n  "tf.Print"(%x) : (tensor<f32>) -> ()\n  return\n}'
    with pytest.raises(Problem) as caught:
        write_module(read_text(text, "m.mlir"))
    assert str(caught.value.position) == "m.mlir:2:3"


def test_names_have_to_be_utf_8() -> None:
    block = BlockBuilder()
    x = block.argument(TensorType((), F32), "a\udcff")
    with pytest.raises(Problem, match="is not UTF-8"):
        write_module(module_of(block, x))


def test_attributes_that_files_do_not_have_are_a_problem() -> None:
    module = module_with("tosa.cast", [I8], F32, to=F32, input_unsigned=True)
    with pytest.raises(Problem, match=r"input_unsigned of tosa\.cast cannot be written"):
        write_module(module)


def test_unsigned_arithmetic_is_a_problem() -> None:
    ui8 = next(e for e in OPERATORS["tosa.rescale"].infer.__globals__["SOURCES"] if e.name == "ui8")
    with pytest.raises(Problem, match=r"tosa.add of tensor<32xui8> cannot be written.*integers have no sign there"):
        write_module(module_with("tosa.add", [ui8, ui8], ui8))


def test_branches_that_converters_leave_behind_become_regions() -> None:
    module = read_text("""
      func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = "tf.If"(%c, %x) <{else_branch = @same, is_stateless = true, then_branch = @twice}> :
          (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }
      func.func private @same(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
      func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = tosa.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }""")
    assert [(name, [o.code.name for o in block.operators]) for name, block in blocks(module).items()] == [
        ("main", ["COND_IF"]), ("then_0", ["ADD"]), ("else_0", [])]


def test_private_functions_are_left_out() -> None:
    module = read_text("func.func @main() { return } func.func private @f() { return }")
    assert [r.name for r in record(module).regions] == ["main"]


def test_names_of_regions_are_not_those_of_functions() -> None:
    module = read_text(CONTROL_FLOW)
    other = dataclasses.replace(module.functions[0], name="then_0")
    both = dataclasses.replace(module, functions=(*module.functions, other))
    assert [f.name for f in read_module(write_module(both)).functions] == ["main", "then_0"]
