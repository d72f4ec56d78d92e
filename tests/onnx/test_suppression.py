"""Suppression of boxes beside ONNX Runtime: interpreted as ONNX has it, compiled with a row for each box that can stay."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from tosaic.lowering.dialects.onnx.interpret import interpret

from .models import agree, one_node, runtime_results


def inputs(seed: int, most: int) -> list[Any]:
    """Boxes of which some are equal, and some have no area; scores of which some are equal."""
    generator = np.random.default_rng(seed)
    batches, classes, count = (int(generator.integers(1, n)) for n in (3, 4, 12))
    boxes = np.round(generator.random((batches, count, 4)) * 8) / 8
    scores = np.round(generator.standard_normal((batches, classes, count)), 1)
    overlap = np.float32([generator.choice([0, 0.2, 0.5, 1])])
    found = [boxes.astype(np.float32), scores.astype(np.float32), np.array([most]), overlap]
    return found if seed % 3 == 0 else [*found, np.float32([generator.choice([0, 0.3, -1])])]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_the_boxes_that_stay(seed: int) -> None:
    arrays, own = inputs(seed, 1 + seed % 5), {"center_point_box": seed % 2}
    right, = runtime_results(one_node("NonMaxSuppression", arrays, own, 11), arrays)
    as_it_is = tosaic.from_onnx(one_node("NonMaxSuppression", arrays, own, 11))
    found, = interpret(as_it_is.module, "main", arrays)
    np.testing.assert_array_equal(found, right)
    if max(x.size for x in arrays) > 16:
        with pytest.raises(tosaic.Problem, match="how many boxes stay depends on data") as caught:
            as_it_is(*arrays)
        assert "set the node's domain to tosaic" in str(caught.value)
    else:  # the values of inputs as small are constants of a call's code
        np.testing.assert_array_equal(as_it_is(*arrays), right)

    (batches, classes, count), most = arrays[1].shape, int(arrays[2][0])
    rows = np.full((batches * classes * min(most, count), 3), -1)
    rows[:len(right)] = right
    padded = one_node("NonMaxSuppression", arrays, own, 11, domain="tosaic", outputs=2, constants=[2])
    agree(padded, [a for n, a in enumerate(arrays) if n != 2], [rows, np.array(len(right))])


def test_a_suppression_is_one_loop_for_all_classes() -> None:
    arrays = [np.zeros((2, 300, 4), np.float32), np.zeros((2, 20, 300), np.float32), np.array([50]), np.float32([0.5])]
    model = one_node("NonMaxSuppression", arrays, {}, 11, domain="tosaic", outputs=2, constants=[2])
    from tosaic.lowering.rewrite.onnx.translate import to_tosa
    names = [o.op.name for o in to_tosa(tosaic.from_onnx(model).module, "main").function("main").body.operations]
    assert names.count("tosa.while_loop") == 1 and len(names) < 150
