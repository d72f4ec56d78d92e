"""Modules, functions, names of values, regions, files of several modules."""
from __future__ import annotations

import pytest
from tosaic.lowering.graph.types import F32, I8, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.attributes import Number, Unit
from tosaic.lowering.text.reader import read_module, read_modules
from tosaic.runtime.errors import Problem

from .equality import equal_modules

T = "tensor<2xf32>"
BODY = f"{{ return %a : {T} }}"
SPLIT = "%0:2 = \"x.split\"(%a) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)"
GENERIC = """"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<2xf32>, tensor<2xi8>) -> tensor<2xf32>, sym_name = "f",
      sym_visibility = "private", arg_attrs = [{x.y = 1 : i32}, {}], res_attrs = [{x.z}]}> ({
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xi8>):
    "func.return"(%a) : (tensor<2xf32>) -> ()
  }) {tf.entry} : () -> ()
}) {tfl.version = 3 : i32} : () -> ()
"""
CUSTOM = """module @m attributes {tfl.version = 3 : i32} {
  func.func private @f(%a: tensor<2xf32> {x.y = 1 : i32}, %b: tensor<2xi8>) -> (tensor<2xf32> {x.z})
      attributes {tf.entry} {
    return %a : tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("text", [GENERIC, CUSTOM, CUSTOM.replace("module", "builtin.module", 1),
                                  CUSTOM.replace("    return", "    func.return")])
def test_a_module_is_the_same_in_the_generic_and_the_custom_form(text: str) -> None:
    module = read_module(text)
    verify(module)
    assert equal_modules(module, read_module(CUSTOM))
    function = module.function("f")
    assert (module.name, module.attributes) == ("m", {"tfl.version": Number(3, module.attributes["tfl.version"].type)})
    assert [v.type for v in function.arguments] == [TensorType((2,), F32), TensorType((2,), I8)]
    assert function.argument_attributes[0].keys() == {"x.y"}
    assert function.argument_attributes[1] == {}
    assert function.result_attributes == ({"x.z": Unit.UNIT},)
    assert function.attributes == {"tf.entry": Unit.UNIT}
    assert function.is_private


def test_a_module_need_not_be_written() -> None:
    module = read_module(f"func.func @f(%a: {T}) -> {T} {BODY} func.func private @g(%a: {T}) -> ({T}) {BODY}")
    assert [(f.name, f.is_private) for f in module.functions] == [("f", False), ("g", True)]
    assert module.function().name == "f"


@pytest.mark.parametrize("text", ["", "\n// only a comment\n", "module {}", "module @n attributes {} {\n}"])
def test_a_module_may_be_empty(text: str) -> None:
    assert read_module(text).functions == ()


def test_functions_may_have_no_arguments_no_results_or_many() -> None:
    module = read_module(f"func.func @f() {{ return }} func.func @g(%a: {T}) -> () {{ return }}"
                         f"func.func @h(%a: {T}) -> ({T}, {T}) {{ return %a, %a : {T}, {T} }}"
                         f"func.func public @main(%a: {T}) -> {T} {BODY} func @old(%a: {T}) -> {T} {BODY}")
    verify(module)
    assert [len(f.result_types) for f in module.functions] == [0, 0, 2, 1, 1]


def test_functions_at_module_level_keep_their_order_apart_from_declarations() -> None:
    module = read_module(f'module {{ tosa.variable @a : {T} func.func @f() {{ return }} tosa.variable @b : {T} '
                         f'"tf.init"() {{x = 1 : i8}} : () -> () }}')
    assert [str(o.op.name) for o in module.declarations] == ["tosa.variable", "tosa.variable", ""]


def test_a_result_of_several_is_used_by_its_number() -> None:
    body = read_module(f"func.func @f(%a: {T}) -> ({T}, {T}, {T}) {{ {SPLIT} return %0#1, %0#0, %0 : {T}, {T}, {T} }}"
                       ).functions[0].body
    first, second = body.operations[0].results
    assert body.yields == (second, first, first)
    assert [v.name for v in (first, second)] == ["0#0", "0#1"]


@pytest.mark.parametrize("names", ["%x, %y", "%x:1, %y:1", "%x ,\n %y"])
def test_results_may_have_a_name_each(names: str) -> None:
    body = read_module(f"func.func @f(%a: {T}) -> {T} {{ {SPLIT.replace('%0:2', names)} return %y : {T} }}"
                       ).functions[0].body
    assert [v.name for v in body.operations[0].results] == ["x", "y"]
    assert body.yields == (body.operations[0].results[1],)


def test_results_may_have_no_name() -> None:
    body = read_module(f"func.func @f(%a: {T}) {{ tosa.abs %a : ({T}) -> {T} tosa.abs %a : ({T}) -> {T} return }}"
                       ).functions[0].body
    assert all(len(o.results) == 1 for o in body.operations)


@pytest.mark.parametrize("name", ["a", "0", "arg0", "_", "$x", "a.b", "a-b", "12", "a_b$c.1"])
def test_names_of_values_may_hold_these_characters(name: str) -> None:
    text = f"func.func @f(%{name}: {T}) -> {T} {{ return %{name} : {T} }}"
    assert read_module(text).functions[0].arguments[0].name == name


def test_a_region_may_define_a_name_that_is_used_around_it() -> None:
    text = f"""func.func @f(%c: tensor<i1>, %x: {T}) -> {T} {{
      %r = tosa.cond_if %c : tensor<i1> -> {T} {{
        %x = tosa.abs %x : ({T}) -> {T}
        tosa.yield %x : {T}
      }} else {{
        %y = tosa.abs %x : ({T}) -> {T}
        tosa.yield %y : {T}
      }}
      return %x : {T}
    }}"""
    module = read_module(text)
    verify(module)
    body = module.functions[0].body
    (conditional,) = body.operations
    then, other = conditional.regions
    assert then.operations[0].operands == other.operations[0].operands == (body.arguments[1],)
    assert then.yields == then.operations[0].results
    assert body.yields == (body.arguments[1],)


def test_names_of_one_function_are_not_seen_in_another() -> None:
    with pytest.raises(Problem, match="unknown value %b"):
        read_module(f"func.func @f(%b: {T}) {{ return }} func.func @g(%a: {T}) -> {T} {{ return %b : {T} }}")


def test_positions_name_the_source_and_count_from_one() -> None:
    module = read_module(CUSTOM, "dir/m.mlir")
    function = module.functions[0]
    assert str(module.position) == "dir/m.mlir:1:1"
    assert str(function.position) == "dir/m.mlir:2:21"
    assert str(function.arguments[1].position) == "dir/m.mlir:2:59"
    assert str(function.body.position) == "dir/m.mlir:3:29"
    assert str(function.body.terminator_position) == "dir/m.mlir:4:5"
    assert function.arguments[1].position is not None
    assert function.arguments[1].position.excerpt()[1].count("^") == len("%b")


def test_lines_may_end_as_on_windows() -> None:
    module = read_module(CUSTOM.replace("\n", "\r\n"))
    assert equal_modules(module, read_module(CUSTOM))
    assert str(module.functions[0].body.terminator_position) == "<text>:4:5"


def test_every_node_has_a_position() -> None:
    module = read_module(f"tosa.variable @v : {T} func.func @f(%a: {T}) -> {T} {{ {SPLIT} tosa.abs %a : ({T}) -> {T} "
                         f"return %0#1 : {T} }}")
    (function,) = module.functions
    operations = [*module.declarations, *function.body.walk()]
    nodes = [module, function, function.body, *operations, *function.arguments, *(r for o in operations for r in o.results)]
    assert all(node.position is not None for node in nodes)
    assert len({id(node.position.source) for node in nodes if node.position}) == 1


# Files

def test_a_line_splits_a_text_into_modules() -> None:
    text = ("// first\nmodule @a {}\n// -----\n\n// nothing\n\n// -----\n"
            f"func.func @b(%a: {T}) -> {T} {BODY}\n// -----\n")
    first, second = read_modules(text, "many.mlir")
    assert first.name == "a"
    assert str(second.functions[0].position) == "many.mlir:8:11"
    assert read_module(text.split("// -----")[0]).name == "a"


def test_a_problem_in_a_later_module_has_its_line_in_the_whole_text() -> None:
    with pytest.raises(Problem) as caught:
        read_modules("module {}\n// -----\nmodule {\n  func.func\n}")
    assert caught.value.position is not None
    assert caught.value.position.line == 5


def test_one_module_is_enough_for_a_text_of_several() -> None:
    assert len(read_modules("")) == 1
    assert len(read_modules("module {}")) == 1


def test_bytes_are_decoded() -> None:
    assert read_module('module @"größe" {}'.encode()).name == "größe"


@pytest.mark.parametrize(("data", "message", "help"), [
    (b"module {}\n  \xff", "is not UTF-8: byte 0xff at line 2, byte 3", None),
    (b"ML\xefR\x06rest", "is MLIR bytecode", "--text")])
def test_bytes_that_are_no_text_are_a_problem(data: bytes, message: str, help: str | None) -> None:
    with pytest.raises(Problem, match=message) as caught:
        read_module(data, "m.mlirbc")
    assert caught.value.kind == "file"
    assert help is None or help in (caught.value.help or "")


def test_half_a_surrogate_pair_is_a_problem() -> None:
    with pytest.raises(Problem, match="surrogate"):
        read_module('module @"\ud800" {}')
