"""What a file of C source looks like, and what is said where it cannot be made."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import ShapeTiles
from tosaic.lowering.native.c_source.helpers import Helpers
from tosaic.lowering.native.c_source.kernels import Kernels
from tosaic.lowering.target.presets import target

from .functions import needs_gcc
from .library import lowered_for_c

DATA = Path(__file__).parents[1] / "data"


def text_of(name: str, folder: Path, **form: bool) -> str:
    model = tosaic.load(DATA / name)
    return save(lowered_for_c(model), folder, "model", ArtifactForm(emit="c", **form)).object.read_text()


def test_a_kernel_stands_under_its_expression_with_the_names_of_the_model(tmp_path: Path) -> None:
    text = text_of("counter.mlir", tmp_path)
    assert "(n[i0] + d[i0])" in text and "const float *d) {" in text and "/* Variable tensor<3xf32> */" in text
    assert "static const float constant_n_initial[3] = {\n    1.0f, 2.0f, 3.0f\n};" in text
    assert max(map(len, text.splitlines())) < 200


def test_a_model_is_saved_as_c_source_for_any_machine(tmp_path: Path) -> None:
    artifact = tosaic.load(DATA / "counter.mlir").save(tmp_path, "model", emit="c")
    assert [p.name for p in artifact.paths] == ["model.c", "tosaic_model.h"] and artifact.needs == ("memcpy",)
    assert "any" in artifact.header.read_text().splitlines()[3]


@needs_gcc
def test_the_source_takes_the_objects_place(tmp_path: Path) -> None:
    """One header but for the stack, which the source leaves to its compiler: what is compiled with an object's links with the
    source for the same machine."""
    model = tosaic.load(DATA / "counter.mlir")
    lowered = [e.lower(tosaic.CompileOptions(target("x86-64"))) for e in model]
    headers, symbols = [], []
    for emit in ("object", "c"):
        artifact = save(lowered, tmp_path / emit, "model", ArtifactForm(emit=emit))
        headers.append(artifact.header.read_text().replace("memset", "").split("The object needs")[1].split("\n", 1)[1])
        made = tmp_path / f"{emit}.o"
        if emit == "c":
            subprocess.run(["gcc", "-std=c99", "-c", str(artifact.object), "-o", str(made)], check=True)
        else:
            made = artifact.object
        done = subprocess.run(["nm", "-g", "--defined-only", str(made)], capture_output=True, text=True, check=True)
        symbols.append({line.split()[-1] for line in done.stdout.splitlines()})
    sections = [[section for section in text.split("\n\n") if "_STACK_BYTES" not in section] for text in headers]
    assert sections[0] == sections[1] and symbols[0] == symbols[1]


def test_a_library_of_c_source_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(tosaic.Problem, match="a static library has objects, and C source is none"):
        tosaic.load(DATA / "counter.mlir").save(tmp_path, "model", emit="c", library=True)
    with pytest.raises(tosaic.Problem, match="emit is 'rust'"):
        tosaic.load(DATA / "counter.mlir").save(tmp_path, "model", emit="rust")


def test_an_object_for_any_machine_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(tosaic.Problem, match="no object can be made for any"):
        save(lowered_for_c(tosaic.load(DATA / "counter.mlir")), tmp_path, "model")


def test_tiles_are_a_problem() -> None:
    b = Builder("tiles")
    f = b.finish()
    f.body.append(ShapeTiles(((16, 64),)))
    with pytest.raises(tosaic.Problem, match="kernel tiles uses a matrix unit, which C has no words for"):
        Kernels(Helpers()).add(f, (), "kernel", ())
