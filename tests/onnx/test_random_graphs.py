"""Random graphs of ONNX's operators on both engines, beside ONNX Runtime. `python tests/onnx/random_graphs.py` runs as many as
asked."""
from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (the extra `test`)")

from .random_graphs import judged

GRAPHS = 24


@pytest.mark.parametrize("first", range(0, GRAPHS, 12))
def test_no_random_graph_is_wrong(first: int) -> None:
    found = {seed: judged(seed) for seed in range(first, first + 12)}
    assert not {seed: verdict for seed, verdict in found.items() if verdict.startswith(("wrong", "refused"))}
    assert sum(verdict == "right" for verdict in found.values()) >= 8
