"""What ONNX's own node tests give: right or refused, never wrong. `python tests/onnx` runs all of them."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")

from .node_tests import Verdict, counted, judge, node_tests

ONCE_WRONG = [
    "averagepool_2d_ceil_last_window_starts_on_pad",
    "averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True", "bitshift_left_int8_negative_shift",
    "gather_negative_indices", "l2normalization_axis_0", "mod_float_edge_cases_fmod_0_float32", "mvn",
    "resize_upsample_scales_nearest", "resize_upsample_scales_linear", "resize_downsample_sizes_cubic",
    "resize_upsample_sizes_nearest_floor_align_corners", "sce_mean_weight_ii", "sce_none_weights", "nllloss_NCd1_weight_ii",
    "training_dropout_default_mask", "tril_one_row_neg", "triu_neg"]
"""A few of the tests that came out wrong once."""


def judged(tests: Sequence[Any]) -> Sequence[Verdict]:
    found = [verdict for test in tests for verdict in judge(test)]
    print(*found, counted(found), sep="\n")
    return found


def wrong(verdicts: Sequence[Verdict]) -> list[str]:
    return [str(v) for v in verdicts if v.verdict == "wrong"]


@pytest.mark.sampled(4)
def test_what_was_wrong_is_right_or_refused() -> None:
    tests = {test.name.removeprefix("test_"): test for test in node_tests()}
    found = judged([tests[name] for name in ONCE_WRONG if name in tests])
    assert not wrong(found) and counted(found)["right"] >= 2 * len(ONCE_WRONG) - 6


@pytest.mark.sampled(4)
def test_a_selection_of_all_node_tests_is_right_or_refused() -> None:
    """Every 43rd; the part that is right may not become less."""
    found = judged(node_tests()[::43])
    assert not wrong(found) and counted(found)["right"] >= 0.8 * len(found)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_no_node_test_of_onnx_is_wrong() -> None:
    """TOSAIC_NODES, a regular expression, and TOSAIC_NODES_STEP choose some of them."""
    pattern, step = re.compile(os.environ.get("TOSAIC_NODES", "")), int(os.environ.get("TOSAIC_NODES_STEP", "1"))
    found = wrong(judged([test for test in node_tests() if pattern.search(test.name)][::step]))
    assert not found, "\n".join(found)
