"""What files say and what the graph has then: names, order, constants, regions, variables, locations."""
from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tosaic.jit.models.load_model import load_model
from tosaic.lowering.flatbuffer.encode import encode
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.records import FileRecord
from tosaic.lowering.graph.graph import Block, Module
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, ShapeType, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module as read_text
from tosaic.runtime.variables import Context

from ..text.equality import equal_modules
from .files import ADD, file, graph, operator, problem, read, region, shape, tensor

DATA = pathlib.Path(__file__).parent / "data"


def spellings(block: Block) -> list[str]:
    return [o.op.name.removeprefix("tosa.") for o in block.operations]


def without_locations(block: Block) -> Block:
    return replace(block, operations=tuple(replace(o, location=None, regions=tuple(map(without_locations, o.regions)))
                                           for o in block.operations))


def test_a_file_of_another_writer_is_the_graph_that_it_was_made_from() -> None:
    """The file is tosa-opt's (tosa-tools 2026.8.0): padded data, variables as tensors of every block, regions by name. It
    was made by `tosa-opt X.mlir --tosa-serialize="tosa-flatbuffer-filename=X.tosa retain-graph-input-output-names"`."""
    path = DATA / "written_by_tosa_opt"
    found = read_module(path.with_suffix(".tosa").read_bytes())
    expected = read_text(path.with_suffix(".mlir").read_bytes())
    verify(found)
    assert [o.location for o in found.functions[0].body.operations[1:3]] == ['loc("hello")', 'loc("f.py":3:4)']
    assert [v.name for v in found.functions[0].arguments] == ["in-0", "TosaInput_0", "TosaInput_1"]

    def bare(module: Module) -> Module:
        function = module.functions[0]
        return replace(module, functions=(replace(function, body=without_locations(function.body), argument_attributes=(),
                                                  result_attributes=()),))

    assert equal_modules(bare(found), bare(expected))


def test_the_bytes_tell_that_a_file_is_a_flatbuffer(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(graph("a b", "c", *ADD))
    a, b = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    for source in (path, path.read_bytes(), path.open("rb")):
        assert load_model(source).main({"a": a, "b": b}).tolist() == [11, 22]


def test_operators_may_be_listed_in_any_order() -> None:
    block = read(graph("a", "d", tensor("a"), tensor("b"), tensor("c"), tensor("d"), operator("EXP", "c", "d"),
                       operator("ABS", "a", "b"), operator("ADD", "a b", "c"))).functions[0].body
    assert spellings(block) == ["abs", "add", "exp"]


def test_operators_that_need_not_move_stay_where_they_are_listed() -> None:
    parts = [tensor(n) for n in "abcde"]
    block = read(graph("a", "e", *parts, operator("EXP", "a", "b"), operator("ABS", "a", "c"), operator("ADD", "d c", "e"),
                       operator("CEIL", "b", "d"))).functions[0].body
    assert spellings(block) == ["exp", "abs", "ceil", "add"]


def test_constants_are_what_const_produces() -> None:
    """Data of an input are not its value: the input is."""
    data = np.array([1, 2], "<f4").tobytes()
    module = read(graph("a", "c k", tensor("a", data=data), tensor("k", data=data), tensor("c"),
                        operator("CONST", "", "k"), operator("ADD", "a k", "c")))
    function = module.functions[0]
    assert function.arguments[0].constant is None
    assert [v.constant is None for v in function.body.yields] == [True, False]
    assert np.array_equal(function.body.yields[1].constant, [1, 2])  # type: ignore[arg-type]


def test_shapes_of_rank_0_have_no_extents() -> None:
    empty = shape("s", 0, rank=0)
    for data in (empty, replace(empty, data=None)):
        module = read(graph("a", "b", tensor("a", (1,)), tensor("b", ()), data, operator("CONST_SHAPE", "", "s"),
                            operator("RESHAPE", "a s", "b")))
        value = module.functions[0].body.operations[0].results[0]
        assert value.type == ShapeType(0) and value.constant is not None and value.constant.shape == (0,)


def test_extents_of_shapes_have_64_bits() -> None:
    module = read(graph("a", "b", tensor("a", (6,)), tensor("b", (2, 3)), shape("s", 2, 3),
                        operator("CONST_SHAPE", "", "s"), operator("RESHAPE", "a s", "b")))
    constant = module.functions[0].body.operations[0].results[0].constant
    assert constant is not None and (constant.tolist(), constant.dtype.name) == ([2, 3], "int64")


def test_data_may_lie_behind_the_flatbuffer() -> None:
    numbers = np.arange(100, dtype="<i4")
    parts = (tensor("k", (100,), "i32", data=numbers.tobytes()), operator("CONST", "", "k"))
    record = FileRecord((1, 0, 2), (region("main", "", "k", *parts),))
    inside, behind = encode(record), encode(record, limit=600)
    assert behind.endswith(numbers.tobytes()) and inside != behind
    assert equal_modules(read(inside), read(behind))


def test_regions_are_tied_by_their_names() -> None:
    data = file(region("main", "c x", "y", tensor("c", (), "i1"), tensor("x"), tensor("y"),
                       operator("COND_IF", "c x", "y", then_graph="positive", else_graph="negative")),
                region("negative", "x", "z", tensor("x"), tensor("z"), operator("ABS", "x", "z")),
                region("positive", "x", "x", tensor("x")))
    then, otherwise = read(data).functions[0].body.operations[0].regions
    assert (spellings(then), spellings(otherwise)) == ([], ["abs"])


def test_a_region_may_be_named_twice() -> None:
    data = file(region("main", "c x", "y", tensor("c", (), "i1"), tensor("x"), tensor("y"),
                       operator("COND_IF", "c x", "y", then_graph="same", else_graph="same")),
                region("same", "x", "z", tensor("x"), tensor("z"), operator("ABS", "x", "z")))
    (operation,) = read(data).functions[0].body.operations
    assert [spellings(r) for r in operation.regions] == [["abs"], ["abs"]]
    assert operation.regions[0].yields[0] is not operation.regions[1].yields[0]


def test_regions_that_nothing_names_are_functions() -> None:
    data = file(region("main", "a b", "c", *ADD), region("other", "a b", "c", *ADD))
    assert [f.name for f in read(data).functions] == ["main", "other"]


@pytest.mark.parametrize("codes", ["IDENTITY IDENTITY", "VARIABLE_READ VARIABLE_WRITE"])
def test_variables_are_read_and_written_in_both_encodings(codes: str) -> None:
    get, put = codes.split()
    initial = np.array([1, 2], "<f4").tobytes()
    module = read(graph("x", "old", tensor("t0", data=initial, variable=True, variable_name="total"), tensor("x"),
                        tensor("old"), tensor("new"), operator(get, "t0", "old", "VARIABLE_READ"),
                        operator("ADD", "old x", "new"), operator(put, "new", "t0", "VARIABLE_WRITE")))
    (declaration,) = module.declarations
    assert (declaration.op.symbol, declaration.op.initial.tolist()) == ("total", [1, 2])  # type: ignore[attr-defined]
    assert spellings(module.functions[0].body) == ["variable_read", "add", "variable_write"]


def test_the_operator_variable_declares_one_too() -> None:
    module = read(graph("", "x", tensor("v"), tensor("x"), operator("VARIABLE", "", "v"),
                        operator("VARIABLE_READ", "v", "x")))
    assert [d.op.symbol for d in module.declarations] == ["v"]  # type: ignore[attr-defined]
    assert spellings(module.functions[0].body) == ["variable_read"]


def test_reads_and_writes_of_variables_keep_their_order() -> None:
    """The first read gives the old value, the second the new one, although nothing but the list says so."""
    v = tensor("v", (1,), data=np.array([5], "<f4").tobytes(), variable=True, variable_name="flatbuffer.order")
    data = graph("x", "old new", v, tensor("x", (1,)), tensor("y", (1,)), tensor("old", (1,)), tensor("new", (1,)),
                 operator("IDENTITY", "v", "old", "VARIABLE_READ"), operator("IDENTITY", "y", "v", "VARIABLE_WRITE"),
                 operator("IDENTITY", "v", "new", "VARIABLE_READ"), operator("ABS", "x", "y"))
    assert spellings(read(data).functions[0].body) == ["variable_read", "abs", "variable_write", "variable_read"]
    old, new = load_model(data).main.compile(context=Context("test"))(np.array([-7], np.float32))
    assert (old.tolist(), new.tolist()) == ([5], [7])


def test_a_variable_of_several_blocks_is_declared_once() -> None:
    v = tensor("v", variable=True, variable_name="shared", data=bytes(8))
    data = file(region("main", "c x", "y", v, tensor("c", (), "i1"), tensor("x"), tensor("y"),
                       operator("COND_IF", "c x", "y", then_graph="t", else_graph="e")),
                region("t", "x", "y", v, tensor("x"), tensor("y"), operator("IDENTITY", "v", "y", "VARIABLE_READ")),
                region("e", "x", "x", v, tensor("x")))
    assert len(read(data).declarations) == 1
    other = file(region("main", "", "", v), region("other", "", "", replace(v, data=np.ones(8, np.uint8))))
    assert "another initial value" in problem(other).message


@pytest.mark.parametrize(("text", "location"), [
    ("", None), ('loc("f.py":3:4)', 'loc("f.py":3:4)'), ("loc(unknown)", "loc(unknown)"),
    ('loc(callsite("a" at "b":1:2))', 'loc(callsite("a" at "b":1:2))'), ("conv_1", 'loc("conv_1")'),
    ('loc("a") "tosa.abs"(%0)', 'loc("loc(\\22a\\22) \\22tosa.abs\\22(%0)")'), ("loc((", 'loc("loc((")'),
    ("loc()", 'loc("loc()")'), ("é\n", 'loc("\\C3\\A9\\0A")')])
def test_a_location_is_kept_as_mlir_writes_it(text: str, location: str | None) -> None:
    module = read(graph("a b", "c", *ADD[:3], operator("ADD", "a b", "c", location=text)))
    assert module.functions[0].body.operations[0].location == location


def test_names_that_mlir_cannot_write_are_kept_beside() -> None:
    data = graph("serving:0 b", "c:0", tensor("serving:0"), tensor("b"), tensor("c:0"), operator("ADD", "serving:0 b", "c:0"))
    function = read(data).functions[0]
    assert function.argument_attributes == ({"tosa.tensor_name": "serving:0"}, {})
    assert function.result_attributes == ({"tosa.tensor_name": "c:0"},)
    assert [v.name for v in (*function.arguments, *function.body.yields)] == ["serving:0", "b", "c:0"]
    assert read(graph("a b", "c", *ADD)).functions[0].argument_attributes == ()


def test_an_extent_of_minus_one_is_unknown_only_where_an_input_has_one() -> None:
    dynamic = (tensor("a", (-1, 2)), tensor("b", (-1, 2)), operator("ABS", "a", "b"))
    assert read(graph("a", "b", *dynamic)).functions[0].result_types == (TensorType((None, 2), F32),)
    assert problem(graph("a", "b", tensor("a", (1, 2)), *dynamic[1:])).kind == "type"
    assert problem(graph("a", "b", tensor("a", (-2, 2)), *dynamic[1:])).kind == "shape"


def test_bounds_are_numbers_of_the_operand() -> None:
    def clamp(element: str, low: bytes, high: bytes) -> object:
        module = read(graph("a", "b", tensor("a", (2,), element), tensor("b", (2,), element),
                            operator("CLAMP", "a", "b", min_val=low, max_val=high, nan_mode=1)))
        op = module.functions[0].body.operations[0].op
        return op.min_val, op.max_val, op.nan_mode  # type: ignore[attr-defined]

    assert clamp("i8", b"\xff", b"\x05") == (-1, 5, "PROPAGATE")
    assert clamp("i16", b"\x00\x80" + bytes(6), b"\xff\x7f" + bytes(6)) == (-32768, 32767, "PROPAGATE")
    assert clamp("bf16", b"\x80\xbf", b"\x20\x41") == (-1, 10, "PROPAGATE")


@pytest.mark.parametrize(("name", "fields", "text"), [
    ("MAXIMUM", {"nan_mode": 2}, '{nan_mode = "IGNORE"}'),
    ("ARITHMETIC_RIGHT_SHIFT", {"round": 1}, "{round = true}"),
    ("CLAMP", {"min_val": bytes(8), "max_val": b"\0\0\x80?", "nan_mode": 1},
     '{min_val = 0.0 : f32, max_val = 1.0 : f32, nan_mode = "PROPAGATE"}'),
    ("TRANSPOSE_CONV2D", {"out_pad": (1, -2, 0, 0), "stride": (1, 2), "acc_type": 9},
     "{out_pad = array<i32: 1, -2, 0, 0>, stride = array<i32: 1, 2>, local_bound = false, acc_type = bf16}"),
    ("CONCAT", {"axis": 1}, "{axis = 1 : i32}")])
def test_an_operator_without_a_class_is_kept_and_printed(monkeypatch: pytest.MonkeyPatch, name: str,
                                                         fields: dict[str, Any], text: str) -> None:
    monkeypatch.delitem(OPERATORS, f"tosa.{name.lower()}")
    module = read(graph("a b", "c", *ADD[:3], operator(name, "a b", "c", **fields)))
    assert f'%c = "tosa.{name.lower()}"(%a, %b) <{text}>' in print_module(module)


def test_constants_share_the_memory_of_the_file() -> None:
    data = graph("", "k", tensor("k", (1024,), data=bytes(4096)), operator("CONST", "", "k"))
    constant = read_module(data).functions[0].body.yields[0].constant
    assert constant is not None and np.shares_memory(constant, np.frombuffer(data, np.uint8))
