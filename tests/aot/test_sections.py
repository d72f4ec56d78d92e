"""Each function and each constant of an object has a section of its own, and a linker leaves out those that nothing uses."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.jit.aot import Artifact, save
from tosaic.lowering.target.presets import target

from .c_programs import needs_gcc, sections
from .machines import MACHINES, PROCESSORS, Machine, needs

TWO = """
func.func @first(%x: tensor<64xi32>) -> tensor<64xi32> {
  %c = "tosa.const"() <{values = dense<"0xFIRST"> : tensor<64xi32>}> : () -> tensor<64xi32>
  %0 = tosa.add %x, %c : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  return %0 : tensor<64xi32>
}
func.func @second(%x: tensor<64xi32>) -> tensor<64xi32> {
  %c = "tosa.const"() <{values = dense<"0xSECOND"> : tensor<64xi32>}> : () -> tensor<64xi32>
  %0 = tosa.sub %x, %c : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  return %0 : tensor<64xi32>
}
"""
"""Two entry functions, each with a constant."""
SOME = [m for m in (*MACHINES[1:], *PROCESSORS) if m.name in ("aarch64", "riscv64", "riscv32", "cortex-m0", "cortex-m7")]


def two(folder: Path, machine: str) -> Artifact:
    text = TWO
    for number, word in enumerate(("FIRST", "SECOND"), 1):
        text = text.replace(word, "".join(f"{i:02x}{number:02x}0000" for i in range(64)))
    return save([e.lower(tosaic.CompileOptions(target(machine))) for e in tosaic.load(text)], folder, "two")


def symbols(path: Path) -> list[tuple[str, str, str]]:
    """(type, name, name of its section) of each function and object that an object defines, as readelf says."""
    names = ["", *(s.name for s in sections(path))]
    done = subprocess.run(["readelf", "-sW", str(path)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" +\d+: ", line)]
    return [(r[3], r[7], names[int(r[6])]) for r in rows if len(r) > 7 and r[3] in ("FUNC", "OBJECT") and r[6].isdigit()]


@pytest.mark.parametrize("machine", ["x86-64", "aarch64", "riscv32", "riscv64", "cortex-m0", "cortex-m4", "cortex-m55"])
def test_each_function_and_each_constant_has_a_section_of_its_name(tmp_path: Path, machine: str) -> None:
    artifact = two(tmp_path, machine)
    found = symbols(artifact.object)
    assert {"tosaic_two_first_run", "tosaic_two_second_run", "tosaic_two_reset", "tosaic_two_checksum"} <= {s[1] for s in found}
    for kind, name, section in found:
        if kind == "FUNC" and not section.startswith(f".text.{name}_"):  # an alias stands in the section of what it names
            assert section == f".text.{name}"
        elif kind == "OBJECT":
            assert section == f".rodata.{name}"
    assert not [s for s in sections(artifact.object) if s.name in (".text", ".rodata") and s.nbytes]


@needs_gcc
def test_a_large_constant_that_is_included_has_a_section_too(tmp_path: Path) -> None:
    """Of this machine's objects: others have all bytes in their text."""
    weights = np.arange(2048, dtype=np.float32)
    artifact = tosaic.jit(lambda x: ops.add(x, weights)).compile(weights).lowered.save(tmp_path, "model")
    assert [(s.name, s.nbytes) for s in sections(artifact.object) if s.name.startswith(".rodata.tosaic_model.constant")] == [
        (".rodata.tosaic_model.constant_0", 8192)]


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in SOME])
def test_what_a_program_does_not_call_is_not_linked(tmp_path: Path, machine: Machine) -> None:
    artifact = two(tmp_path, machine.target)
    (tmp_path / "main.c").write_text('#include "tosaic_two.h"\nint main(void) { return tosaic_two_first_run(0, 0, 0); }\n')
    program = machine.build(tmp_path, [tmp_path / "main.c", artifact.object], ("-Wl,--gc-sections",))
    linked = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in linked.splitlines() if "tosaic" in line}
    assert "tosaic_two_first_run" in names
    assert not [name for name in names if "second" in name or name in ("tosaic_two_reset", "tosaic_two_checksum")]
    code = program.read_bytes()
    assert bytes.fromhex("00010000 01010000") in code and bytes.fromhex("00020000 01020000") not in code


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in SOME])
def test_the_map_of_a_linker_names_what_was_left_out(tmp_path: Path, machine: Machine) -> None:
    artifact = two(tmp_path, machine.target)
    (tmp_path / "main.c").write_text('#include "tosaic_two.h"\nint main(void) { return tosaic_two_second_run(0, 0, 0); }\n')
    machine.build(tmp_path, [tmp_path / "main.c", artifact.object], ("-Wl,--gc-sections", f"-Wl,-Map={tmp_path / 'map'}"))
    text = (tmp_path / "map").read_text()
    left_out = text[text.index("Discarded input sections"):text.index("Memory Configuration")]
    functions = set(re.findall(r"^ \.text\.(\S+)", left_out, re.MULTILINE))
    assert {"tosaic_two_reset", "tosaic_two_first.run"} <= functions and "tosaic_two_second.run" not in functions
