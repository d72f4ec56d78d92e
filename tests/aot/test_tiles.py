"""An object with tiles asks for their use itself: a C program need not, and learns where it may not."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.native.c_object.amx_permission import uses_tiles
from tosaic.lowering.target.presets import host, target

from .c_programs import needs_gcc
from .callers import Caller, printed, random_calls
from .machines import HOST

FORBIDDEN = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* from here on the system answers arch_prctl (158) of this process with an error */
__attribute__((constructor)) static void forbid(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 158, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) exit(77);
}
"""
needs_tiles = pytest.mark.skipif("int8" not in host().matrix_unit,
                                 reason="this machine has no matrix unit, or does not let us use it")

needs_float_tiles = pytest.mark.skipif("bfloat16" not in host().matrix_unit,
                                       reason="this machine has no tiles of bfloat16, or does not let us use them")


def lowered(features: str = "") -> Lowered:
    """A product that is large enough for tiles."""
    weight = np.random.default_rng(4).integers(-128, 128, (1, 128, 64)).astype(np.int8)
    zeros = np.zeros(1, np.int8)
    options = tosaic.CompileOptions(target("host", features=features))
    function = tosaic.jit(lambda x: tosaic.tosa.matmul(x, weight, zeros, zeros), options=options)
    return function.lower(np.zeros((1, 64, 128), np.int8))


def in_parts(precision: str = "bf16x6") -> Lowered:
    """A product of float32, by parts of bfloat16."""
    weight, zeros = np.random.default_rng(4).standard_normal((1, 128, 64)).astype(np.float32), np.zeros(1, np.float32)
    options = tosaic.CompileOptions(precision=precision)  # type: ignore[arg-type]
    function = tosaic.jit(lambda x: tosaic.tosa.matmul(x, weight, zeros, zeros), options=options)
    return function.lower(np.zeros((1, 64, 128), np.float32))


@needs_gcc
@needs_float_tiles
def test_an_object_with_products_of_parts_gives_the_bits_of_a_call(tmp_path: Path) -> None:
    entry = in_parts()
    assert uses_tiles(entry.program) and not uses_tiles(in_parts("f32").program)
    artifact = save([entry], tmp_path, "model", ArtifactForm())
    assert "TOSAIC_ERROR_MACHINE" in artifact.header.read_text()
    calls = random_calls([entry], 2)
    (tmp_path / "main.c").write_text(Caller([entry], artifact).source(calls))
    assert HOST.run(HOST.build(tmp_path, [tmp_path / "main.c", artifact.object])) == printed([entry], calls)


@needs_gcc
@needs_tiles
def test_an_object_with_tiles_runs_in_a_process_that_has_not_asked(tmp_path: Path) -> None:
    entry = lowered()
    assert uses_tiles(entry.program)
    artifact = save([entry], tmp_path, "model", ArtifactForm())
    assert "TOSAIC_ERROR_MACHINE" in artifact.header.read_text()
    calls = random_calls([entry], 2)
    (tmp_path / "main.c").write_text(Caller([entry], artifact).source(calls))
    assert HOST.run(HOST.build(tmp_path, [tmp_path / "main.c", artifact.object])) == printed([entry], calls)


@needs_gcc
@needs_tiles
def test_a_process_that_may_not_use_tiles_gets_an_error(tmp_path: Path) -> None:
    entry = lowered()
    artifact = save([entry], tmp_path, "model", ArtifactForm())
    source = Caller([entry], artifact).source(random_calls([entry], 1))
    assert source.count("!= TOSAIC_OK) return 2;") == 1
    source = source.replace("!= TOSAIC_OK) return 2;", "!= TOSAIC_ERROR_MACHINE) return 2; else return 4;")
    (tmp_path / "main.c").write_text(FORBIDDEN + source)
    code = subprocess.run([HOST.build(tmp_path, [tmp_path / "main.c", artifact.object])], timeout=60).returncode
    if code == 77:
        pytest.skip("this system does not let a process forbid itself system calls")
    assert code == 4


def test_an_object_without_tiles_has_no_error_for_them(tmp_path: Path) -> None:
    entry = lowered("-amx-int8" if sys.platform == "linux" and "int8" in host().matrix_unit else "")
    assert not uses_tiles(entry.program)
    assert "TOSAIC_ERROR_MACHINE" not in save([entry], tmp_path, "model", ArtifactForm()).header.read_text()
