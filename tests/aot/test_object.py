"""Object files: a C program gets the bytes that a call from Python gets, and nothing else is needed to link it."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tosaic.jit.aot import Artifact, write
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.kernels.kernel import Branch
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.program import Program
from tosaic.lowering.machine_code.elf import undefined_symbols
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.native.c_object.data_symbols import INLINE_BYTES
from tosaic.lowering.native.process.load import load
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from ..executable.programs import Programs, add, copy, mul, plus
from .c_programs import build, languages, needs_gcc, run, undefined

pytestmark = needs_gcc
X = np.arange(8, dtype=np.float32)

MEMORY = "static unsigned char memory[TOSAIC_DEMO_WORKSPACE_SIZE + TOSAIC_DEMO_WORKSPACE_ALIGNMENT];"
CALL = r"""
#include <stdio.h>
#include <stdlib.h>
#include "tosaic_demo.h"

static float x[8], y[8];
static unsigned char memory[TOSAIC_DEMO_WORKSPACE_SIZE + TOSAIC_DEMO_WORKSPACE_ALIGNMENT];

int main(void) {
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    struct tosaic_demo_workspace_pools pools;
    size_t past = (size_t)memory % TOSAIC_DEMO_WORKSPACE_ALIGNMENT;
    void *workspace = memory + (past ? TOSAIC_DEMO_WORKSPACE_ALIGNMENT - past : 0);
    int32_t status;
    pools.workspace = workspace;
    pools.workspace_size = TOSAIC_DEMO_WORKSPACE_SIZE;
    inputs.x = x;
    inputs.x_size = sizeof x;
    outputs.y = y;
    outputs.y_size = sizeof y;
    if (sizeof x != TOSAIC_DEMO_INPUT_X_SIZE || sizeof y != TOSAIC_DEMO_OUTPUT_Y_SIZE) return 3;
    if (fread(x, 1, sizeof x, stdin) != sizeof x) return 4;
    status = tosaic_demo_run(&inputs, &outputs, &pools);
    if (status != TOSAIC_OK) return 5;
    fwrite(y, 1, sizeof y, stdout);
    return 0;
}
"""


def demo(weights: int = 8) -> Program:
    """y = (x + c) * x + c[0], with a constant of `weights` elements."""
    p = Programs("main")
    x, y, t, u = p.input("x"), p.output("y"), p.temporary("t"), p.temporary("u")
    c = p.constant("c", np.arange(8, dtype=np.float32) * 1.5)
    big = p.constant("big", np.random.default_rng(1).standard_normal(weights).astype(np.float32))
    last = p.constant("last", big.data[-8:].copy())  # type: ignore[index]
    steps = [p.compute(t, add, x, c), p.compute(u, mul, t, x)]
    if weights == 8:
        return p.program(*steps, p.compute(y, add, u, last))
    v = p.temporary("v", (weights,))
    w = p.temporary("w")
    everything = p.compute(v, plus(1), big)
    builder, axis = Builder("tail"), Axis("i", 8)
    builder.loop(axis, lambda: builder.store(w, Affine.of(axis), builder.load(v, Affine.of(axis) + (weights - 8))))
    tail = p.compute(w, copy, u)
    p.functions[tail.kernel] = builder.finish()
    return p.program(*steps, everything, tail, p.compute(y, add, u, w))


def made(program: Program, folder: Path, name: str = "demo") -> Artifact:
    return write(program, plan(program), folder, name)


@languages
@pytest.mark.parametrize("weights", [8, 100_000], ids=["written out", "included"])
def test_c_gets_the_bytes_that_python_gets(tmp_path: Path, language: str, weights: int) -> None:
    program = demo(weights)
    artifact = made(program, tmp_path)
    expected, = load(program, plan(program))(X)
    assert run(build(tmp_path, CALL, [artifact], language), X.tobytes()) == expected.tobytes()
    assert undefined(artifact) <= {"memcpy", "memset"}
    assert set(artifact.needs) == undefined(artifact)
    assert artifact.constant_bytes == 4 * weights + 32


@pytest.mark.parametrize("flags", [["-static"], ["-fPIE", "-pie"], ["-shared", "-fPIC"]], ids=" ".join)
def test_the_object_links_every_way(tmp_path: Path, flags: list[str]) -> None:
    program = demo(100_000)
    built = build(tmp_path, CALL, [made(program, tmp_path)], flags=flags)
    if "-shared" not in flags:
        assert run(built, X.tobytes()) == load(program, plan(program))(X)[0].tobytes()


MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from programs import Programs, add, mul, plus
from tosaic.jit.aot import write
from tosaic.lowering.memory.planner import plan
p = Programs()
x, y, temporaries = p.input("x"), p.output("y"), [p.temporary(f"t{i}") for i in range(20)]
v, c = p.variable("v", initial=np.arange(8)), p.constant("c", np.arange(100_000, dtype=np.float32)[:8])
big = p.constant("big", np.arange(100_000, dtype=np.float32))
steps = [p.compute(t, add, x, c) for t in temporaries]
steps += [p.compute(p.temporary("all", (100_000,)), plus(1), big), *p.write(v, mul, v, temporaries[3])]
program = p.program(*steps, p.compute(y, add, temporaries[0], temporaries[19]))
write(program, plan(program), sys.argv[2], "demo")
"""


def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for seed in "1", "2":
        folder, temporary = tmp_path / seed, tmp_path / f"temporary {seed}"
        temporary.mkdir()
        subprocess.run([sys.executable, "-c", MAKE, str(Path(__file__).parents[1] / "executable"), str(folder)],
                       check=True, env=os.environ | {"PYTHONHASHSEED": seed, "TMPDIR": str(temporary)}, cwd=temporary)
        made.append([(folder / name).read_bytes() for name in ("demo.o", "tosaic_demo.h")])
    assert made[0] == made[1] and len(made[0][0]) > 400_000


def test_equal_constants_are_stored_once(tmp_path: Path) -> None:
    p = Programs()
    x, t, y = p.input("x"), p.temporary("t"), p.output("y")
    c, d = p.constant("c", X), p.constant("d", X.copy())
    artifact = made(p.program(p.compute(t, add, x, c), p.compute(y, mul, t, d)), tmp_path)
    assert artifact.constant_bytes == 32


def test_constants_may_come_from_a_folder_with_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / 'a "quoted" \\ päth'
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    program = demo(INLINE_BYTES)
    artifact = made(program, tmp_path)
    assert not any(odd.iterdir())
    expected, = load(program, plan(program))(X)
    assert run(build(tmp_path, CALL, [artifact]), X.tobytes()) == expected.tobytes()


WRONG = r"""
#include <stdio.h>
#include "tosaic_demo.h"

static union { double align[16]; unsigned char bytes[128]; } x, y;
static unsigned char memory[TOSAIC_DEMO_WORKSPACE_SIZE + 2 * TOSAIC_DEMO_WORKSPACE_ALIGNMENT];

static int32_t sized(const void *input, size_t x_size, void *output, size_t y_size, void *workspace, size_t size) {
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    struct tosaic_demo_workspace_pools pools;
    inputs.x = (const float *)input;
    inputs.x_size = x_size;
    outputs.y = (float *)output;
    outputs.y_size = y_size;
    pools.workspace = workspace;
    pools.workspace_size = size;
    return tosaic_demo_run(&inputs, &outputs, &pools);
}

static int32_t call(const void *input, void *output, void *workspace) {
    return sized(input, TOSAIC_DEMO_INPUT_X_SIZE, output, TOSAIC_DEMO_OUTPUT_Y_SIZE, workspace, TOSAIC_DEMO_WORKSPACE_SIZE);
}

int main(void) {
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    struct tosaic_demo_workspace_pools pools;
    size_t past = (size_t)memory % TOSAIC_DEMO_WORKSPACE_ALIGNMENT;
    unsigned char *workspace = memory + TOSAIC_DEMO_WORKSPACE_ALIGNMENT - past;
    inputs.x = 0;
    outputs.y = 0;
    pools.workspace = workspace;
    printf("%d %d %d ", (int)tosaic_demo_run(0, &outputs, &pools), (int)tosaic_demo_run(&inputs, 0, &pools),
           (int)tosaic_demo_run(&inputs, &outputs, 0));
    printf("%d ", (int)call(x.bytes, y.bytes, 0));
    printf("%d %d ", (int)call(0, y.bytes, workspace), (int)call(x.bytes, 0, workspace));
    printf("%d %d %d ", (int)call(x.bytes + 1, y.bytes, workspace), (int)call(x.bytes, y.bytes + 2, workspace),
           (int)call(x.bytes, y.bytes, workspace + 1));
    printf("%d %d ", (int)call(x.bytes, y.bytes, workspace + TOSAIC_DEMO_WORKSPACE_ALIGNMENT / 2),
           (int)call(x.bytes + 4, y.bytes + 4, workspace));
    printf("%d %d %d ", (int)sized(x.bytes, 31, y.bytes, 32, workspace, TOSAIC_DEMO_WORKSPACE_SIZE),
           (int)sized(x.bytes, 32, y.bytes, 33, workspace, TOSAIC_DEMO_WORKSPACE_SIZE),
           (int)sized(x.bytes, 32, y.bytes, 32, workspace, TOSAIC_DEMO_WORKSPACE_SIZE - 1));
    printf("%d", (int)sized(x.bytes, 32, y.bytes, 32, workspace, TOSAIC_DEMO_WORKSPACE_SIZE + 1));
    return 0;
}
"""


@languages
def test_null_and_misaligned_pointers_and_wrong_sizes_are_refused(tmp_path: Path, language: str) -> None:
    built = build(tmp_path, WRONG, [made(demo(), tmp_path)], language)
    assert run(built).decode() == "-1 -1 -1 -1 -1 -1 -2 -2 -2 -2 0 -4 -4 -4 0"


def test_the_workspace_is_used_only_inside_its_size(tmp_path: Path) -> None:
    source = CALL.replace(MEMORY, r"""
static unsigned char memory[TOSAIC_DEMO_WORKSPACE_SIZE + 4 * TOSAIC_DEMO_WORKSPACE_ALIGNMENT];
""").replace("+ (past ? TOSAIC_DEMO_WORKSPACE_ALIGNMENT - past : 0);", r"""
        + TOSAIC_DEMO_WORKSPACE_ALIGNMENT - past;
    unsigned char *begin = (unsigned char *)workspace, *end = begin + TOSAIC_DEMO_WORKSPACE_SIZE, *p;""").replace(
        "    inputs.x = x;", "    for (p = memory; p < memory + sizeof memory; p++) *p = 0xA5;\n    inputs.x = x;"
        ).replace("    fwrite", "    for (p = memory; p < memory + sizeof memory; p++)\n"
        "        if ((p < begin || p >= end) && *p != 0xA5) return 6;\n    fwrite")
    program = demo(1000)
    expected, = load(program, plan(program))(X)
    assert run(build(tmp_path, source, [made(program, tmp_path)]), X.tobytes()) == expected.tobytes()


THREADS = r"""
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tosaic_demo.h"

static void *work(void *number) {
    float x[8], y[8], first[8];
    void *workspace = 0;
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    struct tosaic_demo_workspace_pools pools;
    int i;
    if (posix_memalign(&workspace, TOSAIC_DEMO_WORKSPACE_ALIGNMENT, TOSAIC_DEMO_WORKSPACE_SIZE)) return 0;
    pools.workspace = workspace;
    pools.workspace_size = TOSAIC_DEMO_WORKSPACE_SIZE;
    inputs.x = x;
    inputs.x_size = sizeof x;
    outputs.y = y;
    outputs.y_size = sizeof y;
    for (i = 0; i < 8; i++) x[i] = (float)(*(int *)number * 100 + i);
    for (i = 0; i < 2000; i++) {
        if (tosaic_demo_run(&inputs, &outputs, &pools)) return 0;
        if (i == 0) memcpy(first, y, sizeof y);
        if (memcmp(first, y, sizeof y)) return 0;
    }
    free(workspace);
    return number;
}

int main(void) {
    pthread_t threads[4];
    int numbers[4], i, right = 0;
    for (i = 0; i < 4; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], 0, work, &numbers[i])) return 1;
    }
    for (i = 0; i < 4; i++) {
        void *result = 0;
        pthread_join(threads[i], &result);
        right += result == &numbers[i];
    }
    return right == 4 ? 0 : 2;
}
"""


def test_threads_with_workspaces_of_their_own_get_their_own_answers(tmp_path: Path) -> None:
    run(build(tmp_path, THREADS, [made(demo(1000), tmp_path)], flags=["-pthread"]))


def test_a_program_without_inputs_or_temporaries_takes_a_null_workspace(tmp_path: Path) -> None:
    p = Programs()
    y = p.output("y", (2,))
    artifact = made(p.program(p.compute(y, copy, p.constant("c", np.array([1.5, 2.5], np.float32)))), tmp_path)
    source = r"""
#include <stdio.h>
#include "tosaic_demo.h"
int main(void) {
    float y[2];
    struct tosaic_demo_outputs outputs;
    outputs.y = y;
    outputs.y_size = sizeof y;
    if (TOSAIC_DEMO_WORKSPACE_SIZE != 0 || tosaic_demo_run(&outputs, 0)) return 1;
    printf("%g %g", (double)y[0], (double)y[1]);
    return 0;
}"""
    assert run(build(tmp_path, source, [artifact])) == b"1.5 2.5"


def test_several_pools_are_given_one_by_one(tmp_path: Path) -> None:
    p = Programs()
    x, t, u, y = p.input("x"), p.temporary("t"), p.temporary("u"), p.output("y")
    program = p.program(p.compute(t, plus(1), x), p.compute(u, add, t, x), p.compute(y, mul, t, u))
    planned = plan(program, Memory(pools=(PoolInfo("fast ram", 32), PoolInfo("slow"))))
    artifact = write(program, planned, tmp_path, "demo")
    source = CALL.replace(MEMORY, r"""
static union { double d; unsigned char b[TOSAIC_DEMO_FAST_RAM_WORKSPACE_POOL_SIZE + 64]; } fast;
static union { double d; unsigned char b[TOSAIC_DEMO_SLOW_WORKSPACE_POOL_SIZE + 64]; } slow;
static unsigned char *up(unsigned char *p) { return p + (64 - (size_t)p % 64) % 64; }
""")
    start, end = source.index("    size_t past"), source.index("    inputs.x =")
    source = source[:start] + r"""
    int32_t status;
    pools.fast_ram = up(fast.b);
    pools.fast_ram_size = TOSAIC_DEMO_FAST_RAM_WORKSPACE_POOL_SIZE;
    pools.slow = up(slow.b);
    pools.slow_size = TOSAIC_DEMO_SLOW_WORKSPACE_POOL_SIZE;
""" + source[end:]
    expected, = load(program, planned)(X)
    assert run(build(tmp_path, source, [artifact]), X.tobytes()) == expected.tobytes()


def test_branches_work_in_c_too(tmp_path: Path) -> None:
    p = Programs()
    x, go, y = p.input("x", (1,)), p.input("go", (), "bool"), p.output("y", (1,))
    artifact = made(p.program(Branch(go, (p.compute(y, plus(1), x),), (p.compute(y, plus(2), x),))), tmp_path)
    source = r"""
#include <stdio.h>
#include "tosaic_demo.h"
int main(void) {
    static const float x[1] = {10};
    float y[1];
    uint8_t go;
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    inputs.x = x;
    inputs.x_size = sizeof x;
    inputs.go = &go;
    inputs.go_size = sizeof go;
    outputs.y = y;
    outputs.y_size = sizeof y;
    for (go = 0; go < 3; go++) {
        if (tosaic_demo_run(&inputs, &outputs, 0)) return 1;
        printf("%g ", (double)y[0]);
    }
    return 0;
}"""
    assert run(build(tmp_path, source, [artifact])) == b"12 11 11 "


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "aarch64", "thumbv7em", "cortex-m7", "riscv32"])
def test_objects_for_other_machines_are_made(tmp_path: Path, name: str) -> None:
    p = Programs()
    x, v, y = p.input("x"), p.variable("v", initial=X), p.output("y")
    c = p.constant("c", np.arange(8, dtype=np.float32))
    program = p.program(*p.write(v, add, x, c), p.compute(y, mul, v, v))
    artifact = write(program, plan(program), tmp_path, "demo", target(name))
    assert set(undefined_symbols(artifact.object.read_bytes())) <= {"memcpy", "memset"}
    machine = int.from_bytes(artifact.object.read_bytes()[18:20], "little")
    assert machine == {"x86-64": 62, "x86-64-v3": 62, "aarch64": 183, "riscv32": 243}.get(name, 40)


@pytest.mark.parametrize("name", ["thumbv7em", "cortex-m7"])
def test_an_arm_object_fits_both_floating_point_calling_conventions(tmp_path: Path, name: str) -> None:
    program = demo()
    artifact = write(program, plan(program), tmp_path, "demo", target(name))
    code = artifact.object.read_bytes()
    attributes = code[code.rindex(b"aeabi\0"):]  # the section lies behind all others, and ends in Tag_ABI_VFP_args = 3
    assert int.from_bytes(attributes[7:11], "little") == len(attributes) - 6 and attributes[-2:] == bytes((28, 3))


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem) as caught:
        made(demo(), tmp_path / "file" / "below")
    folder = tmp_path / "file" / "below"
    assert str(caught.value) == (f"error[file]: cannot write to {folder}: Not a directory\n"
                                 "  help: name a directory that can be written")
