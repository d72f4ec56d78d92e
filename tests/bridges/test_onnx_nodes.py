"""What ONNX's own node tests give: right or refused, never wrong."""
from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `onnx`)")

from .onnx_nodes import Verdict, counted, judge, node_tests  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")


def judged(part: slice) -> Sequence[Verdict]:
    found = []
    for test in node_tests()[part]:
        found.append(judge(test))
        print(found[-1], flush=True)
    print(counted(found))
    return found


@pytest.mark.long
@pytest.mark.timeout(0)
def test_no_node_test_of_onnx_is_wrong() -> None:
    """TOSAIC_NODES=first:last:step chooses some of them."""
    part = slice(*(int(n) if n else None for n in os.environ.get("TOSAIC_NODES", "::").split(":")))
    wrong = [str(v) for v in judged(part) if v.verdict == "wrong"]
    assert not wrong, "\n".join(wrong)
