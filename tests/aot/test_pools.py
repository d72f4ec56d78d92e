"""The pools of a model in C: what the header says of them, entry functions that share them, room for copies of variables,
names that clash, and the program to start from."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic import Memory, Pool
from tosaic.jit.aot import Artifact, ArtifactForm, write
from tosaic.lowering.graph.quantized import uniform
from tosaic.lowering.graph.types import F32
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.c_object.interface import CInterface
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from ..covering import covering
from ..executable.programs import Programs, add, copy, mul, plus
from .c_programs import COMPILERS, build, languages, needs_gcc, run, without_stack
from .test_forms import FORMS
from .test_state import FAULTS, X

DATA = Path(__file__).parents[1] / "data"


def small(name: str = "main", weight: float = 1.5, other: float = 2.5) -> Program:
    """y = (x + c) * d."""
    p = Programs(name)
    x, t, y = p.input("x"), p.temporary("t"), p.output("y")
    c, d = p.constant("c", np.full(8, weight, np.float32)), p.constant("d", np.full(8, other, np.float32))
    return p.program(p.compute(t, add, x, c), p.compute(y, mul, t, d))


def test_the_header_of_all_that_can_be_asked_for(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    p = Programs()
    x, y = p.input("x", (2, 4), "int8"), p.output("y", (2, 4), "int8")
    t, v = p.temporary("t", (2, 4), "int8"), p.variable("state")
    c = p.constant("c", np.arange(8, dtype=np.int8).reshape(2, 4))
    program = p.program(*p.write(v, plus(1), v), p.compute(t, add, x, c), p.compute(y, copy, t))
    memory = Memory(pools=(Pool("dtcm", 16), Pool("s.ram")), constant_pools=(Pool("itcm", 100), Pool("flash")),
                    workspace_io=True, alignment=8)
    quantized = {x: uniform("i8", F32, [0.5], [-3]), y: uniform("i8", F32, [0.5, 0.25], [1, -2], axis=0)}
    artifact = write(program, plan(program, memory), tmp_path, "demo", target("thumbv7em"), None, quantized)
    golden("pools.header.txt", without_stack(artifact.header.read_text()))


def test_entry_functions_share_pools_and_equal_constants(tmp_path: Path) -> None:
    memory = Memory(pools=(Pool("ram"),), constant_pools=(Pool("flash"),), alignment=4)
    programs = [small("one"), small("two", weight=1.5, other=4.5), small("three", weight=2.5, other=4.5)]
    interface = CInterface("demo", [(p, plan(p, memory)) for p in programs], target("x86-64"))
    pools = {p.title: p for p in interface.memories.pools}
    assert pools["ram"].nbytes == 32 and pools["flash"].nbytes == 3 * 32
    assert sorted(np.frombuffer(pools["flash"].data, np.float32)[::8]) == [1.5, 2.5, 4.5]
    for program, places in zip(programs, interface.memories.places):
        for buffer in program.constants:
            assert buffer.data is not None
            at = places[buffer].offset
            assert pools["flash"].data[at:at + 32] == buffer.data.tobytes()


def test_pools_that_are_too_small_for_all_entry_functions_are_a_problem() -> None:
    memory = Memory(constant_pools=(Pool("flash", 64),), alignment=4)
    programs = [small("one"), small("two", other=4.5)]
    with pytest.raises(Problem) as caught:
        CInterface("demo", [(p, plan(p, memory)) for p in programs], target("x86-64"))
    assert str(caught.value) == ("error[memory]: pool flash may hold 64 bytes, and the entry functions of the model need 96 "
                                 "together\n  help: make the pool larger, or compile the entry functions separately")


def test_an_output_that_another_one_is_made_of_lasts_until_the_run_ends() -> None:
    p = Programs()
    x, y, z = p.input("x"), p.output("y"), p.output("z")
    program = p.program(p.compute(y, plus(1), x), p.compute(z, copy, y))
    places = {b.name: (b.byte_offset, b.end) for b in plan(program, Memory(workspace_io=True)).buffers}
    assert places["y"][1] <= places["z"][0] or places["z"][1] <= places["y"][0]


def test_an_input_gives_its_bytes_to_what_comes_behind_its_last_read() -> None:
    p = Programs()
    x, t, y = p.input("x"), p.temporary("t"), p.output("y")
    program = p.program(p.compute(t, plus(1), x), p.compute(y, copy, t))
    found = plan(program, Memory(workspace_io=True, overlap=False))
    assert {b.kind for b in found.buffers} == {"input", "output", "intermediate"}
    assert found.allocations["x"] == found.allocations["y"] and found.size_bytes == x.nbytes + t.nbytes


def undoing(folder: Path, *pools: Pool) -> Artifact:
    """A program that copies its variables before a run that may fail: 64 bytes for two of 32, and two flags."""
    p = Programs()
    x, y, t = p.input("x"), p.output("y"), p.temporary("t")
    kept, fresh, missing = p.variable("kept", initial=X * 7), p.variable("fresh"), p.variable("missing")
    program = p.program(*p.write(kept, copy, x), *p.write(fresh, copy, x), p.check(missing), p.compute(t, copy, missing),
                        p.compute(y, copy, t))
    return write(program, plan(program, Memory(pools=pools, alignment=8)), folder, "demo")


@needs_gcc
def test_copies_of_variables_lie_where_there_is_room(tmp_path: Path) -> None:
    artifact = undoing(tmp_path, Pool("small", 32), Pool("large"))
    assert [(p.title, p.nbytes > 32) for p in artifact.pools] == [("small", False), ("large", True)]
    source = FAULTS
    for old, new in (
            ("TOSAIC_DEMO_WORKSPACE_SIZE", "TOSAIC_DEMO_LARGE_WORKSPACE_POOL_SIZE"),
            ("pools.workspace_size =", "pools.small = kept_small;\n    pools.small_size = 64;\n    pools.large_size ="),
            ("pools.workspace =", "pools.large ="), ("int main", "static double kept_small[8];\nint main")):
        source = source.replace(old, new)
    assert run(build(tmp_path, source, [artifact])) == b"1 49 1 0 0 3 8 1 49 0 0 1"


def test_no_room_for_copies_of_variables_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        undoing(tmp_path, Pool("small", 32))
    assert "no workspace pool has room for 130 bytes of copies of variables, which main needs" in str(caught.value)


# ---- the program to start from -----------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@needs_gcc
@pytest.mark.parametrize(("model", "form", "language"), covering(
    2, ["counter.mlir", "corpus/v_lstm.mlir"], FORMS, languages.args[1]))
def test_the_program_to_start_from_compiles_and_runs(tmp_path: Path, model: str, form: str, language: str) -> None:
    from tosaic.jit.aot import save
    memory, how = FORMS[form]
    entries = [e.lower(tosaic.CompileOptions(memory=memory)) for e in tosaic.load(DATA / model)]
    artifact = save(entries, tmp_path, "model", ArtifactForm(how.self_contained, main=True))
    sources = [str(p) for p in artifact.paths if p.suffix == ".S"]
    command = [*COMPILERS[language], f"-I{tmp_path}", str(tmp_path / "main.c"), "-xnone", str(artifact.object), *sources, "-o",
               str(tmp_path / "program")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(tmp_path / "program")]).returncode == 0


def test_a_program_that_somebody_has_changed_is_kept(tmp_path: Path) -> None:
    lowered = tosaic.load(DATA / "corpus/v_lstm.mlir").main.lower()
    lowered.save(tmp_path, "model", main=True)
    lowered.save(tmp_path, "model", main=True)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "model.o").unlink()
    with pytest.raises(Problem) as caught:
        lowered.save(tmp_path, "model", main=True)
    assert str(caught.value).startswith(f"error[file]: {tmp_path / 'main.c'} is there already")
    assert not (tmp_path / "model.o").exists()
