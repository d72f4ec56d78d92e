"""Namespaces of variables in objects: a model's own by default, one that objects share where it is named; and initial
values that stay where constants are."""
from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import Artifact, ArtifactForm, write
from tosaic.lowering.loops.program import Program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.target.presets import target

from ..executable.programs import Programs, copy, plus
from .c_programs import build, build_in, dialects, languages, needs_gcc, run, sections
from .test_forms import FORMS
from .test_state import COUNT, SHARED, counting

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"

TWO = ('#include <stdio.h>\n#include "tosaic_up.h"\n#include "tosaic_down.h"\n' + COUNT.replace("NAME", "up")
       + COUNT.replace("NAME", "down").replace("int64_t result = -1", "int32_t result = -1") + r"""
int main(void) {
    printf("%lld ", count_up());
    printf("%lld ", count_down());
    printf("%lld ", count_up());
    if (tosaic_up_reset() != TOSAIC_OK) return 1;
    printf("%lld %lld ", count_up(), count_down());
    printf("%lld %ld", (long long)tosaic_up_variable_counter[0], (long)tosaic_down_variable_counter[0]);
    return 0;
}""")


@pytest.mark.sampled(2)
@dialects
def test_models_with_variables_of_one_name_and_other_types_are_in_one_program(tmp_path: Path, compiler: str, standard: str
                                                                             ) -> None:
    artifacts = [counting(tmp_path, "up", step=10), counting(tmp_path, "down", initial=100, step=-1, dtype="int32")]
    assert run(build_in(compiler, standard, tmp_path, TWO, artifacts)) == b"15 99 25 15 98 15 98"


def test_two_objects_of_one_model_count_for_themselves(tmp_path: Path) -> None:
    artifacts = [counting(tmp_path, "up"), counting(tmp_path, "down")]
    source = TWO.replace("int32_t result", "int64_t result")
    assert run(build(tmp_path, source, artifacts)) == b"6 6 7 6 7 6 7"


def test_two_objects_of_one_name_do_not_link(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    one, other = counting(tmp_path / "a", "up"), counting(tmp_path / "b", "up", dtype="int32")
    done = subprocess.run(["gcc", str(tmp_path / "main.c"), str(one.object), str(other.object), "-o",
                           str(tmp_path / "program")], capture_output=True, text=True)
    assert done.returncode and "multiple definition of `tosaic_up_variable_counter'" in done.stderr


SHARING = TWO.replace("int32_t result", "int64_t result").replace("tosaic_up_variable", "tosaic_shared_variable").replace(
    "tosaic_down_variable", "tosaic_shared_variable")


@pytest.mark.parametrize(("order", "expected"), [(("up", "down"), b"15 14 24 15"), (("down", "up"), b"99 109 108 99")])
def test_the_initial_value_of_what_runs_first_counts(tmp_path: Path, order: tuple[str, str], expected: bytes) -> None:
    """Whichever object the linker takes the variable from; a reset gives that of the model that is reset."""
    source = '#include <stdio.h>\n#include "tosaic_up.h"\n#include "tosaic_down.h"\n' + "".join(
        COUNT.replace("NAME", name) for name in ("up", "down")) + r"""
int main(void) {
    printf("%lld ", count_FIRST());
    printf("%lld ", count_THEN());
    printf("%lld ", count_FIRST());
    if (tosaic_FIRST_reset() != TOSAIC_OK) return 1;
    printf("%lld", count_FIRST());
    return 0;
}""".replace("FIRST", order[0]).replace("THEN", order[1])
    artifacts = [counting(tmp_path, "up", 5, 10, form=SHARED), counting(tmp_path, "down", 100, -1, form=SHARED)]
    for linked in (artifacts, artifacts[::-1]):
        assert run(build(tmp_path, source, linked)) == expected


def test_a_namespace_that_is_a_models_name_shares_with_that_model(tmp_path: Path) -> None:
    source = SHARING.replace("tosaic_shared_variable", "tosaic_up_variable")
    artifacts = [counting(tmp_path, "up", step=10), counting(tmp_path, "down", step=-1, form=ArtifactForm(namespace="up"))]
    assert run(build(tmp_path, source, artifacts))[:9] == b"15 14 24 "


@languages
def test_a_reset_leaves_alone_what_another_object_has_given_another_type(tmp_path: Path, language: str) -> None:
    artifacts = [counting(tmp_path, "up", form=SHARED), counting(tmp_path, "down", dtype="int32", form=SHARED)]
    source = '#include <stdio.h>\n#include "tosaic_up.h"\n' + COUNT.replace("NAME", "up") + r"""
#ifdef __cplusplus
extern "C" int32_t tosaic_down_reset(void);
#else
extern int32_t tosaic_down_reset(void);
#endif
int main(void) {
    printf("%lld ", count_up());
    printf("%d ", tosaic_down_reset() == TOSAIC_ERROR_VARIABLE);
    printf("%lld", count_up());
    return 0;
}"""
    assert run(build(tmp_path, source, artifacts, language)) == b"6 1 7"


def test_names_that_c_would_take_for_one_are_two_variables(tmp_path: Path) -> None:
    p = Programs()
    y = p.output("y", (1,), "int64")
    first, second = p.variable("a.b", (1,), "int64", 1), p.variable("a_b", (1,), "int64", 10)
    program = p.program(*p.write(first, plus(1, "int64"), first), *p.write(second, plus(1, "int64"), second),
                        p.compute(y, copy, first))
    artifact = write(program, plan(program), tmp_path, "demo")
    source = r"""
#include <stdio.h>
#include "tosaic_demo.h"
int main(void) {
    int64_t y;
    struct tosaic_demo_outputs outputs;
    outputs.y = &y;
    outputs.y_size = sizeof y;
    if (tosaic_demo_run(&outputs, 0)) return 1;
    printf("%d %d", (int)tosaic_demo_variable_a_x2e_b[0], (int)tosaic_demo_variable_a_b[0]);
    return 0;
}"""
    assert run(build(tmp_path, source, [artifact])) == b"2 11"


# ---- initial values --------------------------------------------------------------------------------------------------
def initial_bytes() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(600).astype(np.float32)


def started(large: bool = False) -> Program:
    """y = v, where v starts with values that nothing else has."""
    value = initial_bytes() if large else initial_bytes()[:8]
    p = Programs()
    v, y = p.variable("v", value.shape, initial=value), p.output("y", value.shape)
    return p.program(*p.write(v, plus(1.0), v), p.compute(y, copy, v))


@pytest.mark.parametrize("machine", ["host", "thumbv7em", "riscv32", "aarch64"])
@pytest.mark.parametrize("form", [ArtifactForm(), ArtifactForm(namespace="n"), ArtifactForm(state="caller")], ids=str)
def test_an_object_has_no_initialised_data_and_each_initial_value_once(tmp_path: Path, machine: str, form: ArtifactForm
                                                                               ) -> None:
    program = started()
    artifact = write(program, plan(program), tmp_path, "demo", target(machine), form=form)
    assert sum(s.nbytes for s in sections(artifact.object) if s.is_initialised) == 0
    assert artifact.object.read_bytes().count(initial_bytes()[:8].tobytes()) == 1
    assert artifact.constant_bytes == 32 and artifact.variable_bytes == 32


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["counter.mlir", "corpus/v_lstm.mlir"])
def test_no_form_of_a_model_has_initialised_data(tmp_path: Path, model: str, form: str) -> None:
    memory, how = FORMS[form]
    artifact = tosaic.load(DATA / model).save(tmp_path, "model", tosaic.CompileOptions(memory=memory), namespace=how.namespace,
                                              state=how.state, self_contained=how.self_contained)
    assert [s.name for s in sections(artifact.object) if s.is_initialised and s.nbytes] == []


LATE = r"""
#include <stdio.h>
#include <string.h>
#include "tosaic_demo.h"
static float y[COUNT];
static int call(void) {
    struct tosaic_demo_outputs outputs;
    outputs.y = y;
    outputs.y_size = sizeof y;
    return tosaic_demo_run(&outputs, 0);
}
int main(void) {
    unsigned char saved[TOSAIC_DEMO_STATE_SIZE];
    if (tosaic_demo_written_v) return 1;
    memset(tosaic_demo_variable_v, 0xA5, sizeof tosaic_demo_variable_v); /* memory that start-up code has not cleared */
    if (tosaic_demo_save_state(saved, sizeof saved) || !tosaic_demo_written_v) return 2;
    fwrite(saved + 8, 1, sizeof y, stdout);
    memset(tosaic_demo_variable_v, 0xA5, sizeof tosaic_demo_variable_v);
    tosaic_demo_written_v = 0;
    if (call() || call()) return 3;
    fwrite(y, 1, sizeof y, stdout);
    return tosaic_demo_reset() || !tosaic_demo_written_v || call() || fwrite(y, 1, sizeof y, stdout) != sizeof y;
}"""


@languages
@pytest.mark.parametrize("large", [False, True])
def test_the_first_run_or_save_gives_the_initial_value_to_any_memory(tmp_path: Path, language: str, large: bool) -> None:
    program = started(large)
    artifact: Artifact = write(program, plan(program), tmp_path, "demo")
    value, one = program.variables[0].initial, np.float32(1)
    assert value is not None and value.data is not None
    expected = b"".join(x.tobytes() for x in (value.data, value.data + one + one, value.data + one))
    assert run(build(tmp_path, LATE.replace("COUNT", str(value.size)), [artifact], language)) == expected
