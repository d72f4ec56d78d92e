"""The stack that a header promises, held against a painted one: a program fills the memory below its stack pointer, calls the
model, and looks how far down that has been written. What is measured is never more than the bound, and not much less."""
from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.jit.aot import Artifact, ArtifactForm, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.machine_code.stack.bound import ALLOWED
from tosaic.lowering.target.presets import target

from ..covering import covering
from ..models.sources import wake_word_model
from .callers import PLAIN, Caller, random_calls
from .machines import MACHINES, PROCESSORS, Machine, needs

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "samples" / "models"
MODELS = sorted([*DATA.glob("*.mlir"), *(DATA / "corpus").glob("[fv]_*.mlir"),
                 *(path for path in SAMPLES.glob("*.*") if path.suffix in (".mlir", ".tflite") and path.stem != "op_by_op")])
"""All models of the tests and samples; the one left out is a kernel program, of which there is no object."""
BY_NAME = [pytest.param(path, id=path.stem) for path in MODELS]
WHERE = [m for m in MACHINES if m.name in ("cortex-m4", "riscv32")]
ELSEWHERE = [m for m in (*MACHINES, *PROCESSORS) if m.name in (
    "host", "aarch64", "riscv64", "cortex-m7", "cortex-m0", "cortex-m4+nofp", "cortex-m33", "cortex-m55", "rv32imac",
    "x86-64-v3", "spacemit-k1", "sifive-x280")]

UNUSED = 16
"""Bytes of frames at most that a run does not write: padding, and paths that it does not take."""

MORE = 512
"""Bytes that are painted beyond the bound."""

PAINT = """
static unsigned long deepest;
#define STACK_POINTER() ((volatile unsigned char *)stack_pointer)
#define MEASURED(call) __extension__ ({ \\
    unsigned long stack_pointer; \\
    volatile unsigned char *p; \\
    int32_t result; \\
    __asm__ volatile(READ_POINTER : "=r"(stack_pointer)); \\
    for (p = STACK_POINTER() - PAINTED; p < STACK_POINTER(); ++p) *p = 0xA5; \\
    result = (call); \\
    for (p = STACK_POINTER() - PAINTED; p < STACK_POINTER() && *p == 0xA5; ++p) { } \\
    if ((unsigned long)(STACK_POINTER() - p) > deepest) deepest = (unsigned long)(STACK_POINTER() - p); \\
    result; })
static void write_deepest(void) {
    char text[24] = {0};
    unsigned long n = (deepest + 3) / 4 * 4; /* the last byte may be of the paint that a register still holds */
    int at = 22;
    do text[--at] = (char)('0' + n % 10); while (n /= 10);
    console_write("stack ");
    console_write(text + at);
    console_write("\\n");
}
"""
READ = {"x86": "movq %%rsp, %0", "aarch64": "mov %0, sp", "arm": "mov %0, sp", "riscv": "mv %0, sp"}
"""How each processor's stack pointer is read."""


def painted(source: str, machine: Machine, nbytes: int) -> str:
    """The program of a caller, which measures each run with so many bytes painted."""
    read = READ[target(machine.target).architecture]
    source = source.replace('#include "console.h"', f'#include "console.h"\n#define READ_POINTER "{read}"\n#define PAINTED '
                            f'{nbytes}', 1)
    source = re.sub(r"if \((\w+_run\(.*\)) != TOSAIC_OK\) return 2;", r"if (MEASURED(\1) != TOSAIC_OK) return 2;", source)
    return source.replace("static inline void paint(", f"{PAINT}\nstatic inline void paint(", 1)


def measured(machine: Machine, folder: Path, lowered: Sequence[Lowered], calls: Sequence[tuple[int, Sequence[Array]]],
             form: ArtifactForm = PLAIN) -> tuple[int, Artifact, str]:
    """The deepest stack of some calls, the files, and what else the program prints."""
    artifact = save(lowered, folder, "model", form)
    head, main, tail = Caller(lowered, artifact, form).source(calls).rpartition("    return 0;\n}\n")
    (folder / "main.c").write_text(painted(f"{head}    write_deepest();\n{main}{tail}", machine, run_bound(artifact) + MORE))
    text, _, number = machine.run(machine.build(folder, [folder / "main.c", artifact.object])).rpartition("stack ")
    return int(number), artifact, text


def run_bound(artifact: Artifact) -> int:
    """The bound of any entry function, as the header has it."""
    found = re.findall(r"^#define TOSAIC_\w+_RUN_STACK_BYTES (\d+)", artifact.header.read_text(), re.MULTILINE)
    return max(map(int, found))


def check(machine: Machine, folder: Path, model: Any, form: ArtifactForm = PLAIN) -> None:
    """A bound holds, and is near: slots of a frame that a run leaves alone, what functions elsewhere do not need of their
    allowance, and on x86 the red zone are the difference."""
    there = target(machine.target)
    lowered = [e.lower(tosaic.CompileOptions(there)) for e in model]
    found, artifact, _ = measured(machine, folder, lowered, random_calls(lowered, 2 * len(lowered)), form)
    bound = run_bound(artifact)
    assert artifact.stack is not None
    spare = max(entry.allowance for entry in artifact.stack.entries.values())
    assert 0 < found <= bound <= found + UNUSED + spare + (128 if there.architecture == "x86" else 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("path", "machine"), covering(2, BY_NAME, [pytest.param(m, marks=needs(m), id=m.name) for m in WHERE]))
def test_no_call_takes_more_stack_than_the_header_says(path: Path, machine: Machine, tmp_path: Path) -> None:
    check(machine, tmp_path, tosaic.load(path))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "machine"), covering(
    2, ["counter.mlir", "corpus/v_lstm.mlir", "corpus/f_conv_bn_relu_pool_int8.mlir"],
    [pytest.param(m, marks=needs(m), id=f"{m.name} {m.target}") for m in ELSEWHERE]))
def test_the_same_on_other_machines(machine: Machine, name: str, tmp_path: Path) -> None:
    check(machine, tmp_path, tosaic.load(DATA / name))


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in WHERE])
def test_the_same_of_a_wake_word_model(machine: Machine, tmp_path: Path) -> None:
    pytest.importorskip("pymicro_wakeword")
    pytest.importorskip("tosa_converter_for_tflite")
    check(machine, tmp_path, tosaic.load(wake_word_model("okay_nabu")))


@pytest.mark.parametrize("form", [ArtifactForm(self_contained=True), ArtifactForm(state="caller")], ids=["own", "caller"])
def test_the_same_of_other_forms(form: ArtifactForm, tmp_path: Path) -> None:
    machine = WHERE[1]
    if machine.missing:
        pytest.skip(f"not installed: {', '.join(machine.missing)}")
    check(machine, tmp_path, tosaic.load(DATA / "corpus" / "v_lstm.mlir"), form)


LIBRARY = """
#include <stdint.h>
#include "console.h"
static volatile float a, b;
static volatile double c, d;
static volatile int i, j;
static volatile int32_t kept;
static volatile unsigned u, v;
static volatile long long l, m;
static inline void paint(void) { }
int main(void) {
    static const float some[] = {0.0f, 1.5f, -3e38f, 1e-44f, 7.25e-3f, -2.0f};
    unsigned x, y;
    for (x = 0; x < 6; ++x) for (y = 0; y < 6; ++y) {
        a = some[x], b = some[y], c = a, d = b;
        i = (int)(x * 1000003u) - 99, j = (int)(y * 77u) + 1, u = (unsigned)i, v = (unsigned)j;
        l = (long long)i << 21, m = j;
        CALLS
    }
    write_deepest();
    return 0;
}
"""
CALLED = ("a + b", "a - b", "a * b", "a / b", "(float)i", "(float)u", "(float)c", "c + d", "c - d", "c * d", "c / d",
          "(double)a", "(double)i", "(double)u", "a", "c", "i / j", "u / v", "l * m", "l << (j & 63)", "l >> (j & 63)")
"""Each becomes a call of a function that objects of tosaic may need."""
SOFT = [m for m in PROCESSORS if m.name in ("cortex-m0", "cortex-m3", "cortex-m4+nofp", "rv32imc", "rv32imac")]


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in SOFT])
def test_an_allowance_is_more_than_functions_of_gcc_take(machine: Machine, tmp_path: Path) -> None:
    calls = "\n".join(f"        (void)MEASURED(kept = (int32_t)({text}));" for text in CALLED)
    (tmp_path / "main.c").write_text(painted(LIBRARY.replace("        CALLS", calls), machine, 512))
    found = int(machine.run(machine.build(tmp_path, [tmp_path / "main.c"])).rpartition("stack ")[2])
    assert 16 <= found <= ALLOWED[False]


def test_threads_come_on_top(tmp_path: Path) -> None:
    """A model that calls what the caller gives: the header says so. Without threads the sentence is not there."""
    x = np.zeros((1, 56, 56, 64), np.float32)
    one = tosaic.jit(lambda x: ops.exp(x)).lower(x).save(tmp_path / "one", "model")
    two = tosaic.jit(lambda x: ops.exp(x), options=tosaic.CompileOptions(threads=2)).lower(x).save(tmp_path / "two", "model")
    assert one.stack is not None and two.stack is not None
    assert two.stack.whole.calls_given and not one.stack.whole.calls_given
    said = "/* the thread pool's function comes on top */"
    assert said in two.header.read_text() and said not in one.header.read_text()


def test_c_source_leaves_the_stack_to_its_compiler(tmp_path: Path) -> None:
    model = tosaic.load(DATA / "corpus" / "v_lstm.mlir").main
    artifact = model.lower(tosaic.CompileOptions(target("any"))).save(tmp_path, "model", emit="c")
    assert artifact.stack is None and "STACK" not in artifact.header.read_text()


def test_vectors_as_long_as_a_run_finds_them_have_no_bound_where_they_are_kept(tmp_path: Path) -> None:
    (entry,) = tosaic.load(DATA / "corpus" / "f_mobilenet_block_int8.mlir")
    stack = save([entry.lower(tosaic.CompileOptions(target("rv64gcv")))], tmp_path, "model").stack
    assert stack is not None and stack.unknown and "only a run knows how large the frame of" in stack.unknown


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in PROCESSORS if m.name in (
    "spacemit-k1", "sifive-x280")])
@pytest.mark.parametrize("name", ["f_mobilenet_block_int8", "f_conv_bn_relu_pool_int8", "v_lstm"])
def test_vectors_of_a_length_that_is_known_have_one(name: str, machine: Machine, tmp_path: Path) -> None:
    """Painted, too; frames with vectors are aligned to them, so that more of them is not written."""
    lowered = [e.lower(tosaic.CompileOptions(target(machine.target))) for e in tosaic.load(DATA / "corpus" / f"{name}.mlir")]
    found, artifact, _ = measured(machine, tmp_path, lowered, random_calls(lowered, 2 * len(lowered)))
    assert artifact.stack is not None and not artifact.stack.unknown
    assert 0 < found <= run_bound(artifact)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("path", "machine"), covering(3, BY_NAME, ["cortex-m0", "rv64gc", "aarch64", "x86-64-v4"]))
def test_each_model_has_a_bound_for_each_family(machine: str, path: Path, tmp_path: Path) -> None:
    lowered = [e.lower(tosaic.CompileOptions(target(machine))) for e in tosaic.load(path)]
    artifact = save(lowered, tmp_path, "model")
    assert artifact.stack is not None and not artifact.stack.unknown
    assert set(artifact.stack.entries) == {c.group(1) for c in re.finditer(r"int32_t (\w+)_run\(", artifact.header.read_text())}
    assert all(0 <= e.nbytes <= artifact.stack.whole.nbytes for e in artifact.stack.entries.values())
