"""Lists and arrays of tensors as tensors: made, read and written at places that are known and that are not, in loops too."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .legalized import Graph, equal, numbered
from .three_ways import type_of

LIST = "tensor<!tf_type.variant<tensor<*xf32>>>"
HANDLE, FLOW = "tensor<2x!tf_type.resource<tensor<*xf32>>>", "tensor<f32>"
ANY = "tensor<*xf32>"
ROW = numbered(2, 3)


def reserved(g: Graph, count: int, *shape: int) -> Any:
    given = g.integers(*shape) if shape else g.constant(np.int32(-1))
    return g("TensorListReserve", given, g.constant(np.int32(count)), result=LIST)


def stacked(g: Graph, items: Any, *shape: int) -> Any:
    return g("TensorListStack", items, g.integers(*shape) if shape else g.constant(np.int32(-1)), num_elements=-1, result=ANY)


def index(g: Graph, i: int, known: bool) -> Any:
    return g.constant(np.int32(i)) if known else g.argument(np.int32(i))


# ---- lists outside of loops ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (-1, 3), ()])
def test_elements_are_set_and_read(shape: tuple[int, ...], known: bool) -> None:
    g = Graph()
    x, unknown = g.argument(ROW), g.constant(np.int32(-1))
    items = reserved(g, 4, *shape)
    for i in (2, 0, 2):
        x = g("AddV2", x, x)
        items = g("TensorListSetItem", items, index(g, i, known), x, result=LIST)
    g.check(stacked(g, items), *(g("TensorListGetItem", items, index(g, i, known), unknown, result=ANY) for i in (0, 1, 2)),
            g("TensorListLength", items, result="tensor<i32>"))


def test_a_list_that_was_never_set_is_zeros_of_the_shape_that_its_reader_gives() -> None:
    g = Graph()
    items = reserved(g, 3)
    g.check(stacked(g, items, 2, 3), g("TensorListGetItem", items, g.argument(np.int32(1)), g.integers(2, 5), result=ANY))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_elements_are_pushed_and_popped(count: int) -> None:
    g = Graph()
    shape = g.integers(2, 3)
    items = g("EmptyTensorList", shape, g.constant(np.int32(-1)), result=LIST)
    x = g.argument(ROW)
    for k in range(count):
        items = g("TensorListPushBack", items, g("AddV2", x, g.constant(np.float32(k))), result=LIST)
    whole = stacked(g, items)
    items, last = g("TensorListPopBack", items, shape, result=[LIST, ANY])
    items = g("TensorListPushBack", items, x, result=LIST)
    g.check(whole, last, stacked(g, items))


def test_what_is_pushed_becomes_one_concat() -> None:
    """Not one of a concat of a concat: reading an element would then cost as much as there are elements before it."""
    g = Graph()
    items = g("EmptyTensorList", g.integers(2, 3), g.constant(np.int32(-1)), result=LIST)
    for _ in range(6):
        items = g("TensorListPushBack", items, g.argument(ROW), result=LIST)
    items = g("TensorListSetItem", items, g.constant(np.int32(3)), g.argument(ROW), result=LIST)
    names = [o.op.name for o in g.tosa(stacked(g, items)).functions[0].body.operations]
    assert names.count("tosa.concat") == 1


def test_a_tensor_becomes_a_list_and_a_list_a_tensor() -> None:
    g = Graph()
    x = g.argument(numbered(4, 2, 3))
    items = g("TensorListFromTensor", x, g.integers(2, 3), result=LIST)
    places = g.argument(np.array([3, 1, 1], np.int32))
    none = g.constant(np.zeros(0, np.int64))
    flat, lengths = g("TensorListConcatV2", items, g.integers(-1, 3), none, result=[ANY, "tensor<*xi64>"])
    longer = g("TensorListResize", items, g.constant(np.int32(6)), result=LIST)
    both = g("TensorListConcatLists", items, longer, element_dtype="f32", result=LIST)
    g.check(stacked(g, items), g("TensorListGather", items, places, g.integers(2, 3), result=ANY), flat, lengths,
            g("TensorListElementShape", items, result="tensor<2xi32>"), stacked(g, longer), stacked(g, both),
            stacked(g, g("TensorListResize", items, g.constant(np.int32(2)), result=LIST)))


@pytest.mark.parametrize("known", [True, False])
def test_several_elements_are_set_at_once(known: bool) -> None:
    g = Graph()
    x = g.argument(numbered(3, 2))
    places = np.array([4, 0, 2], np.int32)
    given = g.constant(places) if known else g.argument(places)
    shape = g.integers(2)
    base = g("TensorListFromTensor", g.argument(-numbered(6, 2)), shape, result=LIST)
    found = [g("TensorListScatterIntoExistingList", base, x, given, result=LIST),
             g("TensorListScatterIntoExistingList", reserved(g, 5, 2), x, given, result=LIST),
             g("TensorListScatterV2", x, given, shape, g.constant(np.int32(7)), result=LIST),
             g("TensorListSplit", g.argument(numbered(6, 2)), g.integers(-1, 2), g.constant(np.array([2, 2, 2])), result=LIST)]
    if known:
        found.append(g("TensorListScatter", x, given, shape, result=LIST))
    g.check(*(stacked(g, items) for items in found))


def test_a_list_grows_by_what_is_set_behind_its_end() -> None:
    g = Graph()
    items = reserved(g, 0)
    for i in (0, 2, 1, 3):
        value = g.argument(ROW * i)
        items = g("TensorListSetItem", items, index(g, i, True), value, result=LIST, resize_if_index_out_of_bounds=True)
    g.check(stacked(g, items), g("TensorListLength", items, result="tensor<i32>"))


# ---- arrays ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", ["*", "2x3", "?x3"])
def test_arrays_of_tensors(shape: str) -> None:
    g = Graph()
    handle, flow = g("TensorArrayV3", g.constant(np.int32(4)), dtype="f32", element_shape=f"#tf_type.shape<{shape}>",
                     dynamic_size=False, clear_after_read=False, result=[HANDLE, FLOW])
    x, i = g.argument(ROW), g.argument(np.int32(2))
    first = g("TensorArrayWriteV3", handle, i, x, flow, result=FLOW)
    second = g("TensorArrayWriteV3", handle, g.constant(np.int32(0)), g("AddV2", x, x), first, result=FLOW)
    rest = g("TensorArrayScatterV3", handle, g.integers(1, 3), g.argument(-numbered(2, 2, 3)), second, result=FLOW)
    whole, some = (g("TensorArrayGatherV3", handle, places, rest, dtype="f32", element_shape="#tf_type.shape<*>", result=ANY)
                   for places in (g.integers(0, 1, 2, 3), g.argument(np.array([3, 0], np.int32))))
    flat, lengths = g("TensorArrayConcatV3", handle, rest, dtype="f32", element_shape_except0="#tf_type.shape<*>",
                      result=[ANY, "tensor<*xi64>"])
    split = g("TensorArraySplitV3", handle, g.argument(numbered(8, 3)), g.constant(np.full(4, 2)), flow, result=FLOW)
    g.check(whole, some, flat, lengths, g("TensorArrayReadV3", handle, i, rest, dtype="f32", result=ANY),
            g("TensorArraySizeV3", handle, rest, result="tensor<i32>"),
            g("TensorArrayReadV3", handle, g.constant(np.int32(1)), split, dtype="f32", result=ANY))


# ---- loops -----------------------------------------------------------------------------------------------------------
def loop(before: str, state: str, types: str, body: str, after: str, iterations: int = 4) -> str:
    """A loop over %i with a list or a flow beside it, which is %l in the body and %w#1 behind it."""
    return f"""
func.func @main(%x: tensor<4x2x3xf32>) -> tensor<*xf32> {{
  %zero = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
  %one = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
  %count = "tf.Const"() <{{value = dense<{iterations}> : tensor<i32>}}> : () -> tensor<i32>
  %places = "tf.Const"() <{{value = dense<[0, 1, 2, 3]> : tensor<4xi32>}}> : () -> tensor<4xi32>
  %any = "tf.Const"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
  %half = "tf.Const"() <{{value = dense<[-1, 3]> : tensor<2xi32>}}> : () -> tensor<2xi32>
  {before}
  %w:2 = "tf.WhileRegion"(%zero, {state}) <{{is_stateless = true, parallel_iterations = 10 : i64}}> ({{
    ^bb0(%i: tensor<i32>, %l: {types}):
      %more = "tf.Less"(%i, %count) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "tf.Yield"(%more) : (tensor<i1>) -> ()
    }}, {{
    ^bb0(%i: tensor<i32>, %l: {types}):
      %next = "tf.AddV2"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      {body}
      "tf.Yield"(%next, %n) : (tensor<i32>, {types}) -> ()
    }}) : (tensor<i32>, {types}) -> (tensor<i32>, {types})
  {after}
  return %y : tensor<*xf32>
}}"""


ROWS = f"""%items = "tf.TensorListFromTensor"(%x, %half) : (tensor<4x2x3xf32>, tensor<2xi32>) -> {LIST}
  %r = "tf.TensorListReserve"(%SHAPE, %count) : (TYPE, tensor<i32>) -> {LIST}"""
SET = f"""%row = "tf.TensorListGetItem"(%items, %i, %any) : ({LIST}, tensor<i32>, tensor<i32>) -> tensor<*xf32>
      %new = "tf.AddV2"(%row, %row) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %n = "tf.TensorListSetItem"(%l, %i, %new) : ({LIST}, tensor<i32>, tensor<*xf32>) -> {LIST}"""
STACK = f"""%y = "tf.TensorListStack"(%w#1, %any) <{{num_elements = -1 : i64}}> : ({LIST}, tensor<i32>) -> tensor<*xf32>"""
LAST = f"""%y = "tf.TensorListGetItem"(%w#1, %zero, %any) : ({LIST}, tensor<i32>, tensor<i32>) -> tensor<*xf32>"""
ARRAY = f"""%h:2 = "tf.TensorArrayV3"(%count) <{{dtype = f32, element_shape = #tf_type.shape<*>}}> :
    (tensor<i32>) -> ({HANDLE}, {FLOW})"""
WRITE = f"""%row = "tf.Gather"(%x, %i) : (tensor<4x2x3xf32>, tensor<i32>) -> tensor<*xf32>
      %n = "tf.TensorArrayWriteV3"(%h#0, %i, %row, %l) : ({HANDLE}, tensor<i32>, tensor<*xf32>, {FLOW}) -> {FLOW}"""
GATHER = f"""%y = "tf.TensorArrayGatherV3"(%h#0, %places, %w#1) <{{dtype = f32, element_shape = #tf_type.shape<*>}}> :
    ({HANDLE}, tensor<4xi32>, {FLOW}) -> tensor<*xf32>"""
PUSH = f"""%n = "tf.TensorListPushBack"(%l, %one_row) : ({LIST}, tensor<*xf32>) -> {LIST}"""


def compiled(text: str, *arrays: Any) -> Any:
    return Traced(to_tosa(read_module(text), "main", [type_of(a) for a in arrays]), "main").compile()(*arrays)


@pytest.mark.parametrize("text", [
    loop(ROWS.replace("%SHAPE", "%half").replace("TYPE", "tensor<2xi32>"), "%r", LIST, SET, STACK),
    loop(ROWS.replace("%SHAPE", "%any").replace("TYPE", "tensor<i32>"), "%r", LIST, SET, STACK),
    loop(ROWS.replace("%SHAPE", "%any").replace("TYPE", "tensor<i32>"), "%r", LIST, SET, LAST),
    loop(ARRAY, "%h#1", FLOW, WRITE, GATHER)], ids=["half a shape", "no shape", "one element", "array"])
def test_a_loop_fills_a_list_whose_elements_first_appear_in_it(text: str) -> None:
    x = numbered(4, 2, 3)
    expected = interpret(Environment(read_module(text)), "main", [x])
    equal([compiled(text, x)], expected, "native", 0)


def test_a_list_that_grows_in_a_loop_is_refused_with_the_reason() -> None:
    before = f"""%e = "tf.EmptyTensorList"(%any, %count) : (tensor<i32>, tensor<i32>) -> {LIST}
  %one_row = "tf.Gather"(%x, %one) : (tensor<4x2x3xf32>, tensor<i32>) -> tensor<*xf32>"""
    with pytest.raises(Problem, match="a list of 0 tensors at first"):
        compiled(loop(before, "%e", LIST, PUSH, STACK), numbered(4, 2, 3))


# ---- refused ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("build", "message"), [
    (lambda g: stacked(g, reserved(g, 3)), "the shape of the list's elements is not known"),
    (lambda g: stacked(g, g("TensorListReserve", g.integers(2), g.argument(np.int32(3)), result=LIST)),
     "the length of the list must be known when compiling"),
    (lambda g: stacked(g, g("TensorListSetItem", reserved(g, 2, 2), index(g, 2, True), g.argument(numbered(2)), result=LIST)),
     "element 2 of a list of 2 is set"),
    (lambda g: stacked(g, g("TensorListSetItem", reserved(g, 2, 2), index(g, 1, True), g.argument(numbered(3)), result=LIST)),
     r"a list of tensor<2xf32> cannot hold tensor<3xf32>"),
    (lambda g: stacked(g, g("TensorListSplit", g.argument(numbered(5, 2)), g.integers(-1, 2), g.constant(np.array([2, 3])),
                            result=LIST)), r"parts of lengths \[2, 3\]")])
def test_what_cannot_be_compiled_is_refused_with_the_reason(build: Any, message: str) -> None:
    g = Graph()
    with pytest.raises(Problem, match=message) as caught:
        g.tosa(build(g))
    assert caught.value.position is not None

