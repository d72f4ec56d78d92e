"""Debug information: kernels have their lines of the model's text, in objects and in this process, and code is what it is
without. GNU's tools and gdb say what is there, where they are installed.
"""
from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm
from tosaic.jit.command_line.cli import main
from tosaic.jit.stages import Lowered
from tosaic.lowering.machine_code.codegen import object_of
from tosaic.lowering.machine_code.debug_lines import with_debug_lines
from tosaic.lowering.machine_code.elf import ALLOCATE, ElfObject
from tosaic.lowering.machine_code.link import is_supported
from tosaic.lowering.target.presets import host
from tosaic.runtime.errors import Position, Problem, Source

MODEL = """func.func @main(%x: tensor<4x16xf32>, %w: tensor<1x16x8xf32>) -> tensor<4x8xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %s = tosa.const_shape {values = dense<[1, 4, 16]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %0 = tosa.exp %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = tosa.reshape %0, %s : (tensor<4x16xf32>, !tosa.shape<3>) -> tensor<1x4x16xf32>
  %2 = tosa.matmul %1, %w, %z, %z : (tensor<1x4x16xf32>, tensor<1x16x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x8xf32>
  %t = tosa.const_shape {values = dense<[4, 8]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %3 = tosa.reshape %2, %t : (tensor<1x4x8xf32>, !tosa.shape<2>) -> tensor<4x8xf32>
  %4 = tosa.reduce_max %3 {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %5 = tosa.sub %3, %4 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}
"""
gnu = pytest.mark.skipif(not is_supported() or not shutil.which("addr2line"), reason="addr2line for this machine is missing")
gdb = pytest.mark.skipif(not is_supported() or not all(map(shutil.which, ("gdb", "gcc"))), reason="gdb or gcc is missing")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


def lowered(model: Path, target: str | None = None) -> Lowered:
    return tosaic.load(model).main.lower(tosaic.CompileOptions(tosaic.target(target) if target else host()))


def elf(found: Lowered, folder: Path, debug: bool) -> ElfObject:
    return ElfObject(found.save(folder / str(debug), "m", self_contained=True, debug=debug).object.read_bytes())


def loaded(found: ElfObject) -> dict[str, bytes]:
    """The sections that are in memory when a program runs."""
    return {s.name: found.bytes_of(s) for s in found.sections if s.flags & ALLOCATE}


def has_lines(found: ElfObject) -> bool:
    return any(s.name == ".debug_line" for s in found.sections)


@pytest.mark.parametrize("target", ["x86-64-v3", "cortex-m0plus", "cortex-m7", "esp32-c3"])
def test_it_changes_no_byte_of_code_and_is_off_unless_asked_for(model: Path, tmp_path: Path, target: str) -> None:
    plain, debug = (elf(lowered(model, target), tmp_path, d) for d in (False, True))
    assert loaded(plain) == loaded(debug) and (has_lines(plain), has_lines(debug)) == (False, True)


def test_on_aarch64_the_instructions_are_the_same(model: Path, tmp_path: Path) -> None:
    plain, debug = (loaded(elf(lowered(model, "cortex-a53"), tmp_path, d)) for d in (False, True))
    assert plain.keys() == debug.keys()
    for name in (n for n in plain if n.startswith(".text")):
        words = [sorted(struct.unpack(f"<{len(code) // 4}I", code)) for code in (plain[name], debug[name])]
        assert words[0] == words[1]


@gnu
def test_each_kernel_of_an_object_has_its_line(model: Path, tmp_path: Path) -> None:
    found = lowered(model)
    path = found.save(tmp_path, "m", debug=True).object
    sections = [s.name for s in ElfObject(path.read_bytes()).sections if ".kernel_" in s.name and s.name.startswith(".text")]
    assert len(sections) == len(found.program.kernels) > 1
    for name in sections:
        position = found.program.kernels[int(name.split("kernel_")[1].split("_")[0])].position
        shown = run(["addr2line", "-f", "-e", str(path), "-j", name, "0"], tmp_path).splitlines()
        assert position is not None and shown == [name.removeprefix(".text."), f"{model}:{position.line}"]


def run(command: Sequence[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stopped(folder: Path, kernel: str, program: Sequence[str], **environment: str) -> str:
    """What gdb prints of a program that it stops in a kernel."""
    commands = ["set breakpoint pending on", "set debuginfod enabled off", f"break {kernel}", "run", "bt 2"]
    options = ["-batch", "-nx", *(word for c in commands for word in ("-ex", c))]
    return run(["gdb", *options, "--args", *program], folder, **environment)


@gdb
def test_gdb_stops_in_a_kernel_of_a_c_program_at_its_line(model: Path, tmp_path: Path) -> None:
    found = lowered(model).save(tmp_path, "m", self_contained=True, main=True, debug=True)
    name = next(s.name for s in ElfObject(found.object.read_bytes()).symbols if ".kernel_1_" in s.name and s.value == 0
                and not s.name.startswith("."))
    run(["gcc", "-o", "program", "main.c", str(found.object)], tmp_path)
    text = stopped(tmp_path, name, ["./program"])
    place = rf"{re.escape(name)} \(\) at {re.escape(str(model))}:8"
    assert re.search(rf"Breakpoint 1, .*{place}\n8\t  %3 = tosa.reshape", text), text
    assert re.search(r"#1 .*m.run", text.replace("[", ".").replace("]", "")), text


@gdb
def test_gdb_stops_in_a_kernel_of_this_process_at_its_line(model: Path, tmp_path: Path) -> None:
    """Code of the cache has no lines: it is not taken, although it is there."""
    script = ("import sys, numpy as np, tosaic; "
              "tosaic.load(sys.argv[1])(np.ones((4, 16), 'f'), np.ones((1, 16, 8), 'f'))")
    program, cache = [sys.executable, "-c", script, str(model)], str(tmp_path / "cache")
    run(program, tmp_path, TOSAIC_CACHE=cache)
    text = stopped(tmp_path, "program.kernel_2_sub_reduce_max", program, TOSAIC_CACHE=cache, TOSAIC_DEBUG="1")
    assert re.search(rf"program.kernel_2_sub_reduce_max \(\) at {re.escape(str(model))}:10\n", text), text


def test_the_command_has_it_as_g(model: Path, tmp_path: Path) -> None:
    assert main(["compile", str(model), "-o", str(tmp_path), "-g"]) == 0
    assert has_lines(ElfObject((tmp_path / "model.o").read_bytes()))


def test_c_source_has_no_lines(model: Path, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="C source has no lines of the model"):
        ArtifactForm(emit="c", debug=True)
    assert main(["compile", str(model), "-o", str(tmp_path), "-g", "--emit", "c"]) == 2


def test_places_in_files_without_lines_are_left_out(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tosa"
    assert main(["convert", str(model), str(path)]) == 0
    assert not has_lines(elf(lowered(path), tmp_path, True))


FUNCTION = f'target triple = "{host().triple}"\ndefine i32 @f() {{\nentry:\n ret i32 3\n}}\n'


@pytest.mark.skipif(not host().is_elf, reason="objects are no ELF here")
@pytest.mark.parametrize("name", ['a"b.mlir', "a\\22.mlir", "a\nb.mlir", "\u00e4\udcff.mlir"])
@pytest.mark.parametrize("column", [1, 1 << 20])
def test_names_of_sources_are_any_and_lines_as_long_as_they_like(name: str, column: int) -> None:
    where = Position(Source(name, ""), 7, column)
    assert has_lines(ElfObject(object_of(with_debug_lines(FUNCTION, {"f": where}), host())))


def test_a_source_without_a_name_has_no_lines() -> None:
    assert with_debug_lines(FUNCTION, {"f": Position(Source("", ""), 7, 1)}) == FUNCTION


def test_a_loop_that_is_a_function_of_its_own_has_the_line_of_its_kernel() -> None:
    text = ("define internal void @loop.12ab() {\nentry:\n ret void\n}\ndefine internal void @other() {\nentry:\n ret void\n}\n"
            "define void @f() {\nentry:\n call void @loop.12ab()\n call void @other()\n ret void\n}\n")
    found: Any = with_debug_lines(text, {"f": Position(Source("m", ""), 7, 1)}).split("\n")
    defined = {line.split("@")[1].split("(")[0]: line for line in found if line.startswith("define")}
    assert {name for name, line in defined.items() if "!dbg" in line} == {"f", "loop.12ab"}
    object_of("\n".join([f'target triple = "{host().triple}"', *found]), host())
