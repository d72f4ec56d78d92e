"""Shapes that a module leaves open follow from those of its inputs, and what is wrong behind them is found when loading."""
from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module, Operation, Value
from tosaic.lowering.graph.types import ShapeType, TensorType, Type
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.infer_shapes import infer_shapes, verified
from tosaic.lowering.text.printer import print_module
from tosaic.runtime.errors import Problem

from ..fuzz.generators import functions
from ..fuzz.generators.erase import erased, faulty, opened, types_of, wrong_types
from ..table.combinations import TABLE, VERSIONS
from ..table.signatures import case
from ..text.equality import equal_modules

Cases = Iterator[tuple[str, Module]]


def one_operator() -> Cases:
    """A graph of each operator of the table, with many combinations of types."""
    for name, signature in TABLE.items():
        combinations = signature.combinations(*VERSIONS, "more")
        for seed, types in enumerate(combinations[::max(1, len(combinations) // 4)]):
            made = case(name, types, seed)
            yield str(made), made.module


def several_operators() -> Cases:
    for seed in range(75):
        yield f"case({seed}, {2 + seed % 20})", functions.case(seed, 2 + seed % 20).module


def all_types(module: Module) -> list[Type]:
    return [t for f in module.functions for t in (*types_of(f.body), *f.result_types)]


@pytest.mark.parametrize("modules", [one_operator, several_operators])
def test_types_that_are_taken_out_follow(modules: Callable[[], Cases]) -> None:
    wrong: list[str] = []
    for name, module in modules():
        verify(module)
        rng = random.Random(name)
        for share in (0.4, 0.8, 1.0):
            try:
                if all_types(verified(erased(module, rng, share))) != all_types(module):
                    wrong.append(f"{name}: other types")
            except Problem as problem:
                wrong.append(f"{name}: {problem.message}")
    assert not wrong, "\n".join(wrong[:20])


def test_a_static_module_stays_the_same_object() -> None:
    module = functions.case(3, 9).module
    assert infer_shapes(module) is module
    assert verified(module) is module


def test_a_text_with_open_types_loads_as_the_static_one() -> None:
    for seed in range(30):
        module, rng = functions.case(seed, 2 + seed % 15).module, random.Random(seed)
        text = print_module(erased(module, rng, 0.8))
        assert equal_modules(module, tosaic.load(text).module), text


def test_a_file_with_unknown_ranks_loads_as_the_static_one() -> None:
    """What a .tosa says of ranks that are not known is read, too."""
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<?x3xf32> {
      %y = tosa.abs %x : (tensor<2x3xf32>) -> tensor<*xf32>
      %z = tosa.negate %y : (tensor<*xf32>) -> tensor<?x3xf32>
      return %z : tensor<?x3xf32> }""".replace("tosa.negate", "tosa.floor")
    model = tosaic.load(write_module(tosaic.load(text).module))
    assert model.main.outputs == ("tensor<2x3xf32>",)


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_compiled_code_of_a_text_with_open_types_gives_what_the_static_one_gives(seed: int) -> None:
    made, rng = functions.case(seed, 3 + seed % 11), random.Random(seed)
    models = [tosaic.load(print_module(m)) for m in (made.module, erased(made.module, rng, 0.9))]
    for call in made.calls:
        results = []
        for model in models:
            try:
                found = model.main.compile(context=tosaic.Context("open types"))(*call)
            except Problem as problem:
                results.append([problem.message])
                continue
            results.append([np.asarray(r).tobytes() for r in (found if isinstance(found, tuple) else (found,))])
        assert results[0] == results[1]


def test_a_fault_behind_open_types_is_found_at_its_operation() -> None:
    """Of static inputs beside open ones that the faulty operation does not depend on."""
    wrong: list[str] = []
    count = 0
    for seed in range(250):
        rng = random.Random(seed)
        fault = faulty(functions.case(seed, 2 + seed % 12).module, rng)
        if fault is None:
            continue
        count += 1
        line = fault.operation.position and fault.operation.position.line
        for less in (erased(fault.module, rng, 0.8), opened(fault.module, rng, fault.needs)):
            try:
                verified(less)
                wrong.append(f"{seed}: {fault.operation} is taken")
            except Problem as problem:
                if problem.position is None or problem.position.line != line:
                    wrong.append(f"{seed}: {fault.operation}: {problem}")
    assert count > 200
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:20])


# ---- one operator on operands with an open extent ----------------------------------------------------------------------
def outcome(operation: Operation, operands: Sequence[Value]) -> tuple[Type, ...] | Problem:
    try:
        return operation.op.types(operands, operation.regions)
    except Problem as problem:
        return problem


def with_extent(operands: Sequence[Value], which: int, axis: int, extent: int | None) -> list[Value]:
    shape = operands[which].tensor.shape or ()
    changed = TensorType((*shape[:axis], extent, *shape[axis + 1:]), operands[which].tensor.element)
    return [replace(v, type=changed) if n == which else v for n, v in enumerate(operands)]


def possible_extents(operands: Sequence[Value], which: int, axis: int) -> set[int]:
    """Extents among which there is one that fits, if any does: small ones, those of other operands, quotients of sizes."""
    shapes = [tuple(v.type.shape or ()) for v in operands if isinstance(v.type, TensorType)]
    lists = [v.constant.reshape(-1).tolist() for v in operands if isinstance(v.type, ShapeType) and v.constant is not None]
    sizes = [abs(math.prod(s)) for s in (*shapes, *lists)]
    own = operands[which].tensor.shape or ()
    rest = math.prod(n for d, n in enumerate(own) if n is not None and d != axis)
    others = {n for s in shapes for n in s if n is not None}
    return {*range(1, 36), *others, *(32 * n for n in others), *(s // rest for s in sizes if s % rest == 0 and s >= rest)}


@pytest.mark.parametrize("name", TABLE)
def test_a_rule_says_of_an_open_extent_what_holds_for_every_extent(name: str) -> None:
    """It fails where no extent fits, does not where one does, and what it knows of the results holds for all that fit."""
    combinations = TABLE[name].combinations(*VERSIONS, "more")
    for seed in range(5):
        operation = case(name, combinations[seed * 7 % len(combinations)], seed).operation
        if operation is None or operation.regions:
            continue
        rng = random.Random(seed)
        for is_wrong in (False, True, True):
            operands = list(operation.operands)
            if is_wrong and operands:
                number = rng.randrange(len(operands))
                types = wrong_types(operands[number].type, rng)
                operands[number] = replace(operands[number], type=types[0], constant=None) if types else operands[number]
            places = [(n, d) for n, v in enumerate(operands) if isinstance(v.type, TensorType) and v.constant is None
                      for d in range(v.tensor.rank)]
            if not places:
                continue
            which, axis = rng.choice(places)
            found = outcome(operation, with_extent(operands, which, axis, None))
            full = [outcome(operation, with_extent(operands, which, axis, n))
                    for n in sorted(possible_extents(operands, which, axis))]
            right = [types for types in full if not isinstance(types, Problem)]
            shown = f"{operation} of {[str(v.type) for v in with_extent(operands, which, axis, None)]}"
            if isinstance(found, Problem):
                assert not right, f"{shown} is refused: {found}"
                continue
            assert right, f"{shown} is taken, but not for any extent: {full[0]}"
            for types in right:
                assert all(map(holds, found, types)), f"{shown} gives {found}, and {types} for some extent"


def holds(partly: Type, known: Type) -> bool:
    """True if what a type says is so for another one, which says all."""
    if not isinstance(partly, TensorType) or not isinstance(known, TensorType):
        return partly == known
    shape = partly.shape or ()
    return partly.element == known.element and len(shape) == len(known.dims) and all(
        n in (None, m) for n, m in zip(shape, known.dims))


# ---- by hand -------------------------------------------------------------------------------------------------------------
STATIC = """func.func @main(%c: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<*xf32> {
  %r = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<2x3xf32>) -> tensor<*xf32> {
  ^bb0(%a: tensor<*xf32>):
    %y = tosa.add %a, %a : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    tosa.yield %y : tensor<*xf32>
  } else {
  ^bb0(%b: tensor<?x?xf32>):
    %y = tosa.abs %b : (tensor<?x?xf32>) -> tensor<?x?xf32>
    tosa.yield %y : tensor<?x?xf32>
  }
  return %r : tensor<*xf32>
}"""


def test_a_model_of_static_inputs_compiles_without_shapes_being_named() -> None:
    model = tosaic.load(STATIC)
    assert not model.main.is_dynamic
    assert model.main.outputs == ("tensor<2x3xf32>",)
    assert "?" not in str(model) and "*x" not in str(model)
    x = -np.ones((2, 3), np.float32)
    compiled = model.main.compile()
    np.testing.assert_array_equal(compiled(np.array(True), x), 2 * x)
    np.testing.assert_array_equal(model(np.array(False), x), -x)
    assert model.main.check([(np.array(True), x)]).agrees


def test_every_command_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(STATIC)
    for arguments in (["run"], ["check"], ["report"], ["show"], ["compile", "-o", str(tmp_path)], ["profile"]):
        assert main([arguments[0], str(path), *arguments[1:]]) == 0, capsys.readouterr().err
    for result in ("model.tosa", "again.mlir"):
        assert main(["convert", str(path), str(tmp_path / result)]) == 0, capsys.readouterr().err
    assert main(["run", str(tmp_path / "model.tosa")]) == 0


@pytest.mark.parametrize(("fault", "line", "words"), [
    ("%y = tosa.add %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>", 5, "shapes 3 and 4 do not broadcast"),
    ("%y = tosa.reduce_sum %d {axis = 1 : i32} : (tensor<?xf32>) -> tensor<?xf32>", 5, "axis 1 is outside"),
    ("%y = tosa.concat %a, %m {axis = 0 : i32} : (tensor<?xf32>, tensor<*xf32>) -> tensor<?xf32>", 5, "the rank of operand 1"),
    ("%y = tosa.add %d, %i : (tensor<?xf32>, tensor<3xi32>) -> tensor<?xf32>", 5, "operands of one type"),
    ("%y = tosa.concat %p, %q {axis = 1 : i32} : (tensor<?x3xf32>, tensor<?x4xf32>) -> tensor<?xf32>", 5, "but tensor<"),
    ("%y = tosa.concat %p, %q {axis = 0 : i32} : (tensor<?x3xf32>, tensor<?x4xf32>) -> tensor<?xf32>", 5, "axis 0 only"),
])
def test_a_static_fault_beside_an_open_operand_is_found_when_loading(fault: str, line: int, words: str) -> None:
    arguments = ", ".join(f"%{name}: tensor<{type}>" for name, type in (
        ("x", "3xf32"), ("w", "4xf32"), ("d", "?xf32"), ("i", "3xi32"), ("p", "?x3xf32"), ("q", "?x4xf32")))
    text = f"""func.func @main({arguments}) -> tensor<?xf32> {{
  %a = tosa.abs %x : (tensor<3xf32>) -> tensor<?xf32>
  %b = tosa.abs %w : (tensor<4xf32>) -> tensor<?xf32>
  %m = tosa.abs %q : (tensor<?x4xf32>) -> tensor<*xf32>
  {fault}
  %z = tosa.add %y, %d : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}}"""
    with pytest.raises(Problem, match=words) as caught:
        tosaic.load(text)
    assert caught.value.position is not None and caught.value.position.line == line


CONSTANTS = """%one = "tf.Const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %three = "tf.Const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>"""
TENSORFLOW = {
    "one after the other": """func.func @main(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
      %y = "tf.AddV2"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
      %z = "tf.Relu"(%y) : (tensor<*xf32>) -> tensor<?x?xf32>
      return %z : tensor<?x?xf32> }""",
    "islands": """func.func @main(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
      %g = tf_executor.graph {
        %a, %c = tf_executor.island wraps "tf.AddV2"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
        %b, %d = tf_executor.island wraps "tf.Relu"(%a) : (tensor<*xf32>) -> tensor<?x?xf32>
        tf_executor.fetch %b : tensor<?x?xf32>
      }
      return %g : tensor<?x?xf32> }""",
    "branches": """func.func @main(%x: tensor<2x3xf32>) -> tensor<*xf32> {
      %t = "tf.Const"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
      %r = "tf.If"(%t, %x) {then_branch = @t, else_branch = @e, is_stateless = true} :
        (tensor<i1>, tensor<2x3xf32>) -> tensor<*xf32>
      return %r : tensor<*xf32> }
    func.func private @t(%x: tensor<*xf32>) -> tensor<*xf32> {
      %y = "tf.AddV2"(%x, %x) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      return %y : tensor<*xf32> }
    func.func private @e(%x: tensor<?x3xf32>) -> tensor<?x?xf32> {
      %y = "tf.Neg"(%x) : (tensor<?x3xf32>) -> tensor<?x?xf32>
      return %y : tensor<?x?xf32> }""",
    "a loop": f"""func.func @main(%x: tensor<2x3xf32>) -> tensor<*xf32> {{
      {CONSTANTS}
      %r:2 = "tf.While"(%three, %x) {{cond = @c, body = @b, is_stateless = true}} :
        (tensor<i32>, tensor<2x3xf32>) -> (tensor<*xi32>, tensor<*xf32>)
      return %r#1 : tensor<*xf32> }}
    func.func private @c(%i: tensor<*xi32>, %x: tensor<*xf32>) -> tensor<*xi1> {{
      {CONSTANTS}
      %m = "tf.GreaterEqual"(%i, %three) : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
      return %m : tensor<*xi1> }}
    func.func private @b(%i: tensor<*xi32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) {{
      {CONSTANTS}
      %j = "tf.Sub"(%i, %one) : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
      %y = "tf.AddV2"(%x, %x) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      return %j, %y : tensor<*xi32>, tensor<*xf32> }}""",
}


@pytest.mark.parametrize("name", TENSORFLOW)
def test_shapes_of_tensorflow_follow_too(name: str) -> None:
    model = tosaic.load(TENSORFLOW[name])
    assert model.main.outputs == ("tensor<2x3xf32>",)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(model.main.compile()(x), 2 * x)
    np.testing.assert_array_equal(model(x), 2 * x)


def test_what_no_rule_gives_is_named_with_its_place() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<?xf32> {
      %0 = tosa.custom %x {domain_name = "d", operator_name = "o", implementation_attrs = ""} : (tensor<2xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32> }"""
    with pytest.raises(Problem, match="which does not follow from the inputs") as caught:
        tosaic.load(text).main.compile()
    assert caught.value.position is not None and caught.value.position.line == 2
    assert "call it with arrays" not in str(caught.value)
    with pytest.raises(Problem, match="the rank of %0 is not known"):
        tosaic.load(text.replace("tensor<?x", "tensor<*x"))


def test_a_variable_that_is_read_is_of_its_declared_type() -> None:
    text = """tosa.variable @shapes.v = dense<2.0> : tensor<2xf32>
    func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {
      %v = tosa.variable_read @shapes.v : tensor<?xf32>
      %0 = tosa.add %x, %v : (tensor<2xf32>, tensor<?xf32>) -> tensor<*xf32>
      return %0 : tensor<*xf32> }"""
    np.testing.assert_array_equal(tosaic.load(text)(np.ones(2, np.float32)), [3, 3])


def test_some_inputs_may_be_open_and_what_follows_without_them_is_known() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>, %d: tensor<?x3xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
      %0 = tosa.reduce_sum %x {axis = 0 : i32} : (tensor<2x3xf32>) -> tensor<*xf32>
      %1 = tosa.add %d, %0 : (tensor<?x3xf32>, tensor<*xf32>) -> tensor<*xf32>
      return %0, %1 : tensor<*xf32>, tensor<*xf32> }"""
    model = tosaic.load(text)
    assert model.main.outputs == ("tensor<1x3xf32>", "tensor<?x3xf32>")
    x, d = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    first, second = model(x, d)
    np.testing.assert_array_equal(first, [[2, 2, 2]])
    np.testing.assert_array_equal(second, 3 * d)
