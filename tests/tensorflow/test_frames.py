"""Each operation of a graph is in the frame that its Enters and Exits say."""
from __future__ import annotations

import pytest
from tosaic.lowering.dialects.tf_executor.frames import Frame, Frames
from tosaic.lowering.dialects.tf_executor.operators import Enter, Exit, NextIterationSource
from tosaic.lowering.graph.graph import Block
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module

from ..text.effort import calls_made
from .cases import CORPUS, DATA, in_graph, name_of


def graph_body(text: str) -> Block:
    module = read_module(text)
    function = next(f for f in module.functions if not f.is_private)
    return next(o for o in function.body.operations if o.op.name == "tf_executor.graph").regions[0]


def path_of(frame: Frame) -> tuple[str, ...]:
    return () if frame.parent is None else (*path_of(frame.parent), frame.name)


@pytest.mark.parametrize("path", [p for p in CORPUS if p.parent.name.startswith("w_") and p.stem in ("executor", "coarse")],
                         ids=name_of)
def test_all_inputs_of_a_node_are_in_its_frame(path: object) -> None:
    body = graph_body(path.read_text())  # type: ignore[attr-defined]
    frames = Frames(body)
    assert set(frames.at) == set(body.operations)
    for operation, inputs in frames.inputs.items():
        assert all(frames.of[v] is frames.at[operation] for v in inputs)
        for value in operation.results:
            inside, at = frames.of[value], frames.at[operation]
            match operation.op:
                case Enter(frame_name=name):
                    assert (inside.name, inside.parent) == (name, at)
                case Exit():
                    assert inside is at.parent
                case _:
                    assert inside is at


def test_nested_loops_are_nested_frames() -> None:
    frames = Frames(graph_body((DATA / "tensorflow" / "w_while_nested" / "executor.mlir").read_text()))
    outer = ("while/while_context",)
    assert {path_of(f) for f in frames.at.values()} == {(), outer, (*outer, "while/while/while_context")}


def test_enters_of_one_name_in_one_frame_share_their_frame() -> None:
    frames = Frames(graph_body(in_graph('%a, %c = tf_executor.Enter %x frame "f" : tensor<3xf32>\n'
                                        '%b, %d = tf_executor.Enter %x frame "f" : tensor<3xf32>\n'
                                        "%e, %g = tf_executor.Enter %x : tensor<3xf32>")))
    by_name = {v.name: f for v, f in frames.of.items()}
    assert by_name["a"] is by_name["b"] is not by_name["e"]


def test_a_source_is_where_its_sink_is() -> None:
    frames = Frames(graph_body((DATA / "tensorflow" / "w_while_lib" / "executor.mlir").read_text()))
    sources = [o for o in frames.at if isinstance(o.op, NextIterationSource)]
    assert sources and all(path_of(frames.at[o]) == ("while/while_context",) for o in sources)


def chained(count: int) -> str:
    """Loops that each wait for the one behind: the frame of the first is known last."""
    lines = [f"%v{i}, %t{i}, %c{i} = tf_executor.NextIteration.Source : tensor<3xf32>" for i in range(count)]
    lines += [f"tf_executor.NextIteration.Sink [%t{i}] %v{i + 1} : tensor<3xf32>" for i in range(count - 1)]
    lines += ['%e, %ce = tf_executor.Enter %x frame "f" : tensor<3xf32>',
              f"tf_executor.NextIteration.Sink [%t{count - 1}] %e : tensor<3xf32>"]
    return in_graph("\n".join(lines))


def test_frames_take_time_in_proportion_to_the_graph() -> None:
    bodies = [graph_body(chained(n)) for n in (100, 400)]
    small, large = (calls_made(lambda body=body: Frames(body)) for body in bodies)  # type: ignore[misc]
    assert large < 5 * small


def test_a_deep_chain_of_frames_is_sound() -> None:
    lines = ["%v0, %c0 = tf_executor.Enter %x : tensor<3xf32>"]
    lines += [f"%v{i}, %c{i} = tf_executor.Enter %v{i - 1} : tensor<3xf32>" for i in range(1, 2000)]
    verify(read_module(in_graph("\n".join(lines))))
