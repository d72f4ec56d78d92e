"""Files that are no models, or wrong ones: every one ends in a graph or in a Problem, in the reader and in what follows it."""
from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MUTATIONS = 5000
"""Of the bytes of a model; of which the last tenth is compiled and called, too."""


def model() -> bytes:
    """A small model of nodes, subgraphs, a function, weights in each form, and attributes of each kind."""
    inside = helper.make_graph([helper.make_node("Neg", ["sum"], ["minus"])], "then", [],
                               [helper.make_tensor_value_info("minus", TensorProto.FLOAT, [2, 3])])
    other = helper.make_graph([helper.make_node("Identity", ["sum"], ["same"])], "else", [],
                              [helper.make_tensor_value_info("same", TensorProto.FLOAT, [2, 3])])
    nodes = [helper.make_node("Add", ["x", "w"], ["sum"], name="plus"),
             helper.make_node("Twice", ["sum"], ["two"], domain="own", name="twice"),
             helper.make_node("If", ["c"], ["chosen"], then_branch=inside, else_branch=other),
             helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0, 3.0]),
             helper.make_node("Reshape", ["chosen", "shape"], ["flat"], allowzero=0),
             helper.make_node("Mul", ["two", "k"], ["y"])]
    twice = helper.make_function("own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 17)])
    graph = helper.make_graph(
        nodes, "hostile", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
                           helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3]),
         helper.make_tensor_value_info("flat", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.arange(3, dtype=np.float32), "w"),
         helper.make_tensor("shape", TensorProto.INT64, [1], [-1])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, functions=[twice], producer_name="tests").SerializeToString()
    return data


def ends(data: bytes, is_called: bool) -> bool:
    """True if a file is taken; whatever is raised must be a Problem, with a message."""
    try:
        found = tosaic.load(data, "hostile")
        str(found)
        if is_called and len(found.entries) == 1:
            found(np.ones((2, 3), np.float32), np.array(True))
    except tosaic.Problem as problem:
        assert problem.message and str(problem)
        return False
    return True


def mutations(data: bytes) -> Iterator[bytes]:
    """Bytes changed, left out, repeated, and put elsewhere."""
    g = np.random.default_rng(20)
    for _ in range(MUTATIONS):
        found = bytearray(data)
        for _ in range(int(g.integers(1, 4))):
            at, to = sorted(int(n) for n in g.integers(0, len(found) + 1, 2))
            match int(g.integers(4)):
                case 0:
                    found[at % len(found)] = int(g.integers(256))
                case 1:
                    del found[at:min(to, at + 8)]
                case 2:
                    found[at:at] = found[at:min(to, at + 8)]
                case _:
                    found[at % len(found)] ^= 1 << int(g.integers(8))
        yield bytes(found)


def test_the_model_itself_is_taken() -> None:
    assert ends(model(), True)


def test_every_truncation_ends_in_a_graph_or_a_problem() -> None:
    data = model()
    assert not any(ends(data[:length], length % 16 == 0) for length in range(1, len(data) // 2))
    for length in range(len(data) // 2, len(data)):
        ends(data[:length], length % 16 == 0)


def test_every_mutation_ends_in_a_graph_or_a_problem() -> None:
    taken = [ends(data, number >= MUTATIONS * 9 // 10) for number, data in enumerate(mutations(model()))]
    assert 100 < sum(taken) < MUTATIONS


# ---- tensors and files -----------------------------------------------------------------------------------------------
def with_tensor(tensor: onnx.TensorProto) -> bytes:
    tensor.name = "w"
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                              [helper.make_empty_tensor_value_info("y")], [tensor])
    data: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return data


def tensor(**fields: object) -> onnx.TensorProto:
    found = TensorProto(data_type=TensorProto.FLOAT)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(found, name).extend(value)
        else:
            setattr(found, name, value)
    return found


@pytest.mark.parametrize(("wrong", "message"), [
    (tensor(dims=[3], raw_data=b"1234"), "has 4 bytes, 3 elements of f32 need 12"),
    (tensor(dims=[3], float_data=[1.0]), "has 1 elements"),
    (tensor(dims=[-3], raw_data=b""), "has the shape"),
    (tensor(dims=[1 << 60], raw_data=b""), "has the shape"),
    (tensor(dims=[3], raw_data=bytes(12), data_type=99), "no place in TOSA"),
    (tensor(dims=[3], raw_data=bytes(24), data_type=TensorProto.COMPLEX64), "complex64"),
], ids=["bytes", "elements", "negative", "huge", "type", "complex"])
def test_a_tensor_that_is_not_what_it_says_is_a_problem(wrong: onnx.TensorProto, message: str) -> None:
    with pytest.raises(tosaic.Problem, match=message):
        tosaic.load(with_tensor(wrong))


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "", "none.bin", "folder/../../secret"])
def test_weights_lie_beside_the_model_alone(location: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(12))
    folder = tmp_path / "models"
    folder.mkdir()
    outside = tensor(dims=[3], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(with_tensor(outside))
    with pytest.raises(tosaic.Problem, match=r"beside the model|cannot be read"):
        tosaic.from_onnx(folder / "m.onnx")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(12))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "weights").symlink_to(tmp_path / "secret")
    outside = tensor(dims=[3], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="weights")
    (folder / "m.onnx").write_bytes(with_tensor(outside))
    with pytest.raises(tosaic.Problem, match="not beside the model"):
        tosaic.from_onnx(folder / "m.onnx")
