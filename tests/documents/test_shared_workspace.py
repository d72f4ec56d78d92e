"""The planner's RFC, U2: two models are given one workspace, as large as the larger of them needs, and run in turn."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import tosaic

from ..aot.c_programs import build, languages, needs_gcc, run

pytestmark = needs_gcc
EXTENTS = {"small": 4, "large": 9}

MODEL = """func.func @main(%x: TYPE) -> TYPE {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %x, %z, %z : (TYPE, TYPE, tensor<1xf32>, tensor<1xf32>) -> TYPE
  %1 = tosa.matmul %0, %x, %z, %z : (TYPE, TYPE, tensor<1xf32>, tensor<1xf32>) -> TYPE
  %2 = tosa.matmul %1, %0, %z, %z : (TYPE, TYPE, tensor<1xf32>, tensor<1xf32>) -> TYPE
  return %2 : TYPE
}
"""
RUN = r"""
    {
        struct tosaic_NAME_inputs inputs;
        struct tosaic_NAME_outputs outputs;
        struct tosaic_NAME_workspace_pools pools;
        inputs.x = x_NAME; inputs.x_size = sizeof x_NAME;
        outputs.result0 = y_NAME; outputs.result0_size = sizeof y_NAME;
        pools.workspace = shared; pools.workspace_size = WORKSPACE_SIZE;
        if (tosaic_NAME_run(&inputs, &outputs, &pools)) return 1;
        fwrite(y_NAME, 1, sizeof y_NAME, stdout);
    }"""
MAIN = r"""
#include <stdio.h>
#include "tosaic_small.h"
#include "tosaic_large.h"
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define WORKSPACE_SIZE LARGER(TOSAIC_SMALL_WORKSPACE_SIZE, TOSAIC_LARGE_WORKSPACE_SIZE)
static unsigned char memory[WORKSPACE_SIZE + 64];
static float x_small[16], y_small[16], x_large[81], y_large[81];
int main(void) {
    unsigned char *shared = memory + (64 - (size_t)memory % 64) % 64;
    int i;
    for (i = 0; i < 16; i++) x_small[i] = (float)(i % 5);
    for (i = 0; i < 81; i++) x_large[i] = (float)(i % 7);
""" + "".join(RUN.replace("NAME", name) for name in ("small", "large", "small", "large")) + "\n    return 0;\n}\n"


@languages
def test_models_that_share_a_workspace_do_not_disturb_each_other(tmp_path: Path, language: str) -> None:
    artifacts, expected = [], {}
    for (name, n), step in zip(EXTENTS.items(), (5, 7), strict=True):
        path = tmp_path / f"{name}.mlir"
        path.write_text(MODEL.replace("TYPE", f"tensor<1x{n}x{n}xf32>"))
        model = tosaic.load(path)
        artifacts.append(model.save(tmp_path, name))
        x = (np.arange(n * n) % step).astype(np.float32).reshape(1, n, n)
        expected[name] = np.asarray(model(x)).tobytes()
    found = run(build(tmp_path, MAIN, artifacts, language))
    assert found == (expected["small"] + expected["large"]) * 2
