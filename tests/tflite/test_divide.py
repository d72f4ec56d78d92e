"""Which parts of a file go through the converter: few, cut only where something is understood here; and the file of parts."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from tosaic.lowering.tflite.cut import cut
from tosaic.lowering.tflite.decode import decode
from tosaic.lowering.tflite.divide import Partition
from tosaic.lowering.tflite.import_plan import ImportPlan, plan_of

from .files import Graph, Operator, Signature, Tensor, constant, file, ints

CORPUS = Path(__file__).parents[1] / "data" / "corpus"


def plan(data: bytes) -> ImportPlan:
    return plan_of(decode(data, "m.tflite"))


@pytest.mark.parametrize(("name", "partitions"), [
    ("f_mlp", 1), ("f_mobilenet_block_int8", 1), ("v_lstm", 1), ("v_counter", 1), ("v_assign_in_cond", 2), ("f_while", 2),
    ("f_lstm_keras", 4), ("v_counter_three_functions", 2), ("f_strided_slice", 1)])
def test_there_are_as_few_partitions_as_can_be(name: str, partitions: int) -> None:
    assert len(plan((CORPUS / f"{name}.tflite").read_bytes()).partitions) == partitions


def test_a_plain_model_is_one_partition_with_all_its_operators() -> None:
    found = plan((CORPUS / "f_attention_block.tflite").read_bytes())
    graph = found.model.subgraphs[0]
    (partition,) = found.partitions
    assert partition.operators == tuple(range(len(graph.operators))) and set(partition.inputs) == set(graph.inputs)


def test_an_operator_waits_for_its_users() -> None:
    """x is negated at the beginning and used behind a variable: one partition."""
    v, names = Tensor("v", (), "resource"), "n r s"
    graph = Graph("x", "s", [v, Tensor("x"), *map(Tensor, names.split())],
                  [Operator("VAR_HANDLE", "", "v", (None, "v")), Operator("NEG", "x", "n"), Operator("READ_VARIABLE", "v", "r"),
                   Operator("ADD", "n r", "s", ints(0))])
    found = plan(file(graph))
    assert found.steps[0] == (0, 2, Partition(0, (1, 3), (1, 3), (4,)))


def test_what_no_entry_reaches_is_left_out() -> None:
    """The second subgraph could not be read at all."""
    data = file(Graph("x", "y", [Tensor("x"), Tensor("y")], [Operator("NEG", "x", "y")]),
                Graph("x", "y", [Tensor("x"), Tensor("y")], [Operator("STABLEHLO_WHILE", "x", "y")]),
                signatures=[Signature("f", 0)])
    assert list(plan(data).steps) == [0]


def test_the_file_of_parts_is_a_model_of_its_own() -> None:
    """LiteRT reads it, and gives for each part what the whole gives."""
    data = (CORPUS / "f_lstm_keras.tflite").read_bytes()
    found = plan(data)
    lite = Interpreter(model_content=cut(data, found.model, found.partitions))
    assert list(lite.get_signature_list()) == [f"part_{i}" for i in range(4)]
    x = np.arange(60, dtype=np.float32).reshape(2, 5, 6)
    (result,) = lite.get_signature_runner("part_0")(in0=x).values()
    np.testing.assert_array_equal(result, x.transpose(1, 0, 2))


def test_constants_behind_the_flatbuffer_are_found_by_the_partitions() -> None:
    tensors = [Tensor("x", (3,)), constant("c", [1, 2, 3]), Tensor("y", (3,)), constant("d", [4, 5]), Tensor("z", (3,))]
    graph = Graph("x", "y", tensors,
                  [Operator("ADD", "x c", "z", ints(0)), Operator("ADD", "z c", "y", ints(0))])
    data = file(graph, outside=True)
    found = plan(data)
    for model in (found.model, decode(cut(data, found.model, found.partitions))):
        constants = [t.data for t in model.subgraphs[0].tensors if t.data is not None]
        assert [c.view(np.float32).tolist() for c in constants] == [[1, 2, 3], [4, 5]]
    assert found.model.outside and len(found.partitions) == 1
