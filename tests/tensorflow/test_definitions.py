"""Operations of TensorFlow against its registry: what that does not allow is a Problem, and nothing ends in another error."""
from __future__ import annotations

import collections
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tf import interpret as interpreter
from tosaic.lowering.dialects.tf.definitions import ELEMENTS, definitions
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.dialects.tf.legalizations import LEGALIZATIONS
from tosaic.lowering.dialects.tf.references import REFERENCES
from tosaic.lowering.graph.types import Array
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.rewrite.tensorflow.special import SPECIAL
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret as interpret_tosa

from .random_operations import Maker, random_operation

SEEDS = range(6)
"""Of each operator: thousands of operations in seconds."""
NAMES = sorted(definitions())


def verdict(name: str, seed: int) -> str:
    """What a random operation comes to; whatever is no Problem and no equal result fails."""
    text, arrays = random_operation(name, seed)
    try:
        module = read_module(text)
        verify(module)
    except Problem:
        return "refused"
    try:
        tosa = to_tosa(module, "main")
        verify(tosa)
    except Problem:
        tosa = None
    if "!tf_type" in text.partition(") -> ")[0]:
        return "handles"
    try:
        expected = interpret(Environment(module), "main", arrays)
    except Problem:
        return "not interpreted" if tosa is None else "compiled alone"
    if tosa is None:
        return "not compiled"
    try:
        found = interpret_tosa(tosa, tosa.function("main"), arrays)
    except Problem:
        return "not run"
    compare(found, expected, text)
    return "equal"


def compare(found: Sequence[Array], expected: Sequence[object], text: str) -> None:
    assert len(found) == len(expected)
    for mine, right in zip(found, expected):
        if not isinstance(right, np.ndarray):
            continue
        assert mine.shape == right.shape and mine.dtype == right.dtype, text
        if right.dtype.kind in "biu":
            assert (mine == right).all(), text
        else:
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(mine.astype(np.float64), right.astype(np.float64), 0.05, 0.02, err_msg=text)


PARTS = 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_operations_are_refused_or_computed_alike(part: int) -> None:
    """Thousands of them; no other error than a Problem."""
    found = collections.Counter(verdict(name, seed) for name in NAMES[part::PARTS] for seed in SEEDS)
    assert found["equal"] > 75 and found["refused"] > 100, found


@pytest.mark.long
def test_many_more_random_operations_are_refused_or_computed_alike() -> None:
    found = collections.Counter(verdict(name, seed) for name in NAMES for seed in range(1000, 1200))
    assert found["equal"] > 10_000, found


# ---- each rule of the registry by itself -------------------------------------------------------------------------------
WRONG = {"bool": ("3 : i64", '"x"', "[true]"), "int": ("1.5 : f32", '"x"', "true", "[1]"), "float": ('"x"', "true", "[1.0]"),
         "string": ("1 : i64", "true", "i32", '["x"]'), "list(int)": ("1 : i64", "[1.5]", '["x"]', '"x"', "true"),
         "list(float)": ("1.0 : f32", '["x"]'), "list(string)": ("[1]", '"x"')}
"""Values of other kinds than an attribute's."""


def allowed(text: str) -> bool:
    try:
        verify(read_module(text))
    except Problem:
        return False
    return True


def plain(name: str) -> tuple[Maker, list[str], list[str], dict[str, str]]:
    """An operation that the registry allows, whatever its shapes are, in parts."""
    for seed in range(100):
        maker = Maker(name, seed)
        maker.wild = False
        operands = [maker.operand(spec, i) for i, spec in enumerate(maker.specs(maker.definition["operands"]))]
        results = [maker.type(spec) for spec in maker.specs(maker.definition["results"])]
        attributes = {n: v for n, a in maker.definition["attributes"].items()
                      if a["kind"] in (*WRONG, "tensor") and n not in maker.counts and (v := maker.value(a)) is not None}
        if allowed(maker.written(operands, results, attributes)):
            return maker, operands, results, attributes
    raise AssertionError(f"nothing of {name} is allowed")


CALLING = ("tf.Case", "tf.If", "tf.PartitionedCall", "tf.StatefulPartitionedCall", "tf.StatelessCase", "tf.StatelessIf",
           "tf.StatelessWhile", "tf.While")


@pytest.mark.parametrize("part", range(PARTS))
def test_each_rule_of_the_registry_is_kept(part: int) -> None:
    """Attributes left out, of another kind, not among the values that are allowed or below the least; operands too few, too
    many, and of types that are not allowed."""
    count = 0
    for name in NAMES[part::PARTS]:
        if name in CALLING:
            continue
        maker, operands, results, attributes = plain(name)
        wrong: list[str] = []
        for key in attributes:
            attribute = maker.definition["attributes"][key]
            values = [*WRONG.get(attribute["kind"], ()), *(['"nothing"'] if attribute.get("allowed") else [])]
            if attribute["kind"] == "int" and "least" in attribute:
                values.append(f"{attribute['least'] - 1} : i64")
            wrong += [maker.written(operands, results, {**attributes, key: value}) for value in values]
            if not attribute.get("optional"):
                wrong.append(maker.written(operands, results, {k: v for k, v in attributes.items() if k != key}))
        if not any("*" in spec for spec in maker.definition["operands"]):
            wrong += [maker.written(operands[:-1], results, attributes)] if operands else []
            wrong += [maker.written([*operands, operands[0]], results, attributes)] if operands else []
            for number, spec in enumerate(maker.definition["operands"]):
                kinds = maker.definition["attributes"].get(spec, {}).get("allowed") or ([spec[1:]] if spec[0] == "=" else [])
                bad = next((e for e in ("i1", "f32", "i32", "ui16") if kinds and ELEMENTS[e] not in kinds), None)
                if bad is not None and not operands[number].startswith("tensor<!"):
                    changed = operands[number].rpartition("x")[0]
                    other = f"{changed}x{bad}>" if changed else f"tensor<{bad}>"
                    wrong.append(retyped(maker, operands, number, other, results, attributes))
        for text in wrong:
            assert not allowed(text), text
        count += len(wrong)
    assert count > 300


def retyped(maker: Maker, operands: list[str], number: int, type: str, results: list[str], attributes: dict[str, str]) -> str:
    """The operation with one operand as an argument of another type."""
    text = maker.written([*operands[:number], type, *operands[number + 1:]], results, attributes)
    name = f"%a{number}"
    lines = [line for line in text.split("\n") if not line.strip().startswith(f"{name} = ")]
    head = re.sub(rf"{name}: tensor<[^,)]*>(, )?", "", lines[0], count=1)
    lines[0] = head.replace("@main(", f"@main({name}: {type}" + (", " if "%a" in head else ""))
    return "\n".join(lines)


def test_the_table_has_every_operator_that_is_interpreted_or_compiled() -> None:
    """But those that are MLIR's or the executor's own."""
    known = {n for n in (*LEGALIZATIONS, *SPECIAL, *REFERENCES, *interpreter.SPECIAL) if n.startswith("tf.")}
    own = {n for n in known - set(definitions()) if not n.startswith("tf._")}
    assert own == {"tf.BooleanMask", "tf.CaseRegion", "tf.IfRegion", "tf.LegacyCall", "tf.WhileRegion", "tf.SetDiff1D"}


@pytest.mark.parametrize(("operation", "message"), [
    ('"tf.ConcatV2"() {N = 0 : i64} : () -> tensor<?xf32>', "takes more than 1 operand, found 0"),
    ('"tf.ConcatV2"(%i) : (tensor<2xi32>) -> tensor<?xf32>', "needs N >= 2"),
    ('"tf.BiasAdd"(%x, %x) {data_format = "HWCN"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>',
     "does not allow 'HWCN' as its data_format"),
    ('"tf.Reshape"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<?xf32>', "does not allow tensor<2xf32> as operand 1"),
    ('"tf.MaxPool"(%x) {ksize = [1, 2, 2, 1], padding = "SAME"} : (tensor<2xf32>) -> tensor<?xf32>', "has no strides"),
    ('"tf.AvgPool"(%x) {strides = [1, 2, 2, 1], padding = "SAME"} : (tensor<2xf32>) -> tensor<?xf32>', "has no ksize"),
    ('"tf.MaxPool"(%x) {ksize = [1, 2], strides = [1, 2, 2, 1], padding = "SAME"} : (tensor<2xf32>) -> tensor<?xf32>',
     "needs 4 numbers or more in ksize, found 2"),
    ('"tf.Shape"(%x) : (tensor<2xf32>) -> tensor<1xf32>', "does not allow tensor<1xf32> as result 0"),
    ('"tf.AddV2"(%x, %i) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>',
     "needs equal element types of operand 0 and operand 1"),
    ('"tf.MatMul"(%x, %x) {transpose_a = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>',
     "has true or false as its transpose_a"),
    ('"tf.Neg"() : () -> tensor<2xf32>', "takes 1 operand, found 0"),
    ('"tf.If"(%x) {then_branch = @main} : (tensor<2xf32>) -> tensor<?xf32>', "has no else_branch"),
    ('"tf.StatefulPartitionedCall"(%x) : (tensor<2xf32>) -> tensor<?xf32>', "has no f"),
])
def test_what_the_registry_does_not_allow_is_named(operation: str, message: str) -> None:
    text = (f"func.func @main(%x: tensor<2xf32>, %i: tensor<2xi32>) {{\n  %0 = {operation}\n  return\n}}")
    with pytest.raises(Problem, match=re.escape(message)) as found:
        tosaic.load(text)
    assert found.value.position is not None and found.value.position.line == 2


def test_what_is_derived_need_not_be_right() -> None:
    """As in MLIR: N and T are those of the operands, whatever the text says."""
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
      %a = "tf.Const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %0 = "tf.ConcatV2"(%x, %x, %a) {N = 7 : i64, T = "tfdtype$DT_FLOAT", Tidx = i64} :
          (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }"""
    assert tosaic.load(text)(np.array([1, 2], np.float32)).tolist() == [1, 2, 1, 2]


def test_the_interpreter_knows_legacy_calls() -> None:
    text = """func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.LegacyCall"(%x) {f = @g} : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    x = np.array([1, -2], np.float32)
    assert interpret(Environment(read_module(text)), "main", [x])[0].tolist() == [-1, 2]  # type: ignore[union-attr]
    assert tosaic.load(text).main(x).tolist() == [-1, 2]


# ---- defaults ----------------------------------------------------------------------------------------------------------
def written_default(value: object) -> str:
    """A default of the table as text."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : i64"
        case float():
            return f"{value!r} : f32"
        case list():
            return f"[{', '.join(map(written_default, value))}]"
        case _:
            return f'"{value}"'


@pytest.mark.parametrize("part", range(PARTS))
def test_an_attribute_may_be_left_out_where_tensorflow_has_a_default(part: int) -> None:
    """Of each operator: left out it computes what it computes with its default written."""
    count = 0
    for name in NAMES[part::PARTS]:
        if name in CALLING:
            continue
        maker, operands, results, attributes = plain(name)
        defaults = {key: a["default"] for key, a in maker.definition["attributes"].items() if "default" in a}
        needed = {key: value for key, value in attributes.items() if key not in defaults}
        full = {**needed, **{key: written_default(value) for key, value in defaults.items()}}
        short, long = (maker.written(operands, results, given) for given in (needed, full))
        assert allowed(short), short
        assert ending(short, maker.arrays) == ending(long, maker.arrays), short
        count += bool(defaults)
    assert count > 15


def ending(text: str, arrays: Sequence[Array]) -> tuple[str, ...]:
    """What a text comes to, interpreted (where it takes numbers alone) and lowered, without the places in messages."""
    module = read_module(text)
    found = []
    try:
        if "!tf_type" not in text.partition(") -> ")[0]:
            found.append(str([np.asarray(x).tolist() for x in interpret(Environment(module), "main", arrays)]))
    except Problem as problem:
        found.append(problem.message)
    try:
        tosa = to_tosa(module, "main")
        found.append(str([o.op for o in tosa.function("main").body.operations]))
    except Problem as problem:
        found.append(problem.message)
    return tuple(found)


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_the_table_is_that_of_the_registry() -> None:
    """All operators that are known here, in a process of its own, because TensorFlow's import is slow and takes long to end."""
    import tosaic.lowering.dialects.tf.definitions as table
    names = "\n".join(definitions())
    command = [sys.executable, str(Path(__file__).with_name("write_definitions.py"))]
    written = subprocess.run(command, input=names, capture_output=True, text=True, check=True).stdout
    found = json.loads(written)
    shipped = json.loads(Path(table.__file__).with_name(table.FILE).read_text("utf-8"))
    if found.pop("origin") != shipped.pop("origin"):
        pytest.skip("this TensorFlow is another version than the table's")
    assert {name: entry for name, entry in shipped.items() if name in definitions()} == found
