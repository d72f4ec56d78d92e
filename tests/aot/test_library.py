"""Static libraries: the system's tools read them, a linker finds symbols in them, the same objects give the same bytes."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tosaic
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.aot import ArtifactForm
from tosaic.lowering.machine_code.elf import exported_symbols
from tosaic.lowering.native.c_object.archive import archive
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from .c_programs import needs_gcc
from .test_state import COUNT, SHARED, counting

ar = pytest.mark.skipif(shutil.which("ar") is None, reason="there is no ar")
MODEL = Path(__file__).parents[1] / "data" / "corpus" / "v_counter.mlir"


def listed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@ar
@needs_gcc
@pytest.mark.parametrize(("form", "expected"), [(ArtifactForm(), "15 4"), (SHARED, "15 14")], ids=["own", "namespace"])
def test_a_program_links_with_libraries(tmp_path: Path, form: ArtifactForm, expected: str) -> None:
    counting(tmp_path, "up", step=10, form=form)
    counting(tmp_path, "down", step=-1, form=form)
    for name in ("up", "down"):
        (tmp_path / f"lib{name}.a").write_bytes(archive({f"{name}.o": (tmp_path / f"{name}.o").read_bytes()}))
        (tmp_path / f"{name}.o").unlink()
    source = ('#include <stdio.h>\n#include "tosaic_up.h"\n#include "tosaic_down.h"\n' + COUNT.replace("NAME", "up")
              + COUNT.replace("NAME", "down")
              + 'int main(void) { printf("%lld ", count_up()); printf("%lld", count_down()); return 0; }\n')
    (tmp_path / "main.c").write_text(source)
    subprocess.run(["gcc", f"-I{tmp_path}", str(tmp_path / "main.c"), f"-L{tmp_path}", "-lup", "-ldown", "-o",
                    str(tmp_path / "program")], check=True)
    assert listed(str(tmp_path / "program")) == expected


@ar
@pytest.mark.parametrize("name", ["x86-64", "aarch64", "thumbv7em", "riscv32", "riscv64"])
def test_the_index_has_what_the_object_defines(tmp_path: Path, name: str) -> None:
    artifact = tosaic.load(MODEL).main.lower(tosaic.CompileOptions(target(name))).save(tmp_path, "model", library=True)
    library = tmp_path / "libmodel.a"
    assert artifact.others == (library,) and listed("ar", "t", str(library)) == "model.o\n"
    index = [line.split(" in ")[0] for line in listed("nm", "-s", str(library)).splitlines() if line.endswith(" in model.o")]
    assert index == list(exported_symbols(artifact.object.read_bytes()))
    assert {"tosaic_model_run", "tosaic_model_reset", "tosaic_model_checksum"} <= set(index)


@ar
@settings(derandomize=True, max_examples=15, deadline=None)
@given(names=st.lists(st.text("ab_9", min_size=1, max_size=40), min_size=1, max_size=4, unique=True))
def test_members_of_any_name_and_size_come_out_again(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    folder = tmp_path_factory.mktemp("members")
    code = tosaic.load(MODEL).main.lower(tosaic.CompileOptions(target("x86-64"))).save(folder, "model").object.read_bytes()
    members = {f"{name}.o": code + bytes(i) for i, name in enumerate(names)}
    (folder / "lib.a").write_bytes(archive(members))
    assert listed("ar", "t", str(folder / "lib.a")).split() == list(members)
    for name, data in members.items():
        found = subprocess.run(["ar", "p", str(folder / "lib.a"), name], capture_output=True, check=True).stdout
        assert found == data


def test_the_same_model_gives_the_same_library(tmp_path: Path) -> None:
    artifacts = [tosaic.load(MODEL).main.lower().save(tmp_path / str(i), "model", library=True) for i in (1, 2)]
    made = [a.others[0].read_bytes() for a in artifacts]
    assert made[0] == made[1] and made[0].startswith(b"!<arch>\n")


def test_what_is_no_elf_object_is_a_problem() -> None:
    with pytest.raises(Problem) as caught:
        archive({"a.o": b"\0asm"})
    assert "a static library is made of ELF objects" in str(caught.value)
