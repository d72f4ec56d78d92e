"""Whole models as object files: over several calls with state, C gets the bytes that Python gets."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import write
from tosaic.lowering.native.c_object.interface import c_name
from tosaic.runtime.variables import Context

from .c_programs import build, languages, needs_gcc, run, undefined

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"

FRAME = r"""
#include <stdio.h>
#include <stdlib.h>
#include "tosaic_model.h"

%s
int main(void) {
    int entry;
    while ((entry = getchar()) != EOF) {
        switch (entry) {
%s
        default: return 1;
        }
    }
    return 0;
}
"""


def caller(prefix: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """A C function that reads the inputs of one call, makes it, and writes the outputs."""
    macro = prefix.upper()
    lines = [f"static int call_{prefix}(void) {{",
             "    static TOSAIC_ALIGNED(TOSAIC_MODEL_WORKSPACE_ALIGNMENT)",
             "    unsigned char memory[TOSAIC_MODEL_WORKSPACE_SIZE + 1];",
             "    const struct tosaic_model_workspace_pools pools = {memory, sizeof memory};"]
    for kind, names in (("input", inputs), ("output", outputs)):
        if names:
            lines.append(f"    struct {prefix}_{kind}s {kind}s;")
        lines += [f"    static union {{ double d; unsigned char b[{macro}_{kind.upper()}_{n.upper()}_SIZE]; }} "
                  f"{kind}_{n};" for n in names]
    for n in inputs:
        lines += [f"    inputs.{n} = (void *)input_{n}.b;", f"    inputs.{n}_size = {macro}_INPUT_{n.upper()}_SIZE;",
                  f"    if (fread(input_{n}.b, 1, sizeof input_{n}.b, stdin) != sizeof input_{n}.b) return 1;"]
    lines += [f"    outputs.{n} = (void *)output_{n}.b;\n    outputs.{n}_size = {macro}_OUTPUT_{n.upper()}_SIZE;"
              for n in outputs]
    passed = ["&inputs"] * bool(inputs) + ["&outputs"] * bool(outputs) + ["&pools"]
    lines.append(f"    if ({prefix}_run({', '.join(passed)}) != TOSAIC_OK) return 2;")
    lines += [f"    fwrite(output_{n}.b, 1, {macro}_OUTPUT_{n.upper()}_SIZE, stdout);" for n in outputs]
    return "\n".join([*lines, "    return 0;", "}"])


@pytest.mark.parametrize("name", ["counter.mlir", "corpus/v_lstm.mlir", "corpus/f_lstm_keras.mlir"])
def test_a_model_gives_the_same_bytes_in_c_and_in_python(tmp_path: Path, name: str) -> None:
    model, context, random = tosaic.load(DATA / name), Context("test"), np.random.default_rng(5)
    entries = [entry.compile(context=context) for entry in model]
    programs = [(e.lowered.program, e.lowered.plan) for e in entries]
    artifact = write(*(programs[0] if len(programs) == 1 else (programs, None)), tmp_path, "model")
    prefixes = ["tosaic_model" + (f"_{c_name(e.name)}" if len(entries) > 1 else "") for e in entries]
    callers = "\n\n".join(caller(p, [*map(c_name, e.inputs)], [*map(c_name, e.outputs)])
                          for p, e in zip(prefixes, entries))
    cases = "\n".join(f"        case {i}: if (call_{p}()) return 2; break;" for i, p in enumerate(prefixes))
    program = build(tmp_path, FRAME % (callers, cases), [artifact])
    data, expected = b"", b""
    for number in [*range(len(entries)), *random.integers(0, len(entries), 12).tolist()]:
        executable = entries[number].executable
        arrays: list[Any] = [random.standard_normal(t.shape).astype(t.numpy_dtype) for t in executable.signature.inputs]
        data += bytes([number]) + b"".join(a.tobytes() for a in arrays)
        expected += b"".join(r.tobytes() for r in executable(*arrays))
    assert run(program, data) == expected
    assert undefined(artifact) <= {"memcpy", "memset"}


@languages
def test_the_header_of_a_model_compiles(tmp_path: Path, language: str) -> None:
    model = tosaic.load(DATA / "counter.mlir")
    lowered = [entry.lower() for entry in model]
    artifact = write([(x.program, x.plan) for x in lowered], None, tmp_path, "model")
    source = '#include "tosaic_model.h"\nint main(void) { tosaic_model_reset(); return 0; }\n'
    build(tmp_path, source, [artifact], language)


@languages
def test_a_whole_model_is_saved_from_python(tmp_path: Path, language: str) -> None:
    artifact = tosaic.load(DATA / "counter.mlir").save(tmp_path, "model", library=True, self_contained=True)
    assert [p.name for p in artifact.paths] == ["model.o", "tosaic_model.h", "libmodel.a"]
    build(tmp_path, '#include "tosaic_model.h"\nint main(void) { tosaic_model_reset(); return 0; }\n', [artifact], language)
    with pytest.raises(tosaic.Problem, match="has no entry function"):
        tosaic.load("module {\n}").save(tmp_path, "empty")
