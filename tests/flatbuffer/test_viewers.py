"""What viewers of `.tosa` files need: Netron and Arm's adapter for Model Explorer find tensors by their names, block by block,
and show those names. Files are read here with Google's package `flatbuffers`, by the fields of TOSA's own schema.

`python tests/flatbuffer/viewers.py FILE...` opens files in both programs, where they are installed.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flatbuffers.number_types as numbers
import pytest
from ai_edge_litert.interpreter import Interpreter
from flatbuffers.table import Table
from tosaic.jit.models.load_model import load_model
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module as read_text

from .test_round_trip import CONTROL_FLOW

DATA = Path(__file__).parents[1] / "data" / "corpus"
NAMED = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.exp %x : (tensor<2xf32>) -> tensor<2xf32> loc("block/exp")
  %1 = tosa.abs %0 : (tensor<2xf32>) -> tensor<2xf32> loc("block/norm:0")
  %2 = tosa.tanh %1 : (tensor<2xf32>) -> tensor<2xf32> loc("block/norm:0")
  %sum = tosa.add %2, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("ours")
  %3 = tosa.negate %sum, %z, %z : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32> loc("sum")
  %4 = tosa.add %0, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %4 : tensor<2xf32>
}""".replace("  %sum", '  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>\n  %sum')
CUSTOM = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tosa.custom %x {operator_name = "Twice", domain_name = "mine", implementation_attrs = "a=1"} :
    (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32> }"""
DRAFT = """
func.func @main(%x: tensor<2x3xi64>) -> tensor<2x3xi64> {
  %0 = tosa.add %x, %x : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  return %0 : tensor<2x3xi64> }"""


@dataclass(frozen=True)
class Operator:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    location: str


@dataclass(frozen=True)
class Block:
    region: str
    operators: tuple[Operator, ...]
    tensors: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def strings(table: Table, field: int) -> tuple[str, ...]:
    """The strings of a vector; fields count as in the schema."""
    return tuple(table.String(place).decode() for place in places(table, field))


def places(table: Table, field: int) -> list[int]:
    offset = table.Offset(4 + 2 * field)
    return [table.Vector(offset) + 4 * i for i in range(table.VectorLen(offset))] if offset else []


def tables(table: Table, field: int) -> list[Table]:
    return [Table(table.Bytes, table.Indirect(place)) for place in places(table, field)]


def text(table: Table, field: int) -> str:
    offset = table.Offset(4 + 2 * field)
    return table.String(table.Pos + offset).decode() if offset else ""


def location(operator: Table) -> str:
    offset = operator.Offset(4 + 2 * 5)
    return text(Table(operator.Bytes, operator.Indirect(operator.Pos + offset)), 0)


def blocks(data: bytes) -> list[Block]:
    """The blocks of a file."""
    start = numbers.UOffsetTFlags.packer_type.unpack_from(data)[0]
    return [Block(text(region, 0),
                  tuple(Operator(strings(o, 3), strings(o, 4), location(o)) for o in tables(block, 1)),
                  tuple(text(t, 0) for t in (*tables(block, 2), *tables(block, 5))), strings(block, 3), strings(block, 4))
            for region in tables(Table(bytearray(data), start), 1) for block in tables(region, 1)]


def module_of(source: str | Path) -> Module:
    return load_model(source).module


@pytest.fixture(scope="module", params=["named", "custom", "draft", "control flow", "v_lstm.tflite", "f_mlp_int8.tflite",
                                        "v_assign_in_cond.tflite", "f_while_in_cond.tflite",
                                        "v_counter_three_functions.tflite"])
def module(request: Any) -> Module:
    texts: dict[str, str] = {"named": NAMED, "custom": CUSTOM, "draft": DRAFT, "control flow": CONTROL_FLOW}
    return module_of(texts[request.param] if request.param in texts else DATA / request.param)


def test_each_name_is_one_tensor_of_its_block(module: Module) -> None:
    found = blocks(write_module(module))
    assert len({b.region for b in found}) == len(found)
    for block in found:
        assert Counter(block.tensors).most_common(1)[0][1] == 1 and "" not in block.tensors
        used = {*block.inputs, *block.outputs, *(n for o in block.operators for n in (*o.inputs, *o.outputs))}
        assert used <= {*block.tensors}


def test_names_and_locations_survive_text(module: Module) -> None:
    data = write_module(module)
    assert blocks(write_module(read_text(print_module(read_module(data))))) == blocks(data)


def test_a_value_that_is_a_number_is_called_as_the_model_calls_it() -> None:
    block, = blocks(write_module(module_of(NAMED)))
    assert [o.outputs for o in block.operators] == [
        ("block/exp",), ("1",), ("block/norm:0",), ("z",), ("sum",), ("3",), ("4",)]
    assert [o.location for o in block.operators][:2] == ['loc("block/exp")', 'loc("block/norm:0")']


def test_results_of_tensorflow_lite_are_called_as_there() -> None:
    block, = blocks(write_module(module_of(DATA / "v_lstm.tflite")))
    file = Interpreter(str(DATA / "v_lstm.tflite"))
    results = {file._get_tensor_details(t, 0)["name"] for o in file._get_ops_details() for t in o["outputs"]}
    variables = {"h", "c"}
    several, result = {"split", "split1", "split2", "split3"}, "StatefulPartitionedCall:0"
    assert results - several - {result} <= {*block.tensors}
    assert variables <= {*block.tensors} and block.inputs == ("x",) and block.outputs == ("output_0",)
    assert {f'loc("{name}")' for name in results - several - variables} <= {o.location for o in block.operators}
