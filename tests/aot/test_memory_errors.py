"""Programs under tools that see wrong accesses: sanitizers for the program and its arrays, valgrind for what the object does
with memory of exactly the sizes that the header states."""
from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.lowering.target.presets import target

from .callers import Caller, printed, random_calls
from .machines import HOST, needs_host
from .test_forms import DATA, FORMS

pytestmark = needs_host
MODELS = ["corpus/f_conv_bn_relu_pool_int8.mlir", "corpus/f_lstm_cell_int8.mlir", "corpus/v_lstm.mlir",
          "corpus/f_shape_ops.mlir"]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")


def can_sanitize() -> bool:
    command = ["gcc", *SANITIZERS, "-xc", "-", "-o", "/dev/null"]
    return shutil.which("gcc") is not None and subprocess.run(command, input=b"int main(void) { return 0; }",
                                                              capture_output=True).returncode == 0


@pytest.mark.skipif(not can_sanitize(), reason="gcc has no sanitizers here")
@pytest.mark.parametrize("form", ["plain", "all", "all, self contained"])
def test_sanitizers_find_nothing(tmp_path: Path, form: str) -> None:
    memory, how = FORMS[form]
    for name in MODELS[0], MODELS[2]:
        entry = tosaic.load(DATA / name).main
        lowered, folder = entry.lower(tosaic.CompileOptions(memory=memory)), tmp_path / Path(name).stem
        artifact = save([lowered], folder, "model", how)
        calls = random_calls([lowered], 2)
        (folder / "main.c").write_text(Caller([lowered], artifact, how).source(calls))
        assert HOST.run(HOST.build(folder, [folder / "main.c", artifact.object], SANITIZERS)) == printed([entry.lower()], calls)


HEAP = r"""
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include "tosaic_model.h"

static void *aligned(size_t alignment, size_t size) {
    void *p = 0;
    return posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) ? 0 : p;
}

int main(void) {
    struct tosaic_model_inputs inputs;
    struct tosaic_model_outputs outputs;
    struct tosaic_model_workspace_pools pools;
    pools.workspace = aligned(TOSAIC_MODEL_WORKSPACE_ALIGNMENT, TOSAIC_MODEL_WORKSPACE_SIZE);
    pools.workspace_size = TOSAIC_MODEL_WORKSPACE_SIZE;
FILL    if (tosaic_model_run(&inputs, &outputs, &pools)) return 1;
WRITE
    free(pools.workspace);
    return 0;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("name", MODELS)
def test_valgrind_finds_nothing(tmp_path: Path, name: str) -> None:
    """Every tensor and the workspace are blocks of the heap, the workspace not initialised: reading beside a block is an error,
    and so is an output that depends on what nobody has written. (Valgrind knows no instructions beyond AVX2.)"""
    lowered = tosaic.load(DATA / name).main.lower(tosaic.CompileOptions(target("x86-64-v3")))
    artifact = lowered.save(tmp_path, "model")
    fill, write = "", ""
    for kind, buffers in (("input", lowered.program.inputs), ("output", lowered.program.outputs)):
        for b in buffers:
            size = f"TOSAIC_MODEL_{kind.upper()}_{b.name.upper()}_SIZE"
            fill += f"    {kind}s.{b.name}_size = {size};\n    {kind}s.{b.name} = malloc({size});\n"
            if kind == "input":
                fill += f"    if (fread((void *)inputs.{b.name}, 1, {size}, stdin) != {size}) return 2;\n"
            else:
                write += f"    fwrite(outputs.{b.name}, 1, {size}, stdout);\n"
            write += f"    free((void *){kind}s.{b.name});\n"
    (tmp_path / "main.c").write_text(HEAP.replace("FILL", fill).replace("WRITE", write))
    program = HOST.build(tmp_path, [tmp_path / "main.c", artifact.object])
    ((_, inputs),) = random_calls([lowered], 1)
    done = subprocess.run(["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(program)],
                          input=b"".join(a.tobytes() for a in inputs), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    expected = dataclasses.replace(lowered).compile().executable(*inputs)
    assert done.stdout == b"".join(a.tobytes() for a in expected)


def test_two_workspaces_run_at_the_same_time(tmp_path: Path) -> None:
    """No run of an object without variables touches anything but what it is given: the object has no data that can be written,
    whatever form it has, unless it is self-contained."""
    if shutil.which("nm") is None:
        pytest.skip("nm is missing, which lists the symbols of an object")
    lowered = tosaic.load(DATA / MODELS[0]).main
    for form in (ArtifactForm(), ArtifactForm(self_contained=True)):
        artifact = save([lowered.lower()], tmp_path / str(form.self_contained), "model", form)
        symbols = subprocess.run(["nm", str(artifact.object)], capture_output=True, text=True, check=True).stdout
        written = [line.split()[-1] for line in symbols.splitlines() if line.split()[-2] in "bBdDvV"]
        assert written == (["tosaic_model_workspace"] if form.self_contained else [])
