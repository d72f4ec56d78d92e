"""The example of a project: every form of the interface runs it, it holds compiled code against the interpreter, and it says so
where something differs."""
from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.projects.save_project import save
from tosaic.jit.stages import Lowered

from ..aot.test_forms import FORMS, MODELS
from ..covering import covering
from .building import DATA, compiled_example, needs, said_by

pytestmark = needs("gcc")
EMITTED = ("object", "c")
RECORDED = re.compile(r"static const \w+ (\w+)\[\d+\]\[\d+\] = \{\n(.*?)\n\};", re.DOTALL)


def said(calls: int) -> tuple[str, int]:
    return f"tosaic_model: {calls} calls, OK\n", 0


def entries_of(model: str, emit: str, memory: tosaic.Memory = tosaic.Memory()) -> list[Lowered]:
    options = tosaic.CompileOptions(tosaic.target("any") if emit == "c" else None, threads=1, memory=memory)
    return [entry.lower(options) for entry in tosaic.load(DATA / model)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("model", "form", "emit"), covering(3, MODELS, FORMS, EMITTED))
def test_an_example_of_every_form_is_right(tmp_path: Path, model: str, form: str, emit: str) -> None:
    memory, how = FORMS[form]
    entries = entries_of(model, emit, memory)
    save(entries, tmp_path, "model", replace(how, emit=emit), "make")
    assert said_by(compiled_example(tmp_path)) == said(3 if any(e.program.variables for e in entries) else 1)


TYPES = """
func.func @main(%b: tensor<3xi1>, %i: tensor<2x2xi16>, %l: tensor<i32>, %h: tensor<3xf16>, %g: tensor<3xbf16>,
                %f: tensor<3xf32>)
    -> (tensor<3xi1>, tensor<2x2xi16>, tensor<i32>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xi1>) {
  %0 = tosa.logical_not %b : (tensor<3xi1>) -> tensor<3xi1>
  %1 = tosa.bitwise_not %i : (tensor<2x2xi16>) -> tensor<2x2xi16>
  %2 = tosa.abs %l : (tensor<i32>) -> tensor<i32>
  %3 = tosa.exp %h : (tensor<3xf16>) -> tensor<3xf16>
  %4 = tosa.exp %g : (tensor<3xbf16>) -> tensor<3xbf16>
  %5 = tosa.exp %f : (tensor<3xf32>) -> tensor<3xf32>
  %6 = tosa.greater %5, %f : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return %0, %1, %2, %3, %4, %5, %6
    : tensor<3xi1>, tensor<2x2xi16>, tensor<i32>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xi1>
}
"""


def typed_inputs() -> list[np.ndarray]:
    bfloat16 = tosaic.load(TYPES).main.inputs[4].quantize(np.array([np.inf, 0.5, -1], np.float32)).dtype
    return [np.array([True, False, True]), np.array([[-32767, 2], [-3, 4]], np.int16), np.array(-2 ** 31 + 1, np.int32),
            np.array([np.nan, -2, 3], np.float16), np.array([np.inf, 0.5, -1]).astype(bfloat16),
            np.array([np.nan, -np.inf, -1.5], np.float32)]


@pytest.mark.parametrize("emit", EMITTED)
def test_every_kind_of_element_is_recorded_and_compared_not_a_number_too(tmp_path: Path, emit: str) -> None:
    tosaic.load(TYPES).save(tmp_path, "model", emit=emit, project="make", calls=[typed_inputs()])
    assert said_by(compiled_example(tmp_path)) == said(1)
    assert "NAN, -INFINITY, -1.5f" in (tmp_path / "example" / "tosaic_model_recorded.h").read_text()


def changed(project: Path, **first: str) -> str:
    """What the example says once the first elements of some recorded arrays are others."""
    path = project / "example" / "tosaic_model_recorded.h"
    before = text = path.read_text()
    for name, value in first.items():
        text, count = re.subn(rf"( tosaic_model_{name}\[\d+\]\[\d+\] = {{\s*{{)[^\s,}}]+", rf"\g<1>{value}", text)
        assert count == 1
    path.write_text(text)
    told, code = said_by(compiled_example(project))
    path.write_text(before)
    assert code == 1 and told.endswith("1 calls, DIFFERENT\n")
    return told.splitlines()[0]


def test_one_element_that_is_not_the_expected_one_is_named(tmp_path: Path) -> None:
    """Of each type; floats within what rounding may do are right, and beyond it wrong."""
    x = typed_inputs()
    x[3][0], x[5][0], x[5][1] = 1, 1, 2
    tosaic.load(TYPES).save(tmp_path, "model", project="make", calls=[x])
    assert said_by(compiled_example(tmp_path)) == said(1)
    assert changed(tmp_path, expected_result0="1") == "call 0, output result0[0] is 0, expected 1"
    assert changed(tmp_path, expected_result1="-5") == "call 0, output result1[0] is 32766, expected -5"
    assert changed(tmp_path, expected_result2="-9") == "call 0, output result2[0] is 2147483647, expected -9"
    for two in ("0x4000", "0xc000"):  # of 16 bits, with either sign, where e is right
        assert changed(tmp_path, least_result3=two, most_result3=two).startswith("call 0, output result3[0] is 167")
    assert changed(tmp_path, least_result4="0", most_result4="0x7f7f").startswith("call 0, output result4[0] is 32640, ")
    e = float(np.exp(1.0))
    for least, most in ((1 - 1e-4, 1 - 9e-5), (1 + 9e-5, 1 + 1e-4), (-1 - 1e-4, -1 + 1e-4)):
        changed_bounds = {"least_result5": f"{e * least:.9g}f", "most_result5": f"{e * most:.9g}f"}
        assert "output result5[0]" in changed(tmp_path, **changed_bounds)


def test_the_bounds_of_floats_are_those_of_their_rounding_and_no_wider(tmp_path: Path) -> None:
    """An exponential of f32 may err by a few units of its last place."""
    model = tosaic.load(TYPES)
    model.save(tmp_path, "model", project="make", calls=[typed_inputs()])
    text = (tmp_path / "example" / "tosaic_model_recorded.h").read_text()
    arrays = {m[1].removeprefix("tosaic_model_"): m[2].strip(" {}").split(", ") for m in RECORDED.finditer(text)}
    least, exact, most = (float(arrays[f"{what}_result5"][2].rstrip("f")) for what in ("least", "expected", "most"))
    assert exact == np.float32(np.exp(np.float64(-1.5))) or abs(exact / np.exp(-1.5) - 1) < 2e-7
    assert exact * (1 - 1e-4) < least < exact < most < exact * (1 + 1e-4)
    assert not any(name.startswith(("least_result0", "least_result1", "least_result2")) for name in arrays)


CHECKED = """
tosa.variable @count : tensor<i32>
func.func @take(%x: tensor<i32>) -> tensor<i32> {
  %0 = tosa.variable_read @count : tensor<i32>
  %1 = tosa.add %0, %x : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %1 : tensor<i32>
}
func.func @put(%x: tensor<i32>) -> tensor<i32> {
  tosa.variable_write @count, %x : tensor<i32>
  return %x : tensor<i32>
}
"""


@pytest.mark.parametrize("emit", EMITTED)
def test_a_call_that_must_fail_is_expected_to_fail_with_its_code(tmp_path: Path, emit: str) -> None:
    """The first read finds a variable that nothing has written; the second one finds what the other entry wrote."""
    calls = {name: [[np.array(7, np.int32)], [np.array(5, np.int32)]] for name in ("take", "put")}
    tosaic.load(CHECKED).save(tmp_path, "model", emit=emit, project="make", calls=calls)
    text = (tmp_path / "example" / "tosaic_model_recorded.h").read_text()
    assert "tosaic_model_take_recorded_codes[2] = {1, 0}" in text and "tosaic_model_put_recorded_codes[2] = {0, 0}" in text
    assert {m[1]: m[2].split() for m in RECORDED.finditer(text)}["tosaic_model_take_expected_result0"][1] == "{12}"
    assert said_by(compiled_example(tmp_path)) == said(2)


def test_calls_are_needed_of_each_entry(tmp_path: Path) -> None:
    with pytest.raises(tosaic.Problem, match=r"calls are needed of take, put"):
        tosaic.load(CHECKED).save(tmp_path, "model", project="make", calls=[[np.array(7, np.int32)]])
    calls = {"take": [[np.array(7, np.int32)]], "put": []}
    with pytest.raises(tosaic.Problem, match="different numbers of calls"):
        tosaic.load(CHECKED).save(tmp_path, "model", project="make", calls=calls)
    with pytest.raises(tosaic.Problem, match="input x is an array of float64, not of int32"):
        tosaic.load(CHECKED).entry("put").lower().save(tmp_path, "model", project="make", calls=[[np.array(7.0)]])
    assert not list(tmp_path.iterdir())


def test_a_variable_of_another_model_is_a_problem(tmp_path: Path) -> None:
    reads = """func.func @main() -> tensor<i32> {
      %0 = tosa.variable_read @count : tensor<i32>
      return %0 : tensor<i32> }"""
    with pytest.raises(tosaic.Problem, match="main reads @count, which another model declares"):
        tosaic.load(reads).save(tmp_path, "model", project="make", namespace="shared")


def test_what_is_recorded_is_what_others_compute(tmp_path: Path) -> None:
    """The expected output of a quantised network, as LiteRT has it."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    path = DATA / "corpus" / "f_mobilenet_block_int8.tflite"
    kernels = interpreter.OpResolverType.BUILTIN_REF
    theirs = interpreter.Interpreter(model_path=str(path), experimental_op_resolver_type=kernels)
    theirs.allocate_tensors()
    given, got = theirs.get_input_details()[0], theirs.get_output_details()[0]
    x = np.random.default_rng(3).integers(-128, 128, given["shape"]).astype(np.int8)
    theirs.set_tensor(given["index"], x)
    theirs.invoke()
    tosaic.load(path).save(tmp_path, "model", project="make", calls=[[x]])
    text = (tmp_path / "example" / "tosaic_model_recorded.h").read_text()
    expected = next(m[2] for m in RECORDED.finditer(text) if "_expected_" in m[1])
    assert [int(word) for word in re.findall(r"-?\d+", expected)] == theirs.get_tensor(got["index"]).ravel().tolist()
