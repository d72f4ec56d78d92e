"""Einsum: diagonals and traces of axes that stand twice in an operand, alone and in products, beside ONNX Runtime and NumPy."""
from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from .models import agree, one_node
from .test_layout import numbers

EXTENTS = {"i": 3, "j": 4, "k": 2, "n": 1}
EQUATIONS = ["...ii->...i", "ii->i", "ii->", "ii", "ijij->ij", "iji->j", "jii->j", "iii->i", "nn->n", "iijj->ij", "i...i->...i",
             "jiji", "ii,i->i", "iij,jk->ik", "ij,jkk->ik", "ii,jj->ij", "iik,kjj,ij->k", "...ii,...i->...", "ii,ii->"]


def operand(names: str) -> np.ndarray:
    return numbers(*[n for part in (names.replace("...", "_")) for n in ([2, 5] if part == "_" else [EXTENTS[part]])])


@pytest.mark.parametrize("equation", EQUATIONS)
def test_diagonals_are_those_of_numpy_and_onnx_runtime(equation: str) -> None:
    arrays = [operand(names) for names in equation.partition("->")[0].split(",")]
    right = np.asarray(np.einsum(equation, *[a.astype(np.float64) for a in arrays])).astype(np.float32)
    for wanted in ([right], None):
        agree(one_node("Einsum", arrays, {"equation": equation}, 12), arrays, wanted, rtol=1e-5, atol=1e-4)
