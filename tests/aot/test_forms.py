"""Every form of the C interface, and the user's pools: C gets the bytes that Python gets, and only memory that was given is
written."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
import tosaic
from tosaic import Memory, Pool
from tosaic.jit.aot import ArtifactForm, save
from tosaic.lowering.graph.types import Array
from tosaic.lowering.target.presets import target

from ..covering import covering
from .c_programs import needs_gcc, undefined
from .callers import Caller, printed, random_calls
from .machines import HOST, MACHINES, Machine, needs

DATA = Path(__file__).parents[1] / "data"
MODELS = ["counter.mlir", "corpus/v_lstm.mlir", "corpus/f_while.mlir", "corpus/f_cond.mlir", "corpus/f_shape_ops.mlir",
          "corpus/f_conv_bn_relu_pool_int8.mlir", "corpus/f_mobilenet_block_int8.mlir"]

TWO = (Pool("fast", 300), Pool("slow"))
CONSTANTS = (Pool("itcm", 512), Pool("flash"))
FORMS = {
    "plain": (Memory(), ArtifactForm()),
    "two pools": (Memory(pools=TWO), ArtifactForm()),
    "constant pools": (Memory(constant_pools=CONSTANTS), ArtifactForm()),
    "workspace io": (Memory(workspace_io=True), ArtifactForm()),
    "self contained": (Memory(), ArtifactForm(self_contained=True)),
    "caller's state": (Memory(), ArtifactForm(state="caller")),
    "all, caller's state": (Memory(pools=TWO, constant_pools=CONSTANTS, workspace_io=True), ArtifactForm(state="caller")),
    "self contained, caller's state": (Memory(), ArtifactForm(self_contained=True, state="caller")),
    "namespace": (Memory(), ArtifactForm(namespace="shared")),
    "all pools": (Memory(pools=TWO, constant_pools=CONSTANTS), ArtifactForm()),
    "all pools, self contained": (Memory(pools=TWO, constant_pools=CONSTANTS), ArtifactForm(self_contained=True)),
    "all": (Memory(pools=TWO, constant_pools=CONSTANTS, workspace_io=True), ArtifactForm()),
    "all, self contained": (Memory(pools=TWO, constant_pools=CONSTANTS, workspace_io=True), ArtifactForm(self_contained=True)),
}
BARE = [m for m in MACHINES if m.name in ("cortex-m4", "riscv32")]


@functools.cache
def here(model: str) -> tuple[Sequence[tuple[int, Sequence[Array]]], str]:
    """Calls of a model, and what this process gives."""
    entries = [e.lower() for e in tosaic.load(DATA / model)]
    calls = random_calls(entries, 3 * len(entries))
    return calls, printed(entries, calls)


def check(folder: Path, model: str, memory: Memory, form: ArtifactForm, machine: Machine) -> None:
    options = tosaic.CompileOptions(target(machine.target), memory=memory)
    there = [e.lower(options) for e in tosaic.load(DATA / model)]
    artifact = save(there, folder, "model", form)
    assert set(artifact.needs) <= {"memcpy", "memset", "memmove"}
    calls, expected = here(model)
    constants_from_macro = 0 < sum(p.nbytes for p in artifact.pools if p.kind == "constant") < 4000
    (folder / "main.c").write_text(Caller(there, artifact, form, constants_from_macro).source(calls))
    program = machine.build(folder, [folder / "main.c", artifact.object])
    assert machine.run(program) == expected


@pytest.mark.sampled(4)
@needs_gcc
@pytest.mark.parametrize(("model", "form"), covering(3, MODELS, FORMS))
def test_a_form_gives_the_same_bytes(tmp_path: Path, model: str, form: str) -> None:
    check(tmp_path, model, *FORMS[form], HOST)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("form", "machine"), covering(
    2, ["all", "all, self contained", "self contained, caller's state", "all, caller's state"],
    [pytest.param(m, marks=needs(m), id=m.name) for m in BARE]))
def test_a_form_works_on_a_bare_machine(tmp_path: Path, form: str, machine: Machine) -> None:
    check(tmp_path, "corpus/f_mobilenet_block_int8.mlir", *FORMS[form], machine)


@needs_gcc
def test_a_pool_keeps_its_limit_and_the_rest_falls_back(tmp_path: Path) -> None:
    entry = tosaic.load(DATA / "corpus/f_mobilenet_block_int8.mlir").main
    memory = Memory(pools=(Pool("dtcm", 4096), Pool("sram")), constant_pools=(Pool("itcm", 1000), Pool("flash")))
    artifact = entry.lower(tosaic.CompileOptions(memory=memory)).save(tmp_path, "model")
    sizes = {p.name: p.nbytes for p in artifact.pools}
    assert 0 < sizes["dtcm"] <= 4096 and 0 < sizes["itcm"] <= 1000 and sizes["sram"] > 0 and sizes["flash"] > 0
    assert (tmp_path / "model_itcm.bin").stat().st_size == sizes["itcm"] and not undefined(artifact) - {"memcpy", "memset"}


def test_memories_that_are_too_small_are_a_problem() -> None:
    entry = tosaic.load(DATA / "corpus/f_mobilenet_block_int8.mlir").main
    with pytest.raises(tosaic.Problem) as caught:
        entry.lower(tosaic.CompileOptions(memory=Memory(pools=(Pool("dtcm", 4096),))))
    assert "fits in none of its pools" in str(caught.value) and "dtcm holds 4096 bytes and would need" in str(caught.value)
    with pytest.raises(tosaic.Problem) as caught:
        entry.lower(tosaic.CompileOptions(memory=Memory(constant_pools=(Pool("itcm", 1000),))))
    assert "itcm holds 1000 bytes and would need" in str(caught.value)
