"""The constant pools of a model beside its object, linked and run in each form: bytes that an assembler includes, an array of
C, an object in a library. And a library links with nothing else of the model's."""
from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import tosaic
from tosaic import Memory, Pool
from tosaic.jit.aot import Artifact, ArtifactForm, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.machine_code.elf import exported_symbols, undefined_symbols
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from ..covering import covering
from .c_programs import COMPILERS, languages, needs_gcc, sections
from .callers import Caller, printed, random_calls
from .machines import MACHINES, PROCESSORS, Machine, needs

DATA = Path(__file__).parents[1] / "data" / "corpus"
POOLS = Memory(pools=(Pool("ram"),), constant_pools=(Pool("tcm", 256), Pool("flash")))
NAMES = "host", "aarch64", "riscv32", "riscv64", "cortex-m0", "cortex-m4"
SOME = [m for m in (*MACHINES, *PROCESSORS[:1]) if m.name in NAMES]
ON_SOME = [pytest.param(m, marks=needs(m), id=m.name) for m in SOME]
MODELS = ("f_conv_bn_relu_pool_int8.mlir", "f_mlp_int8.mlir")


def saved(folder: Path, machine: Machine, name: str, form: ArtifactForm) -> Artifact:
    options = tosaic.CompileOptions(target(machine.target), memory=POOLS)
    return save([e.lower(options) for e in tosaic.load(DATA / name)], folder, "model", form)


@functools.cache
def called(name: str) -> tuple[list[Lowered], Sequence[tuple[int, Sequence[Array]]], str]:
    """A model for this machine, calls of it, and what it gives."""
    here = [e.lower(tosaic.CompileOptions(memory=POOLS)) for e in tosaic.load(DATA / name)]
    calls = random_calls(here, 2 * len(here))
    return here, calls, printed(here, calls)


def check(machine: Machine, folder: Path, name: str, artifact: Artifact, form: ArtifactForm, linked: Sequence[Path]) -> None:
    """A program with these files prints what this process computes."""
    here, calls, expected = called(name)
    (folder / "main.c").write_text(Caller(here, artifact, form, constants_linked=True).source(calls))
    assert machine.run(machine.build(folder, [folder / "main.c", *linked])) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("pool_form", "suffixes", "name", "machine"), covering(2, [
    pytest.param("binary", {".bin", ".S"}, id="binary"), pytest.param("array", {".c"}, id="array")], MODELS, ON_SOME))
def test_a_program_runs_with_the_files_of_its_pools(tmp_path: Path, machine: Machine, name: str, pool_form: str,
                                                    suffixes: set[str]) -> None:
    form = ArtifactForm(pool_form=pool_form)
    artifact = saved(tmp_path, machine, name, form)
    assert {p.suffix for p in artifact.others} == suffixes
    check(machine, tmp_path, name, artifact, form, [artifact.object, *(p for p in artifact.others if p.suffix != ".bin")])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "machine"), covering(2, MODELS, ON_SOME))
def test_a_program_runs_with_a_library_alone(tmp_path: Path, machine: Machine, name: str) -> None:
    form = ArtifactForm(library=True)
    artifact = saved(tmp_path, machine, name, form)
    for path in artifact.others:
        if path.suffix != ".a":
            path.unlink()
    artifact.object.unlink()
    check(machine, tmp_path, name, artifact, form, [tmp_path / "libmodel.a"])


WHOLE = "-Wl,--no-undefined", "-Wl,--whole-archive"
FORMS = [pytest.param(ArtifactForm(library=True), id="own"), pytest.param(ArtifactForm(True, True), id="contained"),
         pytest.param(ArtifactForm(library=True, state="caller"), id="caller"),
         pytest.param(ArtifactForm(library=True, namespace="house"), id="namespace")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("form", "name", "machine"), covering(
    3, FORMS, ["v_lstm.mlir", "f_conv_bn_relu_pool_int8.mlir", "f_shape_ops.mlir"], ON_SOME))
def test_all_of_a_library_links_with_an_empty_program(tmp_path: Path, machine: Machine, name: str, form: ArtifactForm) -> None:
    """With all of its members, and nothing but what compilers bring along; what it needs of that is what its header says."""
    artifact = saved(tmp_path, machine, name, form)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    library = tmp_path / "libmodel.a"
    machine.build(tmp_path, [tmp_path / "main.c"], (*WHOLE, str(library), "-Wl,--no-whole-archive"))
    command = [machine.compiler[0].replace("gcc", "ld"), "-r", "--whole-archive", str(library), "-o", str(tmp_path / "all.o")]
    if machine.name == "riscv32":
        command[1:1] = ["-m", "elf32lriscv"]
    if shutil.which(command[0]) is None:
        command[0] = "ld"
    subprocess.run(command, check=True)
    assert undefined_symbols((tmp_path / "all.o").read_bytes()) == artifact.needs
    pools = {f"tosaic_model_{p.stem}" for p in artifact.pools if p.kind == "constant" and p.nbytes}
    assert pools <= set(exported_symbols((tmp_path / "all.o").read_bytes()))


@needs_gcc
@languages
def test_an_array_of_c_goes_where_the_program_wants_it(tmp_path: Path, language: str) -> None:
    """With the macro that says so of the assembler's file, and the compiler's own section without."""
    saved(tmp_path, MACHINES[0], MODELS[0], ArtifactForm(pool_form="array"))
    for flag, section in (([], ".rodata"), (["-DTOSAIC_MODEL_FLASH_CONSTANT_POOL_SECTION=.outer.flash"], ".outer.flash")):
        subprocess.run([*COMPILERS[language], *flag, "-c", f"-I{tmp_path}", str(tmp_path / "model_flash.c"), "-o",
                        str(tmp_path / "pool.o")], check=True)
        assert max(sections(tmp_path / "pool.o"), key=lambda s: s.nbytes).name == section


def test_another_form_of_pools_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        tosaic.load(DATA / MODELS[0]).main.lower().save(tmp_path, "model", pool_form="hex")
    assert str(caught.value) == "error[option]: pool_form is 'hex'\n  help: it may be binary or array"
