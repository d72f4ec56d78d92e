"""The header: names that C and C++ take, clashes that are problems, and nothing from a model that could leave a
comment."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tosaic.jit.aot import Artifact, write
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.memory.planner import Memory, plan
from tosaic.lowering.native.c_object.header import comment
from tosaic.lowering.native.c_object.interface import c_name, c_type
from tosaic.lowering.target.presets import target
from tosaic.runtime.errors import Problem

from ..executable.programs import Programs, copy, plus
from .c_programs import build, languages, needs_gcc, without_stack


@pytest.mark.parametrize(("name", "wanted"), [
    ("x", "x"), ("serving_default:0", "serving_default_0"), ("0", "x0"), ("a.b/c", "a_b_c"), ("__a__b__", "a_b"),
    ("", "x"), ("größe", "gr_e"), ("int", "int_"), ("class", "class_"), ("温度", "x"), ('a"; exit(1); //', "a_exit_1")])
def test_names_become_names_of_c(name: str, wanted: str) -> None:
    assert c_name(name) == wanted


@pytest.mark.parametrize(("dtype", "wanted"), [
    ("bool", "uint8_t"), ("int8", "int8_t"), ("uint16", "uint16_t"), ("int64", "int64_t"), ("float32", "float"),
    ("float64", "double"), ("float16", "uint16_t"), ("bfloat16", "uint16_t"), ("float8_e4m3fn", "uint8_t")])
def test_elements_become_types_of_c(dtype: str, wanted: str) -> None:
    assert c_type(dtype) == wanted


@pytest.mark.parametrize("text", ["*/ #error", "/* */", "a\n#error b", "\x1b[31m", "??/", "**//**//", "\u202e", "é\\"])
def test_a_comment_cannot_be_left(text: str) -> None:
    safe = comment(text)
    assert not any(mark in safe for mark in ("*/", "/*", "\n", "\x1b", "??")) and safe.isascii()


def test_the_header_of_a_small_program(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    p = Programs()
    x, weights, y, t = p.input("x"), p.input("int", (4,), "int8"), p.output("y"), p.temporary("t")
    state = p.variable("state")
    program = p.program(p.check(state), p.compute(t, plus(1), x), p.compute(y, copy, t))
    planned = plan(program, Memory(alignment=16))
    artifact = write(program, planned, tmp_path, "demo", target("x86-64"), {weights: "i4"})
    golden("demo.header.txt", without_stack(artifact.header.read_text()))
    assert artifact.paths == (tmp_path / "demo.o", tmp_path / "tosaic_demo.h")


def strange(folder: Path, model: str, function: str, tensor: str, fault: str) -> Artifact:
    p = Programs(function)
    x, y, v = p.input(tensor), p.output("new"), p.variable("my state/1")
    check = p.check(Buffer(fault, "float32", (8,), "variable"))
    check = type(check)(v, check.fault)
    program = p.program(check, p.compute(y, copy, x))
    return write(program, plan(program), folder, model)


@needs_gcc
@languages
def test_strange_names_compile(tmp_path: Path, language: str) -> None:
    artifact = strange(tmp_path, "my model (1)", "*/ #error\n\\", "operator", "?" "?/ */\n#error \x1b[0m \\")
    assert artifact.header.name == "tosaic_my_model_1.h"
    source = r"""
#include "tosaic_my_model_1.h"
#include "tosaic_my_model_1.h"
int main(void) {
    float x[8] = {0}, y[8];
    struct tosaic_my_model_1_inputs inputs;
    struct tosaic_my_model_1_outputs outputs;
    inputs.operator_ = x;
    inputs.operator_size = sizeof x;
    outputs.new_ = y;
    outputs.new_size = sizeof y;
    if (tosaic_my_model_1_run(&inputs, &outputs, 0) != TOSAIC_MY_MODEL_1_FAULT_1) return 1;
    return tosaic_my_model_1_variable_my_x20_state_x2f_1[0] != 0;
}"""
    build(tmp_path, source, [artifact], language)


def problem(programs: list[Programs], folder: Path) -> str:
    pairs = []
    for p in programs:
        x, y = p.inputs[0], p.output("y")
        program = p.program(p.compute(y, copy, x))
        pairs.append((program, plan(program)))
    with pytest.raises(Problem) as caught:
        write(pairs, None, folder, "demo")
    assert not list(folder.iterdir())
    return str(caught.value)


def test_an_entry_function_that_is_called_as_a_variable_is_a_problem(tmp_path: Path) -> None:
    p, q = Programs("variable_a"), Programs("other")
    p.input("x")
    q.input("x")
    p.variable("a_run")
    assert problem([p, q], tmp_path) == (
        "error[symbol]: two symbols of the object are called tosaic_demo_variable_a_run\n"
        "  help: rename an entry function, a variable or a pool of the model")


def test_two_macros_of_one_name_are_a_problem(tmp_path: Path) -> None:
    p, q = Programs("a_input_y"), Programs("a")
    p.input("x")
    q.input("y_input_x")
    assert problem([p, q], tmp_path) == (
        "error[symbol]: two macros of the header are called TOSAIC_DEMO_A_INPUT_Y_INPUT_X_SIZE\n"
        "  help: rename an entry function, an input, an output or a pool of the model")
