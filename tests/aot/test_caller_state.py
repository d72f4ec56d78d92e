"""Variables that the caller holds: structures laid out as compilers do, instances of one object, memory that is refused."""
from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tosaic.jit.aot import Artifact, ArtifactForm, write
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.c_object.interface import CInterface
from tosaic.lowering.native.c_object.variables import StateForm
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from ..covering import covering
from ..executable.programs import Programs, copy, plus
from ..threads.cases import fine  # noqa: F401  a fixture
from .c_programs import STRICT, build, build_in, dialects, languages, needs_gcc, run, writable
from .test_forms import FORMS
from .test_state import CHECKS, X, counting

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"
CALLER = ArtifactForm(state="caller")

INSTANCES = r"""
#include <stdio.h>
#include <string.h>
#include "tosaic_demo.h"
static long long count(struct tosaic_demo_state *state) {
    int64_t result = -1;
    struct tosaic_demo_outputs outputs;
    outputs.result = &result;
    outputs.result_size = sizeof result;
    if (tosaic_demo_run(state, &outputs, 0) != TOSAIC_OK) return -2;
    return (long long)result;
}
int main(void) {
    static struct tosaic_demo_state zeros;
    struct tosaic_demo_state one, other;
    unsigned char saved[TOSAIC_DEMO_STATE_SIZE];
    memset(&one, 0xA5, sizeof one);
    memset(&other, 0xA5, sizeof other);
    if (tosaic_demo_init(&one) || tosaic_demo_init(&other)) return 1;
    printf("%lld ", count(&one));
    printf("%lld ", count(&one));
    printf("%lld ", count(&other));
    printf("%lld ", count(&zeros));
    if (tosaic_demo_save_state(&one, saved, sizeof saved) || tosaic_demo_load_state(&other, saved, sizeof saved)) return 2;
    printf("%lld ", count(&other));
    if (tosaic_demo_reset(&one)) return 3;
    one.counter[0] += 100;
    printf("%d %lld %lld", one.counter_written, count(&one), count(&zeros));
    return sizeof one != TOSAIC_DEMO_STATE_BYTES;
}
"""


@dialects
def test_one_object_has_many_instances(tmp_path: Path, compiler: str, standard: str) -> None:
    artifact = counting(tmp_path, "demo", form=CALLER)
    assert run(build_in(compiler, standard, tmp_path, INSTANCES, [artifact])) == b"6 7 6 6 8 1 106 7"


REFUSED = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static struct { struct tosaic_demo_state first, second; } memory;
static void ask(struct tosaic_demo_state *state) {
    int64_t result = -1;
    unsigned char saved[TOSAIC_DEMO_STATE_SIZE] = {0};
    struct tosaic_demo_outputs outputs;
    outputs.result = &result;
    outputs.result_size = sizeof result;
    printf("%d %d ", (int)tosaic_demo_init(state), (int)tosaic_demo_reset(state));
    printf("%d ", (int)tosaic_demo_run(state, &outputs, 0));
    printf("%d ", (int)tosaic_demo_save_state(state, saved, sizeof saved));
    printf("%d %d ", (int)tosaic_demo_load_state(state, saved, sizeof saved), (int)result);
}
int main(void) {
    size_t i;
    ask(0);
    ask((struct tosaic_demo_state *)((unsigned char *)&memory + 4));
    for (i = 0; i < sizeof memory; ++i) if (((unsigned char *)&memory)[i]) return 1;
    return tosaic_demo_save_state(&memory.first, 0, 100) != TOSAIC_ERROR_NULL;
}"""


@languages
def test_a_null_or_misaligned_state_is_refused_and_not_touched(tmp_path: Path, language: str) -> None:
    artifact = counting(tmp_path, "demo", form=CALLER)
    assert run(build(tmp_path, REFUSED, [artifact], language)) == b"-1 -1 -1 -1 -1 -1 -2 -2 -2 -2 -2 -1 "


@pytest.mark.parametrize(("model", "form"), covering(
    2, ["counter.mlir", "corpus/v_lstm.mlir"], [f for f in FORMS if "self contained" not in f]))
def test_the_object_has_nothing_that_can_be_written(tmp_path: Path, model: str, form: str) -> None:
    options = tosaic.CompileOptions(memory=FORMS[form][0])
    artifact = tosaic.load(DATA / model).save(tmp_path, "model", options, state="caller")
    own = tosaic.load(DATA / model).save(tmp_path / "own", "model", options)
    assert writable(artifact.object) == [] and len(writable(own.object)) > 1
    assert artifact.variable_bytes == own.variable_bytes > 0


# ---- layout ----------------------------------------------------------------------------------------------------------
DTYPES = st.sampled_from(["bool", "int8", "int16", "int32", "int64", "float32", "float64", "float16"])
SHAPES = st.lists(st.integers(1, 5), max_size=3).map(tuple)
TITLES = st.sampled_from(["a", "b", "a.b", "a_b", "a_written", "int", "A", "0", "state", "padding_0", "é", "written", "x y"])
VARIABLES = st.dictionaries(TITLES, st.tuples(DTYPES, SHAPES), min_size=1, max_size=6)
COMPILERS = {"host": ["gcc", "-std=c99"], "x86-64-v4": ["clang", "-std=c17"], "thumbv7em": ["arm-none-eabi-gcc", "-mthumb"],
             "riscv32": ["riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f", "-ffreestanding"]}


def holding(variables: dict[str, tuple[str, tuple[int, ...]]]) -> Any:
    """A program that uses variables of these names and types."""
    p = Programs()
    x, y = p.input("x"), p.output("y")
    for name, (dtype, shape) in variables.items():
        p.variable(name, shape, dtype, element=dtype)
    return p.program(p.compute(y, copy, x))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", [pytest.param(m, marks=pytest.mark.skipif(
    shutil.which(command[0]) is None, reason=f"there is no {command[0]}")) for m, command in COMPILERS.items()])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(variables=VARIABLES)
def test_compilers_lay_structures_out_as_the_object_does(tmp_path: Path, machine: str,
                                                         variables: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    """The header's assertions say so; no compiler pads; every variable is where the record of the layout says."""
    program = holding(variables)
    artifact = write(program, plan(program), tmp_path, "demo", target(machine), form=CALLER)
    state = CInterface("demo", [(program, plan(program))], target(machine), state=StateForm(owner="caller")).caller_state
    assert state is not None
    (structure,) = state.structures
    spans = sorted([(state.data[n].offset, int(np.prod(shape)) * ITEM_SIZES[dtype]) for n, (dtype, shape) in variables.items()]
                   + [(state.flags[n].offset, 1) for n in variables])
    assert all(at + size <= following for (at, size), (following, _) in itertools.pairwise(spans))
    assert spans[-1][0] + spans[-1][1] <= structure.nbytes and structure.nbytes % structure.alignment == 0
    lines = [f"TOSAIC_ASSERT(offsetof(struct {structure.tag}, {m.name}) == {m.offset} && sizeof(((struct {structure.tag} *)0)->"
             f"{m.name}) == {m.nbytes}, checked_{i});" for i, m in enumerate(structure.members)]
    lines.append(f"TOSAIC_ASSERT(sizeof(struct {structure.tag}) == {structure.nbytes}, checked_all);")
    (tmp_path / "layout.c").write_text("\n".join([f'#include "{artifact.header.name}"', *lines, "int nothing(void);", ""]))
    done = subprocess.run([*COMPILERS[machine], *STRICT, "-Wpadded", "-fsyntax-only", str(tmp_path / "layout.c")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- with the other forms --------------------------------------------------------------------------------------------
@languages
def test_a_run_that_fails_changes_nothing_of_the_callers_state(tmp_path: Path, language: str) -> None:
    p = Programs()
    x, c, d, y = p.input("x"), p.input("c", (), "bool"), p.input("d", (), "bool"), p.output("y")
    kept = p.variable("kept", initial=X * 7)
    program = p.program(p.check_true(c, "c is false"), *p.write(kept, copy, x), p.check_true(d, "d is false"),
                        p.compute(y, copy, kept))
    artifact = write(program, plan(program), tmp_path, "demo", form=CALLER)
    source = CHECKS.replace("int main(void) {", "static struct tosaic_demo_state state;\nint main(void) {").replace(
        "tosaic_demo_run(&inputs", "tosaic_demo_run(&state, &inputs").replace("tosaic_demo_variable_kept", "state.kept")
    assert run(build(tmp_path, source, [artifact], language)) == b"0 1 8 1 8 0 100"


def test_a_saved_state_goes_from_one_holder_to_another(tmp_path: Path) -> None:
    """The same model with its own variables, in a namespace, and with the caller's: what one saves the others load."""
    forms = {"own": ArtifactForm(), "named": ArtifactForm(namespace="n"), "held": CALLER}
    artifacts = [counting(tmp_path, name, form=form) for name, form in forms.items()]
    calls = "".join(f"""
    if (tosaic_{name}_run({given}&outputs, 0) || tosaic_{name}_save_state({given}saved, sizeof saved)) return 1;
    if (tosaic_{after}_load_state({other}saved, sizeof saved)) return 2;
    printf("%d ", (int)result);""".replace("outputs", f"outputs_{name}") for name, given, after, other in (
        ("own", "", "named", ""), ("named", "", "held", "&state, "), ("held", "&state, ", "own", ""),
        ("own", "", "held", "&state, ")))
    declared = "".join(f"    struct tosaic_{name}_outputs outputs_{name} = {{&result, sizeof result}};\n" for name in forms)
    source = "#include <stdio.h>\n" + "".join(f'#include "tosaic_{name}.h"\n' for name in forms) + f"""
int main(void) {{
    static struct tosaic_held_state state;
    unsigned char saved[TOSAIC_OWN_STATE_SIZE];
    int64_t result;
{declared}{calls}
    return 0;
}}"""
    assert run(build(tmp_path, source, artifacts)) == b"6 7 8 9 "


TASKS = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static float a[20 * 60], b[60 * 50], y[20 * 50];
static TOSAIC_ALIGNED(TOSAIC_DEMO_WORKSPACE_ALIGNMENT) unsigned char memory[TOSAIC_DEMO_WORKSPACE_SIZE + 1];
static void backwards(void *context, void (*task)(void *argument, int64_t part), void *argument, int64_t parts) {
    ++*(int *)context;
    while (parts-- > 0) task(argument, parts);
}
int main(void) {
    static struct tosaic_demo_state states[2];
    int count = 0, i;
    const struct tosaic_thread_pool pool = {backwards, &count};
    const struct tosaic_demo_inputs inputs = {a, sizeof a, b, sizeof b};
    const struct tosaic_demo_outputs outputs = {y, sizeof y};
    const struct tosaic_demo_workspace_pools pools = {memory, sizeof memory};
    if (fread(a, 1, sizeof a, stdin) != sizeof a || fread(b, 1, sizeof b, stdin) != sizeof b) return 1;
    for (i = 0; i < 5; ++i)
        if (tosaic_demo_run(&states[i % 2], &inputs, &outputs, &pools, i % 2 ? 0 : &pool) != TOSAIC_OK) return 2;
    fwrite(states, 1, sizeof states[0].total, stdout);
    fwrite(states[1].total, 1, sizeof states[1].total, stdout);
    return !count;
}"""


def test_the_pool_of_threads_comes_last(tmp_path: Path, fine: None) -> None:  # noqa: F811
    """A model in tasks, in two instances, one of them on a pool that runs tasks backwards."""
    total = tosaic.Variable("total", initial=np.ones((20, 50), np.float32))

    @tosaic.jit(options=tosaic.CompileOptions(threads=3), context=tosaic.Context("tasks"))
    def step(a: Any, b: Any) -> Any:
        total.write(total.read() * 0.5 + tosaic.ops.tanh(a @ b))
        return total.read()

    artifact = step.lower(tosaic.TensorSpec((20, 60)), tosaic.TensorSpec((60, 50))).save(tmp_path, "demo", state="caller")
    random = np.random.default_rng(1)
    a, b = random.standard_normal((20, 60), np.float32), random.standard_normal((60, 50), np.float32)
    results = [step(a, b).tobytes() for _ in range(3)]
    assert run(build(tmp_path, TASKS, [artifact]), a.tobytes() + b.tobytes()) == results[2] + results[1]


def test_a_namespace_and_a_holder_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="variables that the caller holds have no symbols, and no namespace"):
        counting(tmp_path, "demo", form=ArtifactForm(namespace="n", state="caller"))
    with pytest.raises(Problem, match="state is 'callee'"):
        counting(tmp_path, "demo", form=ArtifactForm(state="callee"))
    with pytest.raises(Problem, match="a namespace has no name"):
        counting(tmp_path, "demo", form=ArtifactForm(namespace=""))
    assert not list(tmp_path.iterdir())


def test_a_model_without_variables_is_the_same_in_either_form(tmp_path: Path) -> None:
    p = Programs()
    program = p.program(p.compute(p.output("y"), plus(1.0), p.input("x")))
    artifacts: list[Artifact] = [write(program, plan(program), tmp_path / form.state, "demo", form=form)
                                 for form in (ArtifactForm(), CALLER)]
    texts = {a.header.read_text() for a in artifacts}
    assert len(texts) == 1 and "_state" not in texts.pop()
