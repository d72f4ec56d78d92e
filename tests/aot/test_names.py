"""Names of a model in C: distinct ones stay distinct, in symbols of a program and in structures and macros of a header."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tosaic import Memory, Pool
from tosaic.jit.aot import ArtifactForm, write
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.c_object.c_names import KEYWORDS, distinct, macro, size_member
from tosaic.runtime.c_symbols import symbol_part, variable_symbols

from ..executable.programs import Programs, add, copy, plus
from .c_programs import build, languages, needs_gcc, run

PIECES = st.sampled_from(["a", "b", "A", "_", "__", ".", "variable", "written", "type", "x2e", "x5f", "x", "size", "0", "é",
                          "/", "int", "\ud800", "\U0001f600"])
NAMES = st.one_of(st.text(max_size=6), st.lists(PIECES, max_size=5).map("".join))


def read_back(part: str) -> str:
    """The name that a part of a symbol is of, read by the rule in its documentation."""
    if part == "xff":
        return ""
    words = part.split("_")
    escapes = [re.fullmatch("x((?:[0-9a-f]{2})+)", word) for word in words]
    text = ""
    for i, (word, escape) in enumerate(zip(words, escapes)):
        if escape:
            text += bytes.fromhex(escape[1]).decode("utf-8", "surrogatepass")
        else:
            text += "_" * (i > 0 and not escapes[i - 1]) + word
    return text


@given(NAMES)
def test_a_part_of_a_symbol_reads_back_as_the_name(name: str) -> None:
    part = symbol_part(name)
    assert read_back(part) == name
    assert re.fullmatch("[0-9A-Za-z_]+", part) and "__" not in f"_{part}_"


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_variables_of_distinct_names_have_distinct_symbols(one: tuple[str, str], other: tuple[str, str]) -> None:
    mine, others = variable_symbols(*one), variable_symbols(*other)
    assert len(set(mine)) == 3 and (one == other or not set(mine) & set(others))


@pytest.mark.parametrize(("name", "part"), [
    ("counter", "counter"), ("my_state_1", "my_state_1"), ("a.b", "a_x2e_b"), ("a__b", "a_x5f5f_b"), ("variables", "variables"),
    ("a_variable", "a_x5f76_ariable"), ("x2e", "x78_2e"), ("größe", "gr_xc3b6c39f_e"), ("", "xff"), ("x", "x")])
def test_plain_names_stay_and_others_say_what_they_are(name: str, part: str) -> None:
    assert symbol_part(name) == part


@given(st.lists(NAMES, max_size=8, unique=True))
def test_members_and_their_macros_are_distinct_words_of_c(titles: list[str]) -> None:
    names = distinct(titles, ("size",))
    assert list(names) == titles
    spelled = [*names.values(), *map(size_member, names.values())]
    assert len(set(map(macro, spelled))) == len(spelled)
    assert all(re.fullmatch("[A-Za-z][0-9A-Za-z_]*", name) and name not in KEYWORDS for name in spelled)


def test_names_stay_as_a_reader_would_spell_them_where_nothing_clashes() -> None:
    assert distinct(["serving_default:0", "y", "__a__b__", "int"]) == {
        "serving_default:0": "serving_default_0", "y": "y", "__a__b__": "a_b", "int": "int_"}
    assert distinct(["a.b", "a_b", "c.d"]) == {"a.b": "a_x2e_b", "a_b": "a_b", "c.d": "c_d"}


CLASHING = r"""
#include <stdio.h>
#include "tosaic_demo.h"
static float x[8] = {1}, other[8] = {2}, third[8] = {4}, y[8];
static TOSAIC_ALIGNED(64) unsigned char one[64], two[64];
int main(void) {
    struct tosaic_demo_step_x2e_1_inputs inputs;
    struct tosaic_demo_step_x2e_1_outputs outputs;
    struct tosaic_demo_workspace_pools pools;
    inputs.a_x2e_b = x;
    inputs.a_x2e_b_size = sizeof x;
    inputs.a_b = other;
    inputs.a_b_size = TOSAIC_DEMO_STEP_X2E_1_INPUT_A_B_SIZE;
    inputs.a_b_x5f73_ize = third;
    inputs.a_b_x5f73_ize_size = TOSAIC_DEMO_STEP_X2E_1_INPUT_A_B_X5F73_IZE_SIZE;
    outputs.y = y;
    outputs.y_size = sizeof y;
    pools.ram = one;
    pools.x52414d = two;
    pools.ram_size = pools.x52414d_size = 64;
    if (tosaic_demo_step_x2e_1_run(&inputs, &outputs, &pools)) return 1;
    printf("%g %g %g", (double)y[0], (double)tosaic_demo_variable_a_x2e_b[0], (double)tosaic_demo_variable_a_x20_b[0]);
    return tosaic_demo_reset();
}
"""


@needs_gcc
@languages
def test_a_model_whose_names_clash_has_a_header_that_tells_them_apart(tmp_path: Path, language: str) -> None:
    programs = []
    for name in ("step.1", "step_1"):
        p = Programs(name)
        inputs = [p.input(n) for n in ("a.b", "a_b", "a_b_size")]
        t, u, y = p.temporary("t"), p.temporary("u"), p.output("y")
        v, w = p.variable("a.b"), p.variable("a b")
        program = p.program(p.compute(t, add, *inputs[:2]), p.compute(u, add, t, inputs[2]), *p.write(v, copy, inputs[0]),
                            *p.write(w, plus(1), inputs[1]), p.compute(y, copy, u))
        programs.append((program, plan(program, Memory(pools=(Pool("ram"), Pool("RAM"))))))
    artifact = write(programs, None, tmp_path, "demo")
    assert run(build(tmp_path, CLASHING, [artifact], language)) == b"7 1 3"
    held = write(programs, None, tmp_path / "held", "demo", form=ArtifactForm(state="caller", main=True))
    assert run(build(tmp_path / "held", (tmp_path / "held" / "main.c").read_text(), [held], language)) == b""
