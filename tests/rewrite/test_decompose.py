"""Block-scaled tensors as two tensors each: what the rewrite keeps, makes, and refuses."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.inputs import gather_inputs
from tosaic.jit.stages import Traced, prepared
from tosaic.lowering.graph.block_scaled_arrays import joined, joined_all, split, split_all
from tosaic.lowering.graph.graph import Block, BlockBuilder, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F4E2M1, F8E4M3, F8E8M0, F32, I1, I32, MXINT8, TensorType, block_scaled
from tosaic.lowering.rewrite.decompose import decompose
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import interpret

COMPOSITE = block_scaled(F4E2M1)
TYPE = TensorType((2, 64), COMPOSITE)


def op(builder: BlockBuilder, name: str, *operands: Value, **attributes: object) -> Value:
    return builder.add(OPERATORS[f"tosa.{name}"](**attributes), *operands)[0]


def module(block: Block) -> Module:
    return Module((Function("main", block, tuple(v.type for v in block.yields)),))


def records(seed: int, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scales = rng.integers(120, 134, (*shape[:-1], shape[-1] // 32), np.uint8)
    return joined(rng.integers(0, 16, shape, np.uint8), scales, COMPOSITE)


def assert_same(m: Module, *arrays: np.ndarray) -> None:
    """Compiled code and the interpreter on the graph as it was give the same."""
    function = m.function("main")
    expected = interpret(m, "main", arrays)
    found = Traced(m, "main").compile()(*split_all(arrays, [a.type for a in function.arguments]))
    results = joined_all(found if isinstance(found, tuple) else (found,), [y.type for y in function.body.yields])
    assert [r.tobytes() for r in results] == [e.tobytes() for e in expected]


def test_a_module_without_block_scaled_tensors_stays_the_same_object() -> None:
    builder = BlockBuilder()
    x = builder.argument(TensorType((2, 32), F8E4M3))
    m = module(builder.finish(op(builder, "reverse", x, axis=0)))
    assert decompose(m) is m


def test_arguments_and_results_become_values_and_scales_with_their_names() -> None:
    builder = BlockBuilder()
    x = builder.argument(TYPE, "x")
    m = module(builder.finish(op(builder, "identity", x), x))
    attributes = ({"tosa.tensor_name": "the x", "a.b": 1},)
    m = replace(m, functions=(replace(m.functions[0], argument_attributes=attributes),))
    function = decompose(m).function("main")
    values, scales = TensorType((2, 64), F4E2M1), TensorType((2, 2), F8E8M0)
    assert [(a.name, a.type) for a in function.arguments] == [("x", values), ("x_scale", scales)]
    assert function.argument_attributes == ({"tosa.tensor_name": "the x", "a.b": 1},
                                            {"tosa.tensor_name": "the x_scale", "a.b": 1})
    assert function.result_types == (values, scales, values, scales)
    assert [v.type for v in function.body.yields] == [values, scales, values, scales]
    traced = Traced(m, "main")
    assert traced.inputs == (f"x: {values}", f"x_scale: {scales}") and traced.outputs == tuple(
        map(str, (values, scales, values, scales)))


def test_no_value_of_a_prepared_module_is_block_scaled() -> None:
    builder = BlockBuilder()
    x = builder.argument(TYPE)
    y = op(builder, "cast", x, to=F32)
    found = prepared(module(builder.finish(op(builder, "cast", y, to=block_scaled(MXINT8)))))
    types = [r.type for o in found.function("main").body.walk() for r in o.results]
    assert all(t.element.kind != "block_scaled" for t in types if isinstance(t, TensorType))


def test_a_value_that_is_used_twice_is_brought_to_f32_once() -> None:
    builder = BlockBuilder()
    x = builder.argument(TYPE)
    m = module(builder.finish(op(builder, "cast", x, to=F32), op(builder, "exp", op(builder, "cast", x, to=F32))))
    names = [o.op.name for o in decompose(m).function("main").body.operations]
    assert names.count("tosa.cast_from_block_scaled") == 1


@pytest.mark.parametrize("condition", [False, True])
def test_regions_take_and_give_block_scaled_values(condition: bool) -> None:
    def region(axis: int) -> Block:
        inner = BlockBuilder(f"axis{axis}")
        value = inner.argument(TYPE)
        return inner.finish(op(inner, "reverse", value, axis=axis), op(inner, "reverse", outer, axis=axis))

    builder = BlockBuilder()
    flag, x, outer = builder.argument(TensorType((1,), I1)), builder.argument(TYPE), builder.argument(TYPE)
    results = builder.add(OPERATORS["tosa.cond_if"](), flag, x, regions=(region(0), region(1)))
    assert_same(module(builder.finish(*results)), np.array([condition]), records(0, 2, 64), records(1, 2, 64))


def test_a_loop_carries_block_scaled_values() -> None:
    test, body, builder = BlockBuilder("t"), BlockBuilder("b"), BlockBuilder()
    number, carried = TensorType((1,), I32), TYPE
    i, _ = test.argument(number), test.argument(carried)
    three = op(test, "const", values=np.array([3], np.int32))
    condition = test.finish(op(test, "greater", three, i))
    i, x = body.argument(number), body.argument(carried)
    one = op(body, "const", values=np.array([1], np.int32))
    yields = op(body, "add", i, one), op(body, "reverse", x, axis=1)
    loop = body.finish(*yields)
    start, first = builder.argument(number), builder.argument(carried)
    results = builder.add(OPERATORS["tosa.while_loop"](), start, first, regions=(condition, loop))
    for i in range(5):
        assert_same(module(builder.finish(*results)), np.array([i], np.int32), records(2, 2, 64))


def test_a_variable_cannot_be_block_scaled() -> None:
    builder = BlockBuilder()
    x = builder.argument(TYPE)
    m = module(builder.finish(op(builder, "identity", x)))
    variable = Operation(OPERATORS["tosa.variable"](symbol="v", type=TYPE, initial=None), (), ())
    with pytest.raises(tosaic.Problem, match="a variable cannot be block-scaled"):
        decompose(replace(m, declarations=(variable,)))


def test_an_operator_that_takes_any_type_but_no_blocks_is_refused() -> None:
    builder = BlockBuilder()
    x, index = builder.argument(TensorType((1, 3, 32), COMPOSITE)), builder.argument(TensorType((1, 2), I32))
    m = module(builder.finish(op(builder, "gather", x, index)))
    with pytest.raises(tosaic.Problem, match=r"tosa.gather does not take block-scaled tensors"):
        Traced(m, "main").lower()


def test_a_dynamic_block_scaled_tensor_is_refused_where_arithmetic_needs_its_extents() -> None:
    builder = BlockBuilder()
    x = builder.argument(TensorType((None, 64), COMPOSITE))
    m = module(builder.finish(op(builder, "cast", x, to=F32)))
    with pytest.raises(tosaic.Problem, match="dynamic shape"):
        decompose(m)


def test_the_cross_check_takes_values_and_scales() -> None:
    builder = BlockBuilder()
    x = builder.argument(TYPE)
    y = op(builder, "exp", op(builder, "cast", x, to=F32))
    m = module(builder.finish(op(builder, "cast", y, to=COMPOSITE)))
    found = Traced(m, "main").check([split(records(3, 2, 64), COMPOSITE)])
    assert found.agrees and found.operators > 5


def test_random_inputs_of_the_command_line_are_values_and_finite_scales() -> None:
    builder = BlockBuilder()
    x = builder.argument(TensorType((8, 64), block_scaled(MXINT8)), "x")
    m = module(builder.finish(op(builder, "cast", x, to=F32)))
    data, scale = gather_inputs(Traced(m, "main").interface, [], 0)
    assert data.dtype == np.int8 and data.shape == (8, 64) and data.min() < -100 and data.max() > 100
    numbers = scale.astype(np.float32)
    assert scale.shape == (8, 2) and (numbers > 0).all() and (numbers < 100).all()


def test_the_rewritten_graph_is_text_that_reads_back() -> None:
    builder = BlockBuilder()
    x = builder.argument(TensorType((2, 64), F32))
    m = decompose(module(builder.finish(op(builder, "cast", x, to=COMPOSITE))))
    text = print_module(m)
    assert print_module(read_module(text)) == text and '"tosaic.block_scale"' in text


def test_joined_refuses_scales_that_do_not_fit() -> None:
    with pytest.raises(tosaic.Problem, match=r"scales of shape \[2, 1\] do not fit values of shape \[2, 64\]"):
        joined(np.zeros((2, 64), np.uint8), np.zeros((2, 1), np.uint8), COMPOSITE)
    with pytest.raises(tosaic.Problem, match="holds no codes"):
        joined(np.zeros((2, 64), np.float32), np.zeros((2, 2), np.uint8), COMPOSITE)


def test_split_undoes_joined() -> None:
    x = records(4, 3, 5, 96)
    data, scale = split(x, COMPOSITE)
    assert data.shape == (3, 5, 96) and scale.shape == (3, 5, 3)
    assert joined(data, scale, COMPOSITE).tobytes() == x.tobytes()
