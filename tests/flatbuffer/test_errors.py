"""Files that make no sense: what is wrong and where, in exact words."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.flatbuffer.records import BlockRecord, RegionRecord

from .files import ADD, file, graph, operator, problem, region, shape, tensor

A, B, C, PLUS = ADD
MAIN = "test.tosa: region main, block main"
UNPRODUCED = "is produced by no operator and no input of the block"


def branch(then: RegionRecord, *others: RegionRecord) -> bytes:
    """A graph whose branch for true is the region `then`."""
    return file(region("main", "c x", "y", tensor("c", (), "i1"), tensor("x"), tensor("y"),
                       operator("COND_IF", "c x", "y", then_graph="then", else_graph="else")),
                then, region("else", "x", "x", tensor("x")), *others)


FAULTS = {
    "an operand that is no tensor": (
        graph("a", "c", A, C, PLUS),
        f"{MAIN}, operator 0 ADD: error[symbol]: tosa.add: operand 1 is 'b', which no tensor of the block is called"),
    "an operand that nothing produces": (
        graph("a", "c", *ADD),
        f"{MAIN}, operator 0 ADD: error[symbol]: tosa.add: operand 1, 'b', {UNPRODUCED}"),
    "a result that is no tensor": (
        graph("a b", "c", A, B, PLUS),
        f"{MAIN}, operator 0 ADD: error[symbol]: tosa.add: result 0 is 'c', which no tensor of the block is called"),
    "an output that nothing produces": (
        graph("a b", "d", *ADD, tensor("d")), f"{MAIN}, output 0 d: error[symbol]: no operator produces 'd'"),
    "an input that is no tensor": (
        graph("a b x", "c", *ADD), f"{MAIN}, input 2 x: error[symbol]: no tensor of the block is called 'x'"),
    "an input twice": (graph("a b a", "c", *ADD), f"{MAIN}, input 2 a: error[symbol]: 'a' is an input twice"),
    "two producers": (
        graph("a b", "c", *ADD, operator("ABS", "a", "c")),
        f"{MAIN}, operator 1 ABS: error[symbol]: 'c' already is the result of operator 0"),
    "a result that is an input": (
        graph("a b c", "c", *ADD), f"{MAIN}, operator 0 ADD: error[symbol]: 'c' already is an input of the block"),
    "two tensors of a name": (
        graph("a b", "c", *ADD, tensor("a")),
        f"{MAIN}, tensor a: error[symbol]: 'a' is the name of two tensors or shapes of the block"),
    "a tensor and a shape of a name": (
        graph("a b", "c", *ADD, shape("a", 1)),
        f"{MAIN}, shape a: error[symbol]: 'a' is the name of two tensors or shapes of the block"),
    "a cycle": (
        graph("a", "b", A, B, C, operator("ADD", "a c", "b"), operator("ABS", "b", "c")),
        f"{MAIN}, operator 0 ADD: error[ssa]: the operands are never there: operators need each other's results"),
    "an extent below 1": (
        graph("a b", "c", tensor("a", (0,)), B, C, PLUS),
        f"{MAIN}, input 0 a: error[shape]: %a has no elements: tensor<0xf32>"),
    "a rank above 32": (
        graph("a", "a", tensor("a", (1,) * 33)),
        f"{MAIN}, input 0 a: error[level]: %a has rank 33, there may be 32 axes"),
    "a rank above all": (
        graph("a", "a", tensor("a", (1,) * 65)), f"{MAIN}, tensor a: error[level]: the tensor has rank 65"),
    "an element type UNKNOWN": (
        graph("a", "a", tensor("a", element=0)),
        f"{MAIN}, tensor a: error[type]: the type is UNKNOWN, which is no element type"),
    "an element type SHAPE": (
        graph("a", "a", tensor("a", element=10)),
        f"{MAIN}, tensor a: error[type]: the type is SHAPE, which is no element type"),
    "an element type of the future": (
        graph("a", "a", tensor("a", element=77)), f"{MAIN}, tensor a: error[type]: the type is 77, which is no element type"),
    "another shape than inferred": (
        graph("a b", "c", A, B, tensor("c", (3,)), PLUS),
        f"{MAIN}, operator 0 ADD: error[type]: the result of tosa.add is tensor<2xf32>, but tensor<3xf32> is declared"),
    "an enumeration UNKNOWN": (
        graph("a b", "c", A, B, C, operator("MAXIMUM", "a b", "c", nan_mode=0)),
        f"{MAIN}, operator 0 MAXIMUM: error[attribute]: nan_mode of tosa.maximum is UNKNOWN\n"
        "  help: it may be PROPAGATE or IGNORE"),
    "a bound of another size": (
        graph("a", "b", A, B, operator("CLAMP", "a", "b", min_val=b"\0\0", max_val=bytes(4), nan_mode=1)),
        f"{MAIN}, operator 0 CLAMP: error[attribute]: min_val of tosa.clamp: the data are 2 bytes, 1 elements of f32 take 4"),
    "another operator's attributes": (
        graph("a b", "c", A, B, C, operator("ADD", "a b", "c", "MAXIMUM", nan_mode=1)),
        f"{MAIN}, operator 0 ADD: error[attribute]: ADD has the attributes of MAXIMUM"),
    "a constant without data": (
        graph("", "a", A, operator("CONST", "", "a")), f"{MAIN}, operator 0 CONST: error[shape]: tosa.const: 'a' has no data"),
    "a constant with too few data": (
        graph("", "a", tensor("a", data=bytes(7)), operator("CONST", "", "a")),
        f"{MAIN}, operator 0 CONST: error[shape]: tosa.const: the data are 7 bytes, 2 elements of f32 take 8"),
    "a constant that is a shape": (
        graph("", "s", shape("s", 1), operator("CONST", "", "s")),
        f"{MAIN}, operator 0 CONST: error[type]: the result of tosa.const, 's', is !tosa.shape<1>"),
    "a shape with too few extents": (
        graph("", "s", shape("s", 1, rank=2), operator("CONST_SHAPE", "", "s")),
        f"{MAIN}, operator 0 CONST_SHAPE: error[shape]: tosa.const_shape: the shape's data are 8 bytes, 2 extents take 16"),
    "a constant with an operand": (
        graph("b", "a", A, B, operator("CONST", "b", "a")),
        f"{MAIN}, operator 0 CONST: error[type]: tosa.const has 1 operands and 1 results, it must have 0 and 1"),
    "a region that is not there": (
        file(region("main", "c x", "y", tensor("c", (), "i1"), tensor("x"), tensor("y"),
                    operator("COND_IF", "c x", "y", then_graph="t", else_graph=""))),
        f"{MAIN}, operator 0 COND_IF: error[symbol]: there is no region 't'"),
    "a region with other arguments": (
        branch(region("then", "", "z", tensor("z", data=bytes(8)), operator("CONST", "", "z"))),
        f"{MAIN}, operator 0 COND_IF: error[type]: tosa.cond_if: the arguments of the region for true are 0, the operands "
        "are 1"),
    "a fault in a region": (
        branch(region("then", "x", "z", tensor("x"))), "test.tosa: region then, block then, output 0 z: error[symbol]: "
        "no operator produces 'z'"),
    "a region without a block": (
        branch(RegionRecord("then", ())), "test.tosa: region then: error[model]: region 'then' has 0 blocks, one is needed"),
    "a region with two blocks": (
        branch(RegionRecord("then", (BlockRecord("b", (), (), (), (), ()),) * 2)),
        "test.tosa: region then: error[model]: region 'then' has 2 blocks, one is needed"),
    "two regions of a name": (
        file(region("main", "", ""), region("main", "", "")), "test.tosa: error[symbol]: there are two regions 'main'"),
    "no region": (file(), "test.tosa: error[model]: the file has no regions"),
    "a loop in itself": (
        file(region("main", "c", "y", tensor("c", (), "i1"), tensor("y", (), "i1"),
                    operator("COND_IF", "c c", "y", then_graph="main", else_graph="main"))),
        f"{MAIN}: error[level]: control flow is nested 7 deep, level 8K allows 6"),
    "a variable that is an input": (
        graph("v", "v", tensor("v", variable=True)),
        f"{MAIN}, input 0 v: error[variable]: the variable 'v' cannot be an input"),
    "a variable that is an operand": (
        graph("a", "c", A, tensor("b", variable=True), C, PLUS),
        f"{MAIN}, operator 0 ADD: error[symbol]: tosa.add: operand 1, 'b', {UNPRODUCED}"),
    "a variable that is a result": (
        graph("a b", "", A, B, tensor("c", variable=True), PLUS),
        f"{MAIN}, operator 0 ADD: error[variable]: the result is the variable 'c'\n"
        "  help: only the attribute VariableWriteAttribute writes one"),
    "a read of what is no variable": (
        graph("a", "b", A, B, operator("IDENTITY", "a", "b", "VARIABLE_READ")),
        f"{MAIN}, operator 0 IDENTITY: error[variable]: tosa.identity: 'a' is no variable"),
    "a read of another type": (
        graph("", "b", tensor("v", (3,), variable=True), B, operator("IDENTITY", "v", "b", "VARIABLE_READ")),
        f"{MAIN}, operator 0 IDENTITY: error[type]: the result of tosa.variable_read is tensor<3xf32>, but tensor<2xf32> is "
        "declared"),
    "a variable of two types": (
        file(region("main", "", "", tensor("v", variable=True)), region("f", "", "", tensor("v", (3,), variable=True))),
        "test.tosa: region f, block f, tensor v: error[variable]: variable 'v' is tensor<3xf32> here\n"
        f"  {MAIN}, tensor v: it is declared here"),
    "a block of an unknown shape": (
        graph("a", "a", tensor("a", (32,), "f4E2M1FN", scale=16, block=16)),
        f"{MAIN}, tensor a: error[type]: 16 is no shape of a block\n  help: 32 is"),
    "scales of another type": (
        graph("a", "a", tensor("a", (32,), "f4E2M1FN", scale=7, block=32)),
        f"{MAIN}, tensor a: error[type]: the scales are f32, they must be f8E8M0FNU"),
    "a block that is not full": (
        graph("a", "a", tensor("a", (33,), "f4E2M1FN", scale=16, block=32)),
        f"{MAIN}, tensor a: error[shape]: 32 elements share a scale, but the shape is [33]"),
    "a constant without scales": (
        graph("", "a", tensor("a", (32,), "f4E2M1FN", bytes(16), scale=16, block=32), operator("CONST", "", "a")),
        f"{MAIN}, operator 0 CONST: error[shape]: tosa.const: 'a' has no scales"),
    "a version of the past": (
        file(region("main", "", ""), version=(0, 80, 0)), "test.tosa: error[unsupported]: the file is for TOSA 0.80.0\n"
        "  help: versions 1.0 and 1.1 are understood"),
    "a feature of the future": (
        file(region("main", "", ""), features=6), "test.tosa: error[unsupported]: the file needs features that are not known, "
        "0x4\n  help: it was written for a newer reader"),
    "another kind of file": (
        b"\0\0\0\0TFL3" + bytes(9), "test.tosa: error[file]: this is no flatbuffer of TOSA: the bytes from 4 on are not TOSA"),
    "nothing behind the identifier": (
        b"\x08\0\0\0TOSA", "test.tosa: error[syntax]: byte 0 refers to a table at byte 8, the file has 8 bytes\n"
        "  help: the file is damaged, or it is no flatbuffer of TOSA"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_place(name: str) -> None:
    data, text = FAULTS[name]
    assert str(problem(data)) == text


def test_only_features_and_versions_are_unsupported() -> None:
    """A malformed graph is an error of the graph, never something that is only not done here."""
    unsupported = {name for name, (data, _) in FAULTS.items() if problem(data).unsupported}
    assert unsupported == {"a version of the past", "a feature of the future"}


def test_an_operator_that_does_not_exist_is_an_error() -> None:
    code = replace(PLUS.code, number=0)
    found = problem(graph("a b", "c", A, B, C, replace(PLUS, code=code, attribute=code)))
    assert (found.kind, found.message) == ("attribute", "operator 0 is not known")
    code = replace(PLUS.code, number=101)
    assert problem(graph("a b", "c", A, B, C, replace(PLUS, code=code))).message == "operator 101 is not known"


def test_long_names_are_shortened() -> None:
    name = "n" * 100_000
    text = str(problem(graph(name, name, A)))
    assert len(text) < 1000 and "nnn..." in text


def test_names_cannot_drive_a_terminal() -> None:
    name = "\x1b[31mred\u202e"
    for data in (graph(name, "", A), graph("", name, tensor(name)), graph(name, name, tensor(name, (0,)))):
        text = str(problem(data))
        assert "\x1b" not in text and "\u202e" not in text


def test_data_outside_of_the_file_are_an_error() -> None:
    data = bytearray(graph("", "k", tensor("k", (2,), "i32", data=np.arange(2, dtype="<i4").tobytes()),
                           operator("CONST", "", "k")))
    place = data.rindex(np.arange(2, dtype="<i4").tobytes())
    data[place - 4:place] = (1 << 31).to_bytes(4, "little")
    found = problem(bytes(data))
    assert (found.kind, str(found.position)) == ("syntax", f"{MAIN}, tensor 0")
    assert found.message == f"the data at byte {place - 4} has {1 << 31} entries, the file ends at byte {len(data)}"
