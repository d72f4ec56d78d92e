"""A header belongs to one object: a program with another header does not link, and it can ask at run time."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tosaic import Memory, Pool
from tosaic.jit.aot import Artifact, write
from tosaic.lowering.memory.planner import plan

from ..executable.programs import Programs, add, copy, plus
from .c_programs import COMPILERS, build, languages, needs_gcc, run

pytestmark = needs_gcc


def scaled(folder: Path, size: int = 8, weight: float = 1.5, pools: bool = False) -> Artifact:
    p = Programs()
    x, t, y = p.input("x", (size,)), p.temporary("t", (size,)), p.output("y", (size,))
    c = p.constant("c", np.full(size, weight, np.float32))
    program = p.program(p.compute(t, plus(1), x), p.compute(y, add, t, c))
    memory = Memory(constant_pools=(Pool("flash"),)) if pools else Memory()
    return write(program, plan(program, memory), folder, "demo")


USE = r"""
#include "tosaic_demo.h"
extern int32_t use(const void *inputs, const void *outputs, const void *pools);
int32_t use(const void *inputs, const void *outputs, const void *pools) {
    return tosaic_demo_run((const struct tosaic_demo_inputs *)inputs, (const struct tosaic_demo_outputs *)outputs,
                           (const struct tosaic_demo_workspace_pools *)pools);
}
int main(void) { return tosaic_demo_checksum != TOSAIC_DEMO_CHECKSUM || use(0, 0, 0) != TOSAIC_ERROR_NULL; }
"""


@languages
def test_the_header_of_another_object_does_not_link(tmp_path: Path, language: str) -> None:
    (tmp_path / "new").mkdir()
    mine, other = scaled(tmp_path), scaled(tmp_path / "new", size=9)
    run(build(tmp_path, USE, [mine], language))
    (tmp_path / "main.c").write_text(USE)
    done = subprocess.run([*COMPILERS[language], f"-I{tmp_path}", str(tmp_path / "main.c"), "-xnone", str(other.object), "-o",
                           str(tmp_path / "program")], capture_output=True, text=True)
    assert done.returncode and re.search(r"undefined reference to `tosaic_demo_run_[0-9a-f]{8}'", done.stderr)


def checksum(artifact: Artifact) -> str:
    return re.findall(r"_CHECKSUM 0x(\w{8})u", artifact.header.read_text())[0]


def test_the_checksum_says_what_a_program_relies_on(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(5)]
    plain, again, heavier = scaled(folders[0]), scaled(folders[1]), scaled(folders[2], weight=2.5)
    assert checksum(plain) == checksum(again) == checksum(heavier)  # constants inside the object are its own matter
    assert checksum(scaled(folders[3], size=9)) != checksum(plain)
    pooled = checksum(scaled(folders[3], pools=True))
    assert pooled != checksum(plain) and checksum(scaled(folders[4], weight=2.5, pools=True)) != pooled


def test_the_plain_name_is_there_for_callers_without_a_header(tmp_path: Path) -> None:
    import ctypes
    artifact = scaled(tmp_path)
    subprocess.run(["gcc", "-shared", "-o", str(tmp_path / "demo.so"), str(artifact.object)], check=True)
    library = ctypes.CDLL(str(tmp_path / "demo.so"))
    library.tosaic_demo_run.restype = ctypes.c_int32
    assert library.tosaic_demo_run(None, None, None) == -1
    assert f"{ctypes.c_uint32.in_dll(library, 'tosaic_demo_checksum').value:08x}" == checksum(artifact)


def test_headers_of_two_versions_do_not_compile_together(tmp_path: Path) -> None:
    p = Programs()
    program = p.program(p.compute(p.output("y"), copy, p.input("x")))
    write(program, plan(program), tmp_path, "other")
    scaled(tmp_path)
    newer = (tmp_path / "tosaic_other.h").read_text().replace("INTERFACE_VERSION 3", "INTERFACE_VERSION 4")
    (tmp_path / "tosaic_other.h").write_text(newer.replace("!= 2", "!= 3"))
    (tmp_path / "main.c").write_text('#include "tosaic_other.h"\n#include "tosaic_demo.h"\n')
    done = subprocess.run(["gcc", "-fsyntax-only", str(tmp_path / "main.c")], capture_output=True, text=True)
    assert done.returncode and "headers of two versions of tosaic in one program" in done.stderr


CONSTANTS = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static TOSAIC_ALIGNED(TOSAIC_DEMO_FLASH_CONSTANT_POOL_ALIGNMENT)
unsigned char flash[] = {TOSAIC_DEMO_FLASH_CONSTANT_POOL_DATA};
static int32_t ask(const void *pointer, size_t size) {
    struct tosaic_demo_constant_pools pools;
    pools.flash = pointer;
    pools.flash_size = size;
    return tosaic_demo_check_constants(&pools);
}
int main(void) {
    printf("%d %d %d %d %d ", (int)tosaic_demo_check_constants(0), (int)ask(0, sizeof flash), (int)ask(flash, sizeof flash - 1),
           (int)ask(flash + 1, sizeof flash), (int)ask(flash, sizeof flash));
    flash[5] ^= 1;
    printf("%d", (int)ask(flash, sizeof flash));
    return 0;
}"""


@languages
def test_constants_that_are_not_the_models_are_told(tmp_path: Path, language: str) -> None:
    assert run(build(tmp_path, CONSTANTS, [scaled(tmp_path, pools=True)], language)) == b"-1 -1 -4 -2 0 -6"


@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
@pytest.mark.parametrize("option", ["", "-DTOSAIC_DEMO_FLASH_CONSTANT_POOL_SECTION=MY_FLASH"])
def test_a_constant_pool_is_assembled_into_a_section_of_choice(tmp_path: Path, option: str) -> None:
    artifact = scaled(tmp_path, pools=True)
    source = r"""
#include "tosaic_demo.h"
int main(void) {
    struct tosaic_demo_constant_pools pools;
    pools.flash = tosaic_demo_flash_constant_pool;
    pools.flash_size = sizeof tosaic_demo_flash_constant_pool;
    return tosaic_demo_check_constants(&pools);
}"""
    flags = [str(tmp_path / "demo_flash.S"), *filter(None, [option])]
    run(build(tmp_path, source, [artifact], flags=flags))
    sections = subprocess.run(["objdump", "-t", str(tmp_path / "program")], capture_output=True, text=True, check=True).stdout
    line = next(s for s in sections.splitlines() if s.endswith("tosaic_demo_flash_constant_pool"))
    assert ("MY_FLASH" if option else ".rodata") in line
