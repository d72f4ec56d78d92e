"""Objects that take threads from a C program: a null pool, one that runs parts backwards, POSIX threads; the same bits."""
from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import Artifact

from ..aot.c_programs import build, languages, needs_gcc, run, undefined
from ..aot.machines import Machine, machines
from .cases import fine  # noqa: F401  a fixture

pytestmark = needs_gcc
POOL = Path(__file__).parent / "pthread_pool.h"
SHAPES = (60, 200), (200, 90)

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "pthread_pool.h"
#include "tosaic_model.h"

static float a[TOSAIC_MODEL_INPUT_A_SIZE / sizeof(float)], b[TOSAIC_MODEL_INPUT_B_SIZE / sizeof(float)];

struct call {
    TOSAIC_ALIGNED(TOSAIC_MODEL_WORKSPACE_ALIGNMENT) unsigned char memory[TOSAIC_MODEL_WORKSPACE_SIZE];
    float result[TOSAIC_MODEL_OUTPUT_RESULT0_SIZE / sizeof(float)];
    const struct tosaic_thread_pool *pool;
};

static int run(struct call *call) {
    struct tosaic_model_inputs inputs;
    struct tosaic_model_outputs outputs;
    struct tosaic_model_workspace_pools pools;
    inputs.a = a, inputs.a_size = sizeof a, inputs.b = b, inputs.b_size = sizeof b;
    outputs.result0 = call->result, outputs.result0_size = sizeof call->result;
    pools.workspace = call->memory, pools.workspace_size = sizeof call->memory;
    return tosaic_model_run(&inputs, &outputs, &pools, call->pool);
}

static void *runs(void *call) {
    int i;
    for (i = 0; i < 20; i++) if (run(call) != TOSAIC_OK) exit(4);
    return 0;
}

static void backwards(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts) {
    ++*(int *)context;
    while (parts-- > 0) task(argument, parts);
}

static struct call alone, turned, together[2];

int main(void) {
    static struct pthread_pool memory[2];
    static struct worker workers[2][WORKERS];
    struct tosaic_thread_pool reversed, pools[2];
    pthread_t threads[2];
    int count = 0, i;
    if (fread(a, sizeof a, 1, stdin) != 1 || fread(b, sizeof b, 1, stdin) != 1) return 1;
    if (run(&alone) != TOSAIC_OK) return 2;
    reversed.parallel = backwards, reversed.context = &count, turned.pool = &reversed;
    if (run(&turned) != TOSAIC_OK || count == 0) return 3;
    for (i = 0; i < 2; i++) {
        pool_start(&memory[i], workers[i]);
        pools[i].parallel = pool_parallel, pools[i].context = &memory[i], together[i].pool = &pools[i];
        pthread_create(&threads[i], 0, runs, &together[i]);
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
        pool_stop(&memory[i]);
        if (memcmp(together[i].result, alone.result, sizeof alone.result)) return 5;
    }
    if (memcmp(turned.result, alone.result, sizeof alone.result)) return 6;
    fwrite(alone.result, sizeof alone.result, 1, stdout);
    return 0;
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return saved(tmp_path_factory.mktemp("object"), 4)


def saved(folder: Path, threads: int) -> Artifact:
    f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(threads=threads))
    return f.lower(*(tosaic.TensorSpec(s) for s in SHAPES)).save(folder, "model")


def expected() -> tuple[np.ndarray, np.ndarray, bytes]:
    a, b = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in SHAPES)
    return a, b, tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(threads=1))(a, b).tobytes()


def check(folder: Path, artifact: Artifact, language: str, *flags: str) -> None:
    (folder / POOL.name).write_text(POOL.read_text())
    a, b, result = expected()
    program = build(folder, MAIN, [artifact], language, ["-pthread", f"-I{folder}", *flags])
    assert run(program, a.tobytes() + b.tobytes()) == result


def test_a_program_gives_its_own_threads(tmp_path: Path, artifact: Artifact) -> None:
    check(tmp_path, artifact, "c99", "-D_POSIX_C_SOURCE=200809L")


@functools.cache
def has_thread_sanitizer(folder: Path) -> bool:
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    command = ["gcc", "-fsanitize=thread", str(source), "-o", str(folder / "empty")]
    return subprocess.run(command, capture_output=True).returncode == 0 and subprocess.run(
        [str(folder / "empty")], capture_output=True).returncode == 0


def test_the_thread_sanitizer_finds_nothing(tmp_path: Path, artifact: Artifact) -> None:
    if not has_thread_sanitizer(tmp_path):
        pytest.skip("gcc has no thread sanitizer that runs here")
    check(tmp_path, artifact, "c99", "-D_POSIX_C_SOURCE=200809L", "-fsanitize=thread", "-g")


@languages
def test_the_header_is_plain_c(tmp_path: Path, artifact: Artifact, language: str) -> None:
    source = '#include "tosaic_model.h"\n#include "tosaic_model.h"\nint main(void) { return TOSAIC_MODEL_PARTS > 1 ? 0 : 1; }\n'
    assert run(build(tmp_path, source, [artifact], language)) == b""


def test_the_object_needs_no_threads_of_its_own(artifact: Artifact) -> None:
    assert undefined(artifact) <= {"memcpy", "memset", "memmove"}


def test_objects_for_one_thread_know_nothing_of_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = saved(tmp_path / "plain", 1)
    assert "pool" not in plain.header.read_text().replace("workspace_pools", "").replace("the pool, need it", "").replace(
        "or a pool or", "").replace("a constant pool does", "")


def test_how_many_threads_a_process_has_says_nothing_of_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tosaic.runtime import threads
    text = ('func.func @main(%x: tensor<1x96x96xf32>) -> tensor<1x96x96xf32> { %z = "tosa.const"() {values = dense<0.0> : '
            'tensor<1xf32>} : () -> tensor<1xf32> %y = tosa.matmul %x, %x, %z, %z : (tensor<1x96x96xf32>, tensor<1x96x96xf32>, '
            'tensor<1xf32>, tensor<1xf32>) -> tensor<1x96x96xf32> return %y : tensor<1x96x96xf32> }')
    one = tosaic.load(text).save(tmp_path / "one", "model")
    monkeypatch.setattr(threads.process, "number", 4)
    four = tosaic.load(text).save(tmp_path / "four", "model")
    assert one.object.read_bytes() == four.object.read_bytes()
    asked = tosaic.load(text).save(tmp_path / "asked", "model", tosaic.CompileOptions(threads=4))
    assert "thread_pool" in asked.header.read_text()


def test_main_runs_without_threads(tmp_path: Path) -> None:
    f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(threads=4))
    artifact = f.lower(*(tosaic.TensorSpec(s) for s in SHAPES)).save(tmp_path / "made", "model", main=True)
    assert run(build(tmp_path, (tmp_path / "made" / "main.c").read_text(), [artifact])) == b""


ELSEWHERE = r"""
#include "console.h"
#include "tosaic_model.h"

static float a[TOSAIC_MODEL_INPUT_A_SIZE / sizeof(float)], b[TOSAIC_MODEL_INPUT_B_SIZE / sizeof(float)];
static float results[2][TOSAIC_MODEL_OUTPUT_RESULT0_SIZE / sizeof(float)];
static TOSAIC_ALIGNED(TOSAIC_MODEL_WORKSPACE_ALIGNMENT) unsigned char memory[TOSAIC_MODEL_WORKSPACE_SIZE];

static void backwards(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts) {
    ++*(int *)context;
    while (parts-- > 0) task(argument, parts);
}

static int run(float *result, const struct tosaic_thread_pool *pool) {
    const struct tosaic_model_inputs inputs = {a, sizeof a, b, sizeof b};
    const struct tosaic_model_outputs outputs = {result, sizeof results[0]};
    const struct tosaic_model_workspace_pools pools = {memory, sizeof memory};
    return (int)tosaic_model_run(&inputs, &outputs, &pools, pool);
}

int main(void) {
    int count = 0;
    const struct tosaic_thread_pool pool = {backwards, &count};
    for (size_t i = 0; i < sizeof a / sizeof *a; ++i) a[i] = (float)((int)(i * 37 % 251) - 125) / 64;
    for (size_t i = 0; i < sizeof b / sizeof *b; ++i) b[i] = (float)((int)(i * 53 % 241) - 120) / 64;
    if (run(results[0], 0) != TOSAIC_OK || run(results[1], &pool) != TOSAIC_OK) return 1;
    for (size_t i = 0; i < sizeof results[0] / sizeof *results[0]; ++i)
        if (results[0][i] != results[1][i] || results[0][i] == 0) return 2;
    console_write(count ? "the same\n" : "not in parts\n");
    return 0;
}
"""


@machines
def test_parts_run_on_other_machines(machine: Machine, tmp_path: Path, fine: None) -> None:  # noqa: F811
    f = tosaic.jit(lambda a, b: tosaic.ops.tanh(a @ b), options=tosaic.CompileOptions(tosaic.target(machine.target), threads=3))
    made = f.lower(tosaic.TensorSpec((20, 60)), tosaic.TensorSpec((60, 50))).save(tmp_path, "model")
    (tmp_path / "main.c").write_text(ELSEWHERE)
    assert machine.run(machine.build(tmp_path, [tmp_path / "main.c", made.object])) == "the same\n"
