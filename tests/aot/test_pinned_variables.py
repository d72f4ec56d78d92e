"""Variables that are pinned to a pool: in its section of the object, or in the structure of that pool which the caller holds;
and what they leave of the pool."""
from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import Memory, Pool
from tosaic.jit.aot import ArtifactForm, save
from tosaic.jit.command_line.cli import main
from tosaic.lowering.memory.plan import parse_plan, print_plan
from tosaic.runtime.errors import Problem

from ..covering import covering
from .c_programs import STRICT, build, build_in, dialects, needs_gcc, run, sections, writable
from .machines import MACHINES, Machine, needs

DATA = Path(__file__).parents[1] / "data"
LSTM = DATA / "corpus/v_lstm.mlir"
POOLS = (Pool("fast", 4096), Pool("slow"))
CALLER = ArtifactForm(state="caller")


def lowered(pins: dict[str, str], pools: tuple[Pool, ...] = POOLS, target: str | None = None) -> Any:
    machine = tosaic.target(target) if target else None
    return tosaic.load(LSTM).main.lower(tosaic.CompileOptions(machine, memory=Memory(pools=pools, pins=pins)))


def expected(steps: int = 3) -> bytes:
    step = tosaic.load(LSTM, context=tosaic.Context("expected")).main.compile()
    return b"".join(np.asarray(step(np.full((1, 6), n + 1, np.float32))).tobytes() for n in range(steps))


SOURCE = r"""
#include <stdio.h>
#include "tosaic_lstm.h"
static TOSAIC_ALIGNED(TOSAIC_LSTM_FAST_WORKSPACE_POOL_ALIGNMENT) unsigned char fast[TOSAIC_LSTM_FAST_WORKSPACE_POOL_SIZE + 1];
DECLARED
int main(void) {
    float x[6], y[8];
    int step, i;
    struct tosaic_lstm_inputs inputs;
    struct tosaic_lstm_outputs outputs;
    struct tosaic_lstm_workspace_pools pools = {0, 0, 0, 0};
    inputs.arg0 = x;
    inputs.arg0_size = sizeof x;
    outputs.result0 = y;
    outputs.result0_size = sizeof y;
    pools.fast = fast;
    pools.fast_size = sizeof fast;
    START
    for (step = 0; step < 3; ++step) {
        for (i = 0; i < 6; ++i) x[i] = (float)(step + 1);
        if (tosaic_lstm_run(STATE&inputs, &outputs, &pools)) return 2;
        fwrite(y, 1, sizeof y, stdout);
    }
    return 0;
}"""
OWN = {"DECLARED": "", "START": "if (tosaic_lstm_reset()) return 1;", "STATE": ""}
HELD = {"DECLARED": "static struct tosaic_lstm_slow_state slow_state;\nstatic struct tosaic_lstm_state state;",
        "STATE": "&state, ", "START": "state.slow_state = &slow_state;\n    if (tosaic_lstm_init(&state)) return 1;"}


def source(parts: dict[str, str]) -> str:
    text = SOURCE
    for name, value in parts.items():
        text = text.replace(name, value)
    return text


@pytest.mark.sampled(2)
@needs_gcc
@pytest.mark.parametrize(("form", "parts", "compiler", "standard"), covering(2, [
    pytest.param(ArtifactForm(), OWN, id="own"), pytest.param(CALLER, HELD, id="caller")], dialects.args[1]))
def test_a_pinned_variable_is_the_same_variable(tmp_path: Path, compiler: str, standard: str, form: ArtifactForm,
                                                parts: dict[str, str]) -> None:
    artifact = save([lowered({"h": "slow"})], tmp_path, "lstm", form)
    assert run(build_in(compiler, standard, tmp_path, source(parts), [artifact])) == expected()
    assert {p.title: p.state for p in artifact.pools} == {"fast": 0, "slow": 32} and artifact.variable_bytes == 64


@needs_gcc
def test_the_object_has_it_in_a_section_of_the_pool(tmp_path: Path) -> None:
    artifact = save([lowered({"h": "slow"})], tmp_path, "lstm")
    names = {s.name: s.nbytes for s in sections(artifact.object)}
    assert names[".bss.tosaic_lstm_slow_state.tosaic_lstm_variable_h"] == 32 and names[".bss.tosaic_lstm_variable_c"] == 32
    assert names[".bss.tosaic_lstm_written_h"] == 1  # in memory that start-up code clears, wherever the variable lies


@needs_gcc
def test_both_variables_in_pools_of_their_own_and_a_program_to_start_from(tmp_path: Path) -> None:
    form = ArtifactForm(state="caller", main=True)
    artifact = save([lowered({"h": "slow", "c": "fast"})], tmp_path / "made", "lstm", form)
    header = artifact.header.read_text()
    assert "struct tosaic_lstm_slow_state *slow_state;" in header and "struct tosaic_lstm_fast_state *fast_state;" in header
    assert writable(artifact.object) == []
    assert run(build(tmp_path / "made", (tmp_path / "made" / "main.c").read_text(), [artifact])) == b""


REFUSED = r"""
#include <stdio.h>
#include "tosaic_lstm.h"
static struct tosaic_lstm_slow_state slow[2];
int main(void) {
    static struct tosaic_lstm_state state;
    unsigned char saved[TOSAIC_LSTM_STATE_SIZE];
    printf("%d %d ", (int)tosaic_lstm_init(&state), (int)tosaic_lstm_save_state(&state, saved, sizeof saved));
    state.slow_state = (struct tosaic_lstm_slow_state *)(void *)((unsigned char *)slow + 1);
    printf("%d %d ", (int)tosaic_lstm_reset(&state), (int)tosaic_lstm_load_state(&state, saved, sizeof saved));
    state.slow_state = slow;
    printf("%d ", (int)tosaic_lstm_init(&state));
    printf("%d", (int)(state.slow_state == slow && state.h_written));
    return 0;
}"""


@needs_gcc
def test_a_missing_or_misaligned_structure_of_a_pool_is_refused(tmp_path: Path) -> None:
    artifact = save([lowered({"h": "slow"})], tmp_path, "lstm", CALLER)
    assert run(build(tmp_path, REFUSED, [artifact])) == b"-1 -1 -2 -2 0 1"


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in MACHINES if m.name in (
    "cortex-m4", "riscv32")])
@pytest.mark.parametrize("form", [ArtifactForm(main=True), ArtifactForm(state="caller", main=True)], ids=["own", "caller"])
def test_structures_with_pointers_are_laid_out_for_32_bits(tmp_path: Path, machine: Machine, form: ArtifactForm) -> None:
    artifact = save([lowered({"h": "slow"}, target=machine.target)], tmp_path, "lstm", form)
    assert machine.run(machine.build(tmp_path, [tmp_path / "main.c", artifact.object])) == ""


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="there is no arm-none-eabi-gcc")
def test_a_linker_script_places_it(tmp_path: Path) -> None:
    """The section's name is enough: here it goes to another memory than other variables."""
    artifact = save([lowered({"h": "slow"}, target="thumbv7em")], tmp_path, "lstm")
    (tmp_path / "script.ld").write_text("""SECTIONS {
    .slow 0x60000000 (NOLOAD) : { *(.bss.tosaic_lstm_slow_state.*) }
    .text 0x00000000 : { *(.text .text.* .rodata .rodata.*) }
    .bss 0x20000000 (NOLOAD) : { *(.bss .bss.*) }
}""")
    (tmp_path / "calls.c").write_text("void *memcpy(void *a, const void *b, unsigned n) { (void)b; (void)n; return a; }\n"
                                      "void *memset(void *a, int b, unsigned n) { (void)b; (void)n; return a; }\n")
    subprocess.run(["arm-none-eabi-gcc", "-nostdlib", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", *STRICT[:1],
                    "-fno-builtin", "-T", str(tmp_path / "script.ld"), "-Wl,--entry=tosaic_lstm_run", str(tmp_path / "calls.c"),
                    str(artifact.object), "-o", str(tmp_path / "lstm.elf")], check=True, capture_output=True)
    table = subprocess.run(["readelf", "-sW", str(tmp_path / "lstm.elf")], capture_output=True, text=True, check=True).stdout
    at = {line.split()[-1]: int(line.split()[1], 16) for line in table.splitlines() if "OBJECT" in line}
    assert at["tosaic_lstm_variable_h"] == 0x60000000 and 0x20000000 <= at["tosaic_lstm_variable_c"] < 0x20000100


# ---- what is left of the pool ----------------------------------------------------------------------------------------------
def test_its_bytes_count_in_the_pools_limit() -> None:
    alone = lowered({}, (Pool("fast"),)).plan.size_bytes
    for limit, fits in ((alone + 32, True), (alone + 31, False), (alone, False), (31, False)):
        pools = (Pool("fast", limit),)
        if fits:
            plan = lowered({"h": "fast"}, pools).plan
            assert (plan.size_bytes, plan.state_bytes("fast"), plan.pools[0].limit_bytes) == (alone, 32, limit)
        else:
            with pytest.raises(Problem, match="fast holds"):
                lowered({"h": "fast"}, pools)


def test_buffers_go_elsewhere_where_variables_take_the_place() -> None:
    plan = lowered({"h": "fast", "c": "fast"}, (Pool("fast", 64), Pool("slow"))).plan
    assert plan.pool("fast").size_bytes == 0 and plan.pool("slow").size_bytes > 0 and plan.state_bytes("fast") == 64


def test_a_plan_with_variables_reads_back() -> None:
    plan = lowered({"h": "slow", "c": "fast"}).plan
    assert parse_plan(print_plan(plan)) == plan and len(plan.variables) == 2
    assert plan.to_json()["variables"][0] == {"name": "c", "pool": "fast", "size_bytes": 32, "alignment": 32}


@pytest.mark.parametrize(("pins", "message"), [
    ({"k": "slow"}, "there is no buffer named k to pin to slow"), ({"h": "slower"}, "h is pinned to slower, which is no pool"),
    ({"h": "flash"}, "variable h is pinned to flash, which holds constants")])
def test_a_wrong_pin_says_what_is_right(pins: dict[str, str], message: str) -> None:
    memory = Memory(pools=POOLS, constant_pools=(Pool("flash"),), pins=pins)
    with pytest.raises(Problem, match=message):
        tosaic.load(LSTM).main.lower(tosaic.CompileOptions(memory=memory))


def test_the_command_line_counts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = ["--workspace-pools", "fast,slow", "--pin", "h=slow"]
    assert main(["compile", str(LSTM), "-o", str(tmp_path), "--json", *memory]) == 0
    pools = {p["name"]: p["state"] for p in json.loads(capsys.readouterr().out)["pools"]}
    assert pools == {"fast": 0, "slow": 32}
    assert main(["compile", str(LSTM), "-o", str(tmp_path), *memory]) == 0
    assert "pool slow: 0 bytes, and 32 of variables" in capsys.readouterr().out
    assert main(["report", str(LSTM), *memory]) == 0
    assert "64 bytes (32 in slow)" in capsys.readouterr().out
    assert main(["report", str(LSTM), *memory, "--json", "--fit", "sram:10K,slow:32"]) == 0
    memories = json.loads(capsys.readouterr().out)["fit"]["memories"]
    counted = [{n["what"]: n["nbytes"] for n in m["counted"]} for m in memories]
    assert counted[1] == {"pool slow": 0, "state in slow": 32} and counted[0]["state"] == 34  # 32, and the flags
    assert main(["report", str(LSTM), *memory, "--fit", "sram:10K,slow:31"]) == 1
    assert main(["run", str(LSTM), *memory]) == 0


TWO_FUNCTIONS = """tosa.variable @n = dense<1.0> : tensor<3xf32>
func.func @get() -> tensor<3xf32> {
  %0 = tosa.variable_read @n : tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func @other(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tosa.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


@pytest.mark.parametrize("state", ["own", "caller"])
def test_a_variable_of_one_function_is_pinned_for_the_whole_model(tmp_path: Path, state: str) -> None:
    memory = Memory(pools=(Pool("fast", 100), Pool("slow", 16)), pins={"n": "slow"})
    artifact = tosaic.load(TWO_FUNCTIONS).save(tmp_path, "model", tosaic.CompileOptions(memory=memory), state=state)
    assert {p.title: (p.nbytes, p.state) for p in artifact.pools}["slow"] == (0, 16)
    assert "tosaic_model_slow_state" in artifact.header.read_text() or state == "own"
