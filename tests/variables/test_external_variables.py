"""A graph that reads a variable which another graph declares: accepted wherever graphs are, and a fault of the run where
nothing has declared and written it with that type."""
from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.flatbuffer.reader import read_module as read_file
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import ELEMENT_TYPES
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter
from tosaic.runtime.interpreter_variables import InterpreterVariables
from tosaic.runtime.variables import Context

from ..aot.c_programs import build, languages, needs_gcc, run, undefined

READER = """func.func @main() -> tensor<2xf32> {
  %0 = tosa.variable_read @v : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
WRITER = """tosa.variable @v = dense<[1.0, 2.0]> : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.variable_read @v : tensor<2xf32>
  %1 = tosa.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tosa.variable_write @v, %1 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""
ONE = np.ones(2, np.float32)


def compiled(text: str | Module, context: Context) -> tosaic.Compiled:
    module = read_module(text) if isinstance(text, str) else text
    verify(module)
    return Traced(module, "main").compile(context=context)


def test_the_value_is_that_of_the_graph_that_declares_it_whichever_is_loaded_first() -> None:
    for first in (READER, WRITER):
        context = Context("test")
        programs = {text: compiled(text, context) for text in (first, WRITER if first is READER else READER)}
        assert programs[READER]().tolist() == [1, 2]
        programs[WRITER](ONE)
        assert programs[READER]().tolist() == [2, 3]


def test_it_is_a_fault_as_long_as_nothing_declares_it_and_after_it_has_been_deleted() -> None:
    context = Context("test")
    read = compiled(READER, context)
    for _ in range(3):
        with pytest.raises(Problem, match="variable @v is read, but no graph has declared and written it"):
            read()
    assert len(context) == 0, "reading declares nothing"
    write = compiled(WRITER, context)
    assert [read().tolist() for _ in range(3)] == [[1, 2]] * 3
    context.delete("v")
    with pytest.raises(Problem, match="no graph has declared"):
        read()
    write(ONE)
    assert read().tolist() == [2, 3]


def test_it_is_a_fault_as_long_as_nothing_has_written_it() -> None:
    context = Context("test")
    read, write = compiled(READER, context), compiled("tosa.variable @v : tensor<2xf32>\n" + READER, context)
    for program in (read, write):
        with pytest.raises(Problem, match="variable @v is read"):
            program()
    context.set("v", ONE)
    assert read().tolist() == [1, 1]


@pytest.mark.parametrize("type", ["tensor<2xi32>", "tensor<3xf32>", "tensor<1x2xf32>", "tensor<2xf16>"])
def test_another_type_is_a_fault_whichever_is_loaded_first(type: str) -> None:
    context = Context("test")
    read = compiled(READER.replace("tensor<2xf32>", type), context)
    compiled(WRITER, context)
    with pytest.raises(Problem, match="variable v is read as"):
        read()
    with pytest.raises(Problem, match="variable v is read as"):
        compiled(READER.replace("tensor<2xf32>", type), context)
    variables = InterpreterVariables()
    Interpreter(read_module(WRITER), None, variables)(ONE)
    with pytest.raises(Problem, match="it is read as"):
        Interpreter(read_module(READER.replace("tensor<2xf32>", type)), None, variables)()


@pytest.mark.parametrize("text, message", [
    ("func.func @main(%x: tensor<2xf32>) {\n  tosa.variable_write @v, %x : tensor<2xf32>\n  return\n}",
     "variable @v is not declared"),
    ("func.func @main(%x: tensor<2xf32>) {\n  %0 = tosa.variable_read @v : tensor<2xf32>\n"
     "  tosa.variable_write @v, %x : tensor<2xf32>\n  return\n}", "variable @v is not declared"),
    ("func.func @main() {\n  %0 = tosa.variable_read @v : tensor<2xf32>\n"
     "  %1 = tosa.variable_read @v : tensor<3xf32>\n  return\n}", r"variable @v is tensor<2xf32>, here it is tensor<3xf32>"),
    ("func.func @main() {\n  %0 = tosa.variable_read @v : tensor<2xf32>\n"
     "  tosa.variable @v = dense<0.0> : tensor<2xf32>\n  return\n}", "variable @v is declared behind what reads it"),
    ("func.func @main() {\n  %0 = tosa.variable_read @v : tensor<?xf32>\n  return\n}", "its shape must be known")])
def test_what_no_run_could_do_is_refused(text: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        verify(read_module(text))


def test_a_read_in_a_branch_faults_only_where_the_branch_runs() -> None:
    text = """func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.cond_if %p : tensor<i1> -> tensor<2xf32> {
    %1 = tosa.variable_read @v : tensor<2xf32>
    tosa.yield %1 : tensor<2xf32>
  } else {
    tosa.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
"""
    program, interpreter = compiled(text, Context("test")), Interpreter(read_module(text))
    for call in (program, lambda *x: interpreter(*x)[0]):
        assert call(np.array(False), ONE).tolist() == [1, 1]
        with pytest.raises(Problem, match="variable @v is read"):
            call(np.array(True), ONE)


def test_text_and_files_keep_it() -> None:
    module = read_module(READER)
    assert "tosa.variable @v" not in print_module(module)
    again = read_file(write_module(module))
    verify(again)
    assert again.declarations == ()
    context = Context("test")
    compiled(WRITER, context)
    assert compiled(again, context)().tolist() == [1, 2]
    declared = read_file(write_module(read_module(WRITER)))
    assert len(declared.declarations) == 1


def test_the_loops_as_text_keep_it() -> None:
    program = Traced(read_module(READER), "main").lower().program
    assert [v.external for v in program.variables] == [True]
    assert [v.external for v in read_program(print_program(program)).variables] == [True]


def test_check_gives_both_engines_a_value(tmp_path: Path) -> None:
    path = tmp_path / "reader.mlir"
    path.write_text(READER)
    found = tosaic.load(path).entry().check([[], []])
    assert found.agrees and found.operators == 2


def test_machine_code_of_an_earlier_process_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "reader.mlir"
    path.write_text(READER)
    os.utime(path, (1, 1))
    code = f"""import tosaic
try: tosaic.load({str(path)!r})()
except tosaic.Problem as problem: print(problem.message, len(tosaic.default_context.list()))
"""
    environment = os.environ | {"TOSAIC_CACHE": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment)
        assert done.stdout == "variable @v is read, but no graph has declared and written it 0\n", done.stderr


TYPES = ("f32", "i32", "i8", "i1", "f16", "bf16", "i16")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_that_share_variables_end_alike_in_both_engines(seed: int) -> None:
    """Programs that declare and write variables, and programs that only read them, called in a random order."""
    r = random.Random(seed)
    shapes = {f"v{n}": (r.choice(TYPES), tuple(r.randint(1, 3) for _ in range(r.randint(0, 2)))) for n in range(3)}
    texts = [owner(r, name, *type) for name, type in shapes.items()] + [reading(r, shapes) for _ in range(4)]
    context, variables = Context("test"), InterpreterVariables()
    programs: dict[int, tosaic.Compiled] = {}
    generator = np.random.default_rng(seed)
    for _ in range(30):
        n = r.randrange(len(texts))
        module = read_module(texts[n])
        arguments = [array(generator, v.type.element.name, v.type.dims) for v in module.functions[0].arguments]
        expected = outcome(lambda: Interpreter(module, None, variables)(*arguments))

        def call() -> tuple[np.ndarray, ...]:
            if n not in programs:
                programs[n] = compiled(module, context)
            found = programs[n](*arguments)
            return found if isinstance(found, tuple) else (found,)
        assert outcome(call) == expected, texts[n]


def outcome(call) -> object:
    try:
        return [(x.dtype.name, x.shape, x.tobytes()) for x in call()]
    except Problem:
        return "fault"


def tensor(element: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def array(generator: np.random.Generator, element: str, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(0, 2 if element == "i1" else 100, shape).astype(ELEMENT_TYPES[element].dtype)


def owner(r: random.Random, name: str, element: str, shape: tuple[int, ...]) -> str:
    """Declares a variable, with or without an initial value, and writes it where the argument says so."""
    type = tensor(element, shape)
    one = "1" if element.startswith("i") and element != "i1" else "true" if element == "i1" else "1.0"
    return f"""tosa.variable @{name}{f' = dense<{one}>' * (r.random() < 0.5)} : {type}
func.func @main(%p: tensor<i1>, %x: {type}) -> {type} {{
  %0 = tosa.cond_if %p : tensor<i1> -> {type} {{
    tosa.variable_write @{name}, %x : {type}
    tosa.yield %x : {type}
  }} else {{
    tosa.yield %x : {type}
  }}
  return %0 : {type}
}}
"""


def reading(r: random.Random, shapes: dict[str, tuple[str, tuple[int, ...]]]) -> str:
    """Reads some variables, one of them behind a branch, another one now and then with another type. (Behind a branch compiled
    code refuses that whether or not the branch runs.)"""
    names = r.sample(sorted(shapes), r.randint(1, 3))
    types = [tensor(*shapes[n]) if r.random() < 0.85 or n == names[0] else "tensor<5xf32>" for n in names]
    lines = [f"  %r{i} = tosa.variable_read @{n} : {t}" for i, (n, t) in enumerate(zip(names[1:], types[1:]))]
    first, type = names[0], types[0]
    lines += [f"  %b = tosa.cond_if %p : tensor<i1> -> {type} {{", f"    %q = tosa.variable_read @{first} : {type}",
              f"    tosa.yield %q : {type}", "  } else {", f"    tosa.yield %y : {type}", "  }"]
    results = ", ".join(["%b", *(f"%r{i}" for i in range(len(names) - 1))])
    kinds = ", ".join(types)
    return (f"func.func @main(%p: tensor<i1>, %y: {type}) -> ({kinds}) {{\n" + "\n".join(lines)
            + f"\n  return {results} : {kinds}\n}}\n")


C_SOURCE = r"""
#include <stdio.h>
#include "tosaic_writer.h"
#include "tosaic_reader.h"
int main(void) {
    float x[2] = {1, 1}, y[2], z[2];
    struct tosaic_writer_inputs inputs;
    struct tosaic_writer_outputs written;
    struct tosaic_reader_outputs found;
    inputs.x = x; inputs.x_size = sizeof x;
    written.result0 = y; written.result0_size = sizeof y;
    found.result0 = z; found.result0_size = sizeof z;
    printf("%d ", (int)tosaic_reader_run(&found, 0));
    if (tosaic_writer_reset()) return 1;
    printf("%d ", (int)tosaic_reader_run(&found, 0));
    printf("%g %g ", (double)z[0], (double)z[1]);
    if (tosaic_writer_run(&inputs, &written, 0)) return 1;
    tosaic_reader_reset();
    printf("%d ", (int)tosaic_reader_run(&found, 0));
    printf("%g %g ", (double)z[0], (double)z[1]);
    tosaic_demo_written_v = 0;
    printf("%d", (int)tosaic_reader_run(&found, 0));
    return 0;
}"""


@needs_gcc
@languages
def test_an_object_reads_the_variable_of_another_object(tmp_path: Path, language: str) -> None:
    artifacts = []
    for name, text in (("writer", WRITER), ("reader", READER)):
        path = tmp_path / f"{name}.mlir"
        path.write_text(text)
        artifacts.append(tosaic.load(path).save(tmp_path, name, namespace="demo"))
    header = artifacts[1].header.read_text()
    assert "in another object" in header and "save_state" not in header
    assert {"tosaic_demo_variable_v", "tosaic_demo_written_v", "tosaic_demo_type_v"} <= undefined(artifacts[1])
    assert run(build(tmp_path, C_SOURCE, artifacts, language)) == b"1 0 1 2 0 2 3 1"


@pytest.mark.parametrize("state", ["own", "caller"])
def test_an_object_of_its_own_cannot_read_the_variable_of_another(tmp_path: Path, state: str) -> None:
    (tmp_path / "reader.mlir").write_text(READER)
    with pytest.raises(Problem, match="variable v is declared by another program") as caught:
        tosaic.load(tmp_path / "reader.mlir").save(tmp_path, "reader", state=state)
    assert "namespace" in str(caught.value) and not list(tmp_path.glob("*.o"))
    assert tosaic.load(tmp_path / "reader.mlir").main.lower().report(code=True).object is not None
