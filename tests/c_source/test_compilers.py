"""C source is compiled by each compiler without a warning, and under sanitizers it does nothing that C does not define."""
from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.jit.stages import Lowered

from ..aot.callers import Caller, printed, random_calls
from ..aot.machines import HOST
from ..aot.test_forms import FORMS
from ..covering import covering
from ..models.sources import wake_word_model
from .boards import BARE_COMPILE, COMPILERS, compilers
from .functions import needs_gcc
from .library import lowered_for_c

DATA = Path(__file__).parents[1] / "data"
SANITIZED = ("-fsanitize=address,undefined", "-fsanitize=float-cast-overflow,float-divide-by-zero", "-fno-sanitize-recover=all",
             "-g", "-Wl,--no-as-needed", "-lm")
MODELS = ["counter.mlir", "corpus/f_while.mlir", "corpus/f_cond.mlir", "corpus/f_shape_ops.mlir", "corpus/f_mlp.mlir",
          "corpus/f_mobilenet_block_int8.mlir", "corpus/f_attention_block_int8.mlir", "corpus/v_lstm.mlir",
          "corpus/f_lstm_cell_int8.mlir", "okay_nabu"]
INTEGERS = ["corpus/f_while.mlir", "corpus/f_shape_ops.mlir", "corpus/f_conv_bn_relu_pool_int8.mlir",
            "corpus/f_lstm_cell_int8.mlir"]


STATEFUL = """
tosa.variable @cell = dense<2> : tensor<3xi32>
tosa.variable @gate = dense<1> : tensor<5xi8>
func.func @main(%x: tensor<3xi32>, %g: tensor<5xi8>) -> (tensor<3xi32>, tensor<5xi8>) {
  %0 = tosa.variable_read @cell : tensor<3xi32>
  %1 = tosa.add %0, %x : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  tosa.variable_write @cell, %1 : tensor<3xi32>
  %2 = tosa.variable_read @gate : tensor<5xi8>
  tosa.variable_write @gate, %g : tensor<5xi8>
  return %1, %2 : tensor<3xi32>, tensor<5xi8>
}
"""


def model_of(name: str) -> tosaic.Model:
    return tosaic.load(wake_word_model(name) if name == "okay_nabu" else DATA / name)


CHOSEN = [case.values for case in covering(3, COMPILERS, MODELS)]
"""Each model for every third compiler."""


@functools.cache
def lowered_of(name: str) -> list[Lowered]:
    return lowered_for_c(model_of(name))


@pytest.mark.sampled(4)
@compilers
def test_models_are_compiled_without_a_warning(compiler: str, tmp_path: Path) -> None:
    for name in (name for chosen, name in CHOSEN if chosen == compiler):
        artifact = save(lowered_of(name), tmp_path, "model", ArtifactForm(emit="c"))
        done = subprocess.run([*COMPILERS[compiler], *BARE_COMPILE, str(artifact.object), "-o", str(tmp_path / "model.o")],
                              capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, f"{name}: {done.stderr[:2000]}"


@compilers
def test_a_callers_state_in_two_pools_has_one_layout_for_pointers_of_any_size(compiler: str, tmp_path: Path) -> None:
    """The header asserts every offset; source for any machine does not know how large a pointer is."""
    pools = tosaic.Pool("fast", 1 << 10), tosaic.Pool("slow")
    memory = tosaic.Memory(pools=pools, pins={"cell": "slow"}, alignment=8)
    model = tosaic.load(STATEFUL)
    artifact = save(lowered_for_c(model, tosaic.CompileOptions(memory=memory)), tmp_path, "model",
                    ArtifactForm(emit="c", state="caller"))
    assert "struct tosaic_model_slow_state *slow_state" in artifact.header.read_text()
    done = subprocess.run([*COMPILERS[compiler], *BARE_COMPILE, str(artifact.object), "-o", str(tmp_path / "model.o")],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr[:2000]


@pytest.mark.sampled(4)
@needs_gcc
@pytest.mark.parametrize(("form", "name"), [(form, INTEGERS[i % len(INTEGERS)]) for i, form in enumerate(FORMS)])
def test_a_form_gives_the_same_bytes_under_sanitizers(tmp_path: Path, name: str, form: str) -> None:
    memory, plain = FORMS[form]
    model = model_of(name)
    chosen = ArtifactForm(plain.self_contained, namespace=plain.namespace, state=plain.state, emit="c")
    here, there = [e.lower() for e in model], lowered_for_c(model, tosaic.CompileOptions(memory=memory))
    artifact = save(there, tmp_path, "model", chosen)
    calls = random_calls(here, 3 * len(here))
    is_short = 0 < sum(p.nbytes for p in artifact.pools if p.kind == "constant") < 4000
    (tmp_path / "main.c").write_text(Caller(there, artifact, chosen, is_short).source(calls))
    program = HOST.build(tmp_path, [tmp_path / "main.c", artifact.object], SANITIZED)
    assert HOST.run(program) == printed(here, calls)
