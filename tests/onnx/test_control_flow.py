"""Branches, loops and recurrent layers: what they compute beside ONNX Runtime, and that loops stay loops."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper  # noqa: E402

from .models import agree, one_node  # noqa: E402

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Value = helper.make_tensor_value_info


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[str], weights: dict[str, Any] | None = None) -> Any:
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def subgraph(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


# ---- branches --------------------------------------------------------------------------------------------------------
def chooses(other_shape: Sequence[int] = (2, 3)) -> Any:
    """If, whose branches use a value of the graph around them."""
    then = subgraph([helper.make_node("Mul", ["twice", "twice"], ["a"])], [], [Value("a", F, None)])
    otherwise = subgraph([helper.make_node("Reshape", ["twice", "shape"], ["b"])], [], [Value("b", F, None)])
    nodes = [helper.make_node("Add", ["x", "x"], ["twice"]),
             helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    return model(nodes, [Value("x", F, [2, 3]), Value("c", B, [])], ["y"], {"shape": np.array(other_shape)})


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_is_taken_by_a_condition_that_is_known_at_run_time(condition: bool) -> None:
    agree(chooses(), [normal(2, 3), np.array(condition)])


def test_a_branch_of_another_shape_ends_the_run_where_it_is_taken() -> None:
    """No shape fits both branches; one that cannot be computed at all is a check."""
    then = subgraph([helper.make_node("Add", ["x", "wrong"], ["a"])], [], [Value("a", F, None)])
    otherwise = subgraph([helper.make_node("Neg", ["x"], ["b"])], [], [Value("b", F, None)])
    proto = model([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)],
                  [Value("x", F, [2, 3]), Value("c", B, [])], ["y"], {"wrong": normal(7)})
    loaded, x = tosaic.from_onnx(proto), normal(2, 3)
    np.testing.assert_array_equal(loaded(x, np.array(False)), -x)
    with pytest.raises(tosaic.Problem, match="cannot be computed for these shapes is taken"):
        loaded(x, np.array(True))


def test_no_code_is_made_for_branches_of_two_shapes_but_each_call_has_its_own() -> None:
    with pytest.raises(tosaic.Problem, match=r"tensor<2x3xf32> in one branch and tensor<6xf32> in the other"):
        tosaic.from_onnx(chooses((6,))).main.compile()
    for condition in (True, False):
        agree(chooses((6,)), [normal(2, 3), np.array(condition)])


# ---- loops -----------------------------------------------------------------------------------------------------------
def doubling(count: Any, scans: bool, stops: bool = False) -> Any:
    """A loop that doubles what it carries, collects it, and may stop where it is large."""
    nodes = [helper.make_node("Add", ["before", "before"], ["after"]), helper.make_node("Identity", ["after"], ["item"])]
    if stops:
        nodes += [helper.make_node("ReduceMax", ["after"], ["most"], keepdims=0),
                  helper.make_node("Less", ["most", "limit"], ["on"])]
    else:
        nodes += [helper.make_node("Identity", ["go"], ["on"])]
    outputs = [Value("on", B, []), Value("after", F, [3])] + [Value("item", F, [3])] * scans
    body = subgraph(nodes, [Value("i", I, []), Value("go", B, []), Value("before", F, [3])], outputs)
    weights = {"limit": np.float32(50)} | ({} if count is None else {"m": np.array(count)})
    loop = helper.make_node("Loop", ["m" if count is not None else "", "", "x"], ["last"] + ["all"] * scans, body=body)
    return model([loop], [Value("x", F, [3])], ["last"] + ["all"] * scans, weights)


@pytest.mark.parametrize(("count", "scans", "stops"), [(0, False, False), (1, True, False), (7, True, False), (7, False, False),
                                                       (20, False, True), (None, False, True)])
def test_loops_carry_and_collect(count: Any, scans: bool, stops: bool) -> None:
    agree(doubling(count, scans, stops), [np.array([1, 2, 3], np.float32)])


def test_what_a_loop_of_unknown_length_collects_depends_on_data() -> None:
    with pytest.raises(tosaic.Problem, match="how often a loop runs that collects what it computes depends on data"):
        tosaic.from_onnx(doubling(20, True, True))(np.ones(3, np.float32))


def test_a_loop_stays_a_loop_however_many_iterations_it_has() -> None:
    """The graph of 300 iterations has as many operations as that of 3."""
    sizes = [sum(1 for _ in tosaic.from_onnx(doubling(count, True)).main.trace().module.functions[0].body.walk())
             for count in (3, 300)]
    assert sizes[0] == sizes[1]


def test_iterations_that_cannot_be_one_code_are_written_out() -> None:
    """A slice that begins at the iteration's number."""
    nodes = [helper.make_node("Unsqueeze", ["i", "zero"], ["start"]),
             helper.make_node("Slice", ["x", "start", "end"], ["rest"]),
             helper.make_node("ReduceSum", ["rest"], ["one"], keepdims=0), helper.make_node("Add", ["total", "one"], ["sum"]),
             helper.make_node("Identity", ["go"], ["on"])]
    body = subgraph(nodes, [Value("i", I, []), Value("go", B, []), Value("total", F, [])],
                    [Value("on", B, []), Value("sum", F, [])])
    proto = model([helper.make_node("Loop", ["m", "", "start_at"], ["y"], body=body)], [Value("x", F, [5])], ["y"],
                  {"m": np.array(4), "start_at": np.float32(0), "zero": np.array([0]), "end": np.array([5])})
    agree(proto, [normal(5)])


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans_run_along_an_axis_either_way(axis: int, back: int) -> None:
    body = subgraph([helper.make_node("Add", ["s", "item"], ["t"]), helper.make_node("Mul", ["t", "item"], ["out"])],
                    [Value("s", F, [4]), Value("item", F, [4])], [Value("t", F, [4]), Value("out", F, [4])])
    scan = helper.make_node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
                            scan_input_directions=[back], scan_output_axes=[axis], scan_output_directions=[1 - back])
    shape = [5, 4] if axis == 0 else [4, 5]
    agree(model([scan], [Value("s0", F, [4]), Value("x", F, shape)], ["last", "all"]), [normal(4), normal(*shape)])


# ---- recurrent layers ------------------------------------------------------------------------------------------------
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


RECURRENT = [(kind, direction, lengths) for i, kind in enumerate(GATES)
             for j, direction in enumerate(("forward", "reverse", "bidirectional")) for lengths in (False, True)
             if (i + j + lengths) % 2 == 0]
"""Half of all, among them every direction of every kind."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "direction", "lengths"), RECURRENT)
def test_recurrent_layers_of_each_direction_and_of_sequences_of_several_lengths(
        kind: str, direction: str, lengths: bool) -> None:
    n, hidden, steps, batch, inputs = 2 if direction == "bidirectional" else 1, 5, 6, 3, 4
    width = GATES[kind] * hidden
    arrays = [normal(steps, batch, inputs), normal(n, width, inputs, seed=1), normal(n, width, hidden, seed=2),
              normal(n, 2 * width, seed=3), np.array([6, 2, 4], np.int32) if lengths else None,
              normal(n, batch, hidden, seed=4)]
    arrays += [normal(n, batch, hidden, seed=5)] if kind == "LSTM" else []
    extra = {"linear_before_reset": 1} if kind == "GRU" and lengths else {}
    attributes = {"hidden_size": hidden, "direction": direction, **extra}
    proto = one_node(kind, arrays, attributes, 14, outputs=3 if kind == "LSTM" else 2)
    agree(proto, [a for a in arrays if a is not None], rtol=1e-4, atol=1e-5)


def test_a_recurrent_layer_of_300_steps_is_as_much_code_as_one_of_three() -> None:
    def operations(steps: int) -> int:
        arrays = [normal(steps, 1, 4), normal(1, 32, 4), normal(1, 32, 8)]
        found = tosaic.from_onnx(one_node("LSTM", arrays, {"hidden_size": 8}, 14, outputs=3))
        return sum(1 for _ in found.main.trace().module.functions[0].body.walk())
    assert operations(300) == operations(3)
