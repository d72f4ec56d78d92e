"""Sample 8: an ONNX model, made here with ONNX's own helpers, as native code; PyTorch is not needed.

The network tells in which direction an image is striped: filters that follow an edge in each direction, how strong they answer
on average, and a softmax. Its batch is open, so that code is made for the shapes of each call. Needs the extra `onnx`.

    python samples/8_onnx.py
"""
from __future__ import annotations

import numpy as np
import onnx
import onnx.reference
import tosaic
from onnx import TensorProto, helper, numpy_helper

DIRECTIONS = ("horizontal", "vertical", "diagonal up", "diagonal down")


def filters() -> np.ndarray:
    """A pair of filters for each direction, which answer to its edges of either sign: f32[8, 1, 3, 3]."""
    across = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    aslant = np.array([[-2, -1, 0], [-1, 0, 1], [0, 1, 2]])
    found = [across, across.T, aslant, np.fliplr(aslant)]
    return np.array([[sign * f] for f in found for sign in (1, -1)], np.float32)


def network(size: int = 16) -> onnx.ModelProto:
    add = np.repeat(np.eye(4), 2, axis=0).astype(np.float32)
    nodes = [helper.make_node("Conv", ["image", "filters"], ["edges"], name="edges"),
             helper.make_node("Relu", ["edges"], ["answers"]),
             helper.make_node("GlobalAveragePool", ["answers"], ["means"]),
             helper.make_node("Flatten", ["means"], ["flat"]),
             helper.make_node("Gemm", ["flat", "add", "bias"], ["sums"], alpha=4.0),
             helper.make_node("Softmax", ["sums"], ["direction"], axis=1)]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, size, size])
    direction = helper.make_tensor_value_info("direction", TensorProto.FLOAT, ["batch", 4])
    weights = [numpy_helper.from_array(array, name) for name, array in
               (("filters", filters()), ("add", add), ("bias", np.zeros(4, np.float32)))]
    graph = helper.make_graph(nodes, "stripes", [image], [direction], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def stripes(size: int = 16) -> np.ndarray:
    """An image striped in each of the directions, in noise: f32[4, 1, size, size]."""
    y, x = np.mgrid[:size, :size]
    noise = np.random.default_rng(0).normal(0, 0.1, (4, 1, size, size))
    return (np.sin(0.9 * np.array([y, x, (x + y) * 0.7, (x - y) * 0.7]))[:, None] + noise).astype(np.float32)


def main() -> None:
    proto, images = network(), stripes()
    onnx.checker.check_model(proto)
    model = tosaic.from_onnx(proto)
    print(model.main)
    found = model(images)
    for direction, row in zip(DIRECTIONS, found):
        print(f"striped {direction:14} found {DIRECTIONS[row.argmax()]:14} {row.max():.2f}")
    expected, = onnx.reference.ReferenceEvaluator(proto).run(None, {"image": images})
    print(f"largest difference from ONNX's reference: {np.abs(found - expected).max():.0e}")
    report = model.main.specialize({"image": (1, 1, 16, 16)}).compile().report()
    print(f"for one image: arena {report.arena} bytes ({report.live_bytes} live at once), constants {report.constants}")


if __name__ == "__main__":
    main()
