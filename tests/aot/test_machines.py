"""Objects for other machines run there, and give the bytes that this machine gives: integer models byte for byte, with state
and all; floats nearly."""
from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import save
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.machine_code.elf import undefined_symbols
from tosaic.lowering.target.presets import target

from ..covering import covering
from .callers import Caller, printed, random_calls
from .machines import MACHINES, Machine, machines, needs

DATA = Path(__file__).parents[1] / "data"
QUICK = ["counter.mlir", "corpus/f_conv_bn_relu_pool_int8.mlir", "corpus/f_lstm_cell_int8.mlir", "corpus/f_mlp_int8.mlir",
         "corpus/v_counter.mlir"]
SLOW = ["corpus/f_mobilenet_block_int8.mlir", "corpus/f_attention_block_int8.mlir"]
"""Each for every other machine, and the rest for all."""
ALL = [pytest.param(m, marks=needs(m), id=m.name) for m in MACHINES]

Calls = Sequence[tuple[int, Sequence[Array]]]


def prints(machine: Machine, folder: Path, model: Any, calls: Calls, library: str = "mem(cpy|set|move)") -> str:
    """What a program of that machine prints, which calls the model. The object needs functions of a `library` only."""
    lowered: list[Lowered] = [e.lower(tosaic.CompileOptions(target(machine.target))) for e in model]
    artifact = save(lowered, folder, "model")
    assert all(re.fullmatch(library, symbol) for symbol in undefined_symbols(artifact.object.read_bytes()))
    (folder / "main.c").write_text(Caller(lowered, artifact).source(calls))
    return machine.run(machine.build(folder, [folder / "main.c", artifact.object]))


@functools.cache
def here(name: str, turns: int) -> tuple[Calls, str]:
    """Calls of a model, as often in turn, and what this process gives."""
    entries = [e.lower() for e in tosaic.load(DATA / name)]
    calls = random_calls(entries, turns * len(entries))
    return calls, printed(entries, calls)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "machine"), [*covering(1, QUICK, ALL), *covering(2, SLOW, ALL)])
def test_an_integer_model_gives_the_same_bytes(name: str, machine: Machine, tmp_path: Path) -> None:
    calls, expected = here(name, 2)
    assert prints(machine, tmp_path, tosaic.load(DATA / name), calls) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in MACHINES
                                     if m.name not in ("host", "cortex-m4")])
def test_a_wake_word_model_gives_the_same_bytes_step_by_step(machine: Machine, tmp_path: Path) -> None:
    """Six variables of int8; the state of each step is the next one's. (`test_wake_words` has the other machines.)"""
    pytest.importorskip("pymicro_wakeword")
    pytest.importorskip("tosa_converter_for_tflite")
    model = tosaic.load((importlib.resources.files("pymicro_wakeword") / "models" / "okay_nabu.tflite").read_bytes())
    entries = [e.lower() for e in model]
    calls = random_calls(entries, 12)
    assert prints(machine, tmp_path, model, calls) == printed(entries, calls)


@pytest.mark.sampled(2)
@machines
@pytest.mark.parametrize("name", ["corpus/v_lstm.mlir", "corpus/f_mlp.mlir"])
def test_a_float_model_gives_nearly_the_same_numbers(machine: Machine, name: str, tmp_path: Path) -> None:
    calls, expected = here(name, 3)
    lines = prints(machine, tmp_path, tosaic.load(DATA / name), calls).split(), expected.split()
    found, right = (np.frombuffer(bytes.fromhex("".join(text)), "<f4") for text in lines)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
