"""C source on emulated boards gives the bytes that this machine gives: integer models byte for byte, with state and all."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.lowering.target.presets import host

from ..aot.callers import Caller, printed, random_calls
from ..aot.machines import Machine, needs
from ..covering import covering
from ..models.sources import wake_word_model
from .boards import CORTEX_M4, LIBGCC, LX106
from .library import lowered_for_c, scalar_host

DATA = Path(__file__).parents[1] / "data"
QUICK = ["counter.mlir", "corpus/f_lstm_cell_int8.mlir", "corpus/v_counter.mlir"]
SLOW = ["corpus/f_mobilenet_block_int8.mlir", "corpus/f_attention_block_int8.mlir"]
"""Each on one of the boards."""
BOARDS = [pytest.param(m, marks=needs(m), id=m.name) for m in (CORTEX_M4, LX106)]
boards = pytest.mark.parametrize("machine", BOARDS)


def prints(machine: Machine, folder: Path, model: Any, count: int, options: tosaic.CompileOptions | None = None
           ) -> tuple[str, str]:
    """What a program of that machine prints, which calls the model, and what it must print, by the code of this process."""
    here, there = [e.lower(options) for e in model], lowered_for_c(model)
    form = ArtifactForm(emit="c")
    artifact = save(there, folder, "model", form)
    calls = random_calls(here, count * len(here))
    (folder / "main.c").write_text(Caller(there, artifact, form).source(calls))
    program = machine.build(folder, [folder / "main.c", artifact.object, LIBGCC])
    return machine.run(program), printed(here, calls)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "machine"), [*covering(1, QUICK, BOARDS), *covering(2, SLOW, BOARDS)])
def test_an_integer_model_gives_the_same_bytes(name: str, machine: Machine, tmp_path: Path) -> None:
    ours, expected = prints(machine, tmp_path, tosaic.load(DATA / name), 2)
    assert ours == expected and expected


@boards
def test_a_wake_word_model_gives_the_same_bytes_step_by_step(machine: Machine, tmp_path: Path) -> None:
    """Six variables of int8; the state of each step is the next one's."""
    pytest.importorskip("pymicro_wakeword")
    pytest.importorskip("tosa_converter_for_tflite")
    ours, expected = prints(machine, tmp_path, tosaic.load(wake_word_model("okay_nabu")), 12)
    assert ours == expected and len(expected.split()) == 12


@pytest.mark.sampled(2)
@pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")
@boards
@pytest.mark.parametrize("name", ["corpus/v_lstm.mlir", "corpus/f_mlp.mlir"])
def test_a_float_model_gives_the_same_bytes(machine: Machine, name: str, tmp_path: Path) -> None:
    """With an FPU and without one: as this machine does it, one operation after the other."""
    ours, expected = prints(machine, tmp_path, tosaic.load(DATA / name), 3, tosaic.CompileOptions(scalar_host(), threads=1))
    assert ours == expected and expected
