"""An int8 network for a processor without a float unit computes in integers alone, in its object and in its C source."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from tosaic.jit.command_line.cli import main
from tosaic.lowering.machine_code.elf import undefined_symbols

NETWORK = Path(__file__).parents[1] / "data" / "corpus" / "f_conv_bn_relu_pool_int8.tflite"
FLOATS = r"\b(float|double)\b"


def written(cpu: str, form: str, folder: Path) -> Path:
    main(["compile", str(NETWORK), "--cpu", cpu, "--emit", form, "-o", str(folder)])
    return next(folder.glob({"object": "*.o", "c": "*.c"}[form]))


@pytest.mark.parametrize("cpu", ["cortex-m0plus", "cortex-m3", "rv32imc"])
def test_int8_asks_for_no_floats(cpu: str, tmp_path: Path) -> None:
    symbols = set(undefined_symbols(written(cpu, "object", tmp_path / "o").read_bytes()))
    assert symbols <= {"memcpy", "memset", "memmove"}
    assert not re.search(FLOATS, written(cpu, "c", tmp_path / "c").read_text())
