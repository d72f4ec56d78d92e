"""Variables in object files: kept between calls, reset, shared by entry functions and by objects, checked, undone."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tosaic.jit.aot import Artifact, ArtifactForm, write
from tosaic.lowering.memory.planner import plan
from tosaic.runtime.errors import Problem

from ..executable.programs import Programs, copy, plus, times
from .c_programs import build, languages, needs_gcc, run, undefined

pytestmark = needs_gcc
X = np.arange(8, dtype=np.float32)


def counting(folder: Path, name: str, initial: int = 5, step: int = 1, dtype: str = "int64",
             variable: str = "counter", form: ArtifactForm = ArtifactForm()) -> Artifact:
    """result = counter = counter + step."""
    p = Programs("count")
    v, r = p.variable(variable, (1,), dtype, initial), p.output("result", (1,), dtype)
    program = p.program(*p.write(v, plus(step, dtype), v), p.compute(r, copy, v))
    return write(program, plan(program), folder, name, form=form)


SHARED = ArtifactForm(namespace="shared")

COUNT = r"""
static long long count_NAME(void) {
    int64_t result = -1;
    struct tosaic_NAME_outputs outputs;
    outputs.result = &result;
    outputs.result_size = sizeof result;
    if (tosaic_NAME_run(&outputs, 0) != TOSAIC_OK) return -2;
    return (long long)result;
}
"""


@languages
def test_a_variable_is_kept_and_reset(tmp_path: Path, language: str) -> None:
    source = ('#include <stdio.h>\n#include "tosaic_demo.h"\n' + COUNT.replace("NAME", "demo") + r"""
int main(void) {
    printf("%d %lld ", (int)tosaic_demo_written_counter, (long long)tosaic_demo_variable_counter[0]);
    printf("%lld ", count_demo());
    printf("%lld ", count_demo());
    tosaic_demo_variable_counter[0] = 70;
    printf("%lld ", count_demo());
    tosaic_demo_reset();
    printf("%lld", count_demo());
    return 0;
}""")
    artifact = counting(tmp_path, "demo")
    assert run(build(tmp_path, source, [artifact], language)) == b"0 0 6 7 71 6"
    assert undefined(artifact) <= {"memcpy", "memset"} and artifact.variable_bytes == 8


@languages
def test_two_objects_of_one_namespace_share_a_variable(tmp_path: Path, language: str) -> None:
    source = ('#include <stdio.h>\n#include "tosaic_up.h"\n#include "tosaic_down.h"\n'
              + COUNT.replace("NAME", "up") + COUNT.replace("NAME", "down") + r"""
int main(void) {
    printf("%lld ", count_up());
    printf("%lld ", count_down());
    printf("%lld ", count_up());
    tosaic_down_reset();
    printf("%lld", count_up());
    return 0;
}""")
    artifacts = [counting(tmp_path, "up", step=10, form=SHARED), counting(tmp_path, "down", step=-1, form=SHARED)]
    assert run(build(tmp_path, source, artifacts, language)) == b"15 14 24 15"


def test_objects_that_disagree_on_a_type_return_an_error_and_write_nothing(tmp_path: Path) -> None:
    source = '#include <stdio.h>\n#include "tosaic_up.h"\n' + COUNT.replace("NAME", "up") + r"""
extern int32_t other(void);
int main(void) {
    printf("%lld ", count_up());
    printf("%d ", (int)other());
    printf("%lld", count_up());
    return 0;
}"""
    other = '#include "tosaic_down.h"\n' + r"""
extern int32_t other(void);
int32_t other(void) {
    int32_t result = 0;
    struct tosaic_down_outputs outputs;
    outputs.result = &result;
    outputs.result_size = sizeof result;
    return tosaic_down_run(&outputs, 0);
}"""
    artifacts = [counting(tmp_path, "up", form=SHARED), counting(tmp_path, "down", dtype="int32", form=SHARED)]
    (tmp_path / "other.c").write_text(other)
    built = build(tmp_path, source, artifacts, flags=[str(tmp_path / "other.c")])
    assert run(built) == b"6 -3 7"


def test_entry_functions_of_one_model_share_their_variables(tmp_path: Path) -> None:
    programs = []
    for name, element in (("push", plus(1.0)), ("scale", times(10.0))):
        p = Programs(name)
        v, y = p.variable("state", initial=X), p.output("y")
        program = p.program(*p.write(v, element, v), p.compute(y, copy, v))
        programs.append((program, plan(program)))
    artifact = write(programs, None, tmp_path, "demo")
    source = r"""
#include <stdio.h>
#include "tosaic_demo.h"
int main(void) {
    float y[8];
    struct tosaic_demo_push_outputs push;
    struct tosaic_demo_scale_outputs scale;
    push.y = y;
    scale.y = y;
    push.y_size = scale.y_size = sizeof y;
    if (TOSAIC_DEMO_PUSH_OUTPUT_Y_SIZE != sizeof y || TOSAIC_DEMO_WORKSPACE_SIZE != 0) return 1;
    if (tosaic_demo_push_run(&push, 0) || tosaic_demo_scale_run(&scale, 0) || tosaic_demo_push_run(&push, 0)) return 2;
    printf("%g %g ", (double)y[0], (double)y[7]);
    tosaic_demo_reset();
    if (tosaic_demo_push_run(&push, 0)) return 3;
    printf("%g", (double)y[7]);
    return 0;
}"""
    assert run(build(tmp_path, source, [artifact])) == b"11 81 8"


def test_a_variable_with_two_types_in_one_model_is_a_problem(tmp_path: Path) -> None:
    programs = []
    for name, shape in (("a", (8,)), ("b", (4, 2))):
        p = Programs(name)
        v, y = p.variable("state", shape), p.output("y", shape)
        program = p.program(p.compute(y, copy, v))
        programs.append((program, plan(program)))
    with pytest.raises(Problem) as caught:
        write(programs, None, tmp_path, "demo")
    assert str(caught.value) == ("error[variable]: variable state is declared with two types in one object\n"
                                 "  help: give one of them another name")


FAULTS = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static union { double d; unsigned char b[TOSAIC_DEMO_WORKSPACE_SIZE + 64]; } memory;
int main(void) {
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float y[8];
    struct tosaic_demo_workspace_pools pools;
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    pools.workspace = memory.b + (64 - (size_t)memory.b % 64) % 64;
    pools.workspace_size = TOSAIC_DEMO_WORKSPACE_SIZE;
    inputs.x = x;
    inputs.x_size = sizeof x;
    outputs.y = y;
    outputs.y_size = sizeof y;
    printf("%d ", (int)(tosaic_demo_run(&inputs, &outputs, &pools) == TOSAIC_DEMO_FAULT_1));
    printf("%g %d %d ", (double)tosaic_demo_variable_kept[7], (int)tosaic_demo_written_kept,
           (int)tosaic_demo_written_fresh);
    tosaic_demo_variable_missing[0] = 3;
    tosaic_demo_written_missing = 1;
    printf("%d ", (int)tosaic_demo_run(&inputs, &outputs, &pools));
    printf("%g %g %d ", (double)y[0], (double)tosaic_demo_variable_kept[7], (int)tosaic_demo_written_fresh);
    tosaic_demo_reset();
    printf("%g %d %d ", (double)tosaic_demo_variable_kept[7], (int)tosaic_demo_written_fresh,
           (int)tosaic_demo_written_missing);
    printf("%d", (int)(tosaic_demo_run(&inputs, &outputs, &pools) == TOSAIC_DEMO_FAULT_1));
    return 0;
}
"""


CHECKS = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static union { double d; unsigned char b[TOSAIC_DEMO_WORKSPACE_SIZE + 64]; } memory;
int main(void) {
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float y[8];
    unsigned char c = 1, d = 1;
    struct tosaic_demo_workspace_pools pools;
    struct tosaic_demo_inputs inputs;
    struct tosaic_demo_outputs outputs;
    pools.workspace = memory.b + (64 - (size_t)memory.b % 64) % 64;
    pools.workspace_size = TOSAIC_DEMO_WORKSPACE_SIZE;
    inputs.x = x;
    inputs.x_size = sizeof x;
    inputs.c = &c;
    inputs.c_size = sizeof c;
    inputs.d = &d;
    inputs.d_size = sizeof d;
    outputs.y = y;
    outputs.y_size = sizeof y;
    printf("%d ", (int)tosaic_demo_run(&inputs, &outputs, &pools));
    x[7] = 100;
    d = 0;
    printf("%d ", (int)(tosaic_demo_run(&inputs, &outputs, &pools) == TOSAIC_DEMO_FAULT_2));
    printf("%g ", (double)tosaic_demo_variable_kept[7]);
    c = 0;
    printf("%d ", (int)(tosaic_demo_run(&inputs, &outputs, &pools) == TOSAIC_DEMO_FAULT_1));
    printf("%g ", (double)tosaic_demo_variable_kept[7]);
    c = d = 1;
    printf("%d ", (int)tosaic_demo_run(&inputs, &outputs, &pools));
    printf("%g", (double)tosaic_demo_variable_kept[7]);
    return 0;
}
"""


@languages
def test_checks_before_and_behind_a_write_have_numbers_and_change_no_variable(tmp_path: Path, language: str) -> None:
    p = Programs()
    x, c, d, y = p.input("x"), p.input("c", (), "bool"), p.input("d", (), "bool"), p.output("y")
    kept = p.variable("kept", initial=X * 7)
    program = p.program(p.check_true(c, "c is false"), *p.write(kept, copy, x), p.check_true(d, "d is */ false"),
                        p.compute(y, copy, kept))
    artifact = write(program, plan(program), tmp_path, "demo")
    header = (tmp_path / "tosaic_demo.h").read_text()
    assert "#define TOSAIC_DEMO_FAULT_1 1 /* c is false */" in header and "#define TOSAIC_DEMO_FAULT_2 2 /* d is " in header
    assert run(build(tmp_path, CHECKS, [artifact], language)) == b"0 1 8 1 8 0 100"


@languages
def test_a_run_that_fails_changes_no_variable(tmp_path: Path, language: str) -> None:
    p = Programs()
    x, y = p.input("x"), p.output("y")
    kept, fresh, missing = p.variable("kept", initial=X * 7), p.variable("fresh"), p.variable("missing")
    program = p.program(*p.write(kept, copy, x), *p.write(fresh, copy, x), p.check(missing),
                        p.compute(y, copy, missing))
    artifact = write(program, plan(program), tmp_path, "demo")
    assert run(build(tmp_path, FAULTS, [artifact], language)) == b"1 49 1 0 0 3 8 1 49 0 0 1"


def test_large_variables_are_reset_to_large_values(tmp_path: Path) -> None:
    p = Programs()
    value = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    v, y = p.variable("v", (5000,), initial=value), p.output("y", (5000,))
    program = p.program(*p.write(v, times(3.0), v), p.compute(y, copy, v))
    artifact = write(program, plan(program), tmp_path, "demo")
    source = r"""
#include <stdio.h>
#include "tosaic_demo.h"
int main(void) {
    static float y[5000];
    struct tosaic_demo_outputs outputs;
    outputs.y = y;
    outputs.y_size = sizeof y;
    if (tosaic_demo_run(&outputs, 0) || tosaic_demo_run(&outputs, 0)) return 1;
    fwrite(y, 1, sizeof y, stdout);
    tosaic_demo_reset();
    if (tosaic_demo_run(&outputs, 0)) return 2;
    fwrite(y, 1, sizeof y, stdout);
    return 0;
}"""
    three = np.float32(3)
    expected = (value * three * three).tobytes() + (value * three).tobytes()
    assert run(build(tmp_path, source, [artifact])) == expected
