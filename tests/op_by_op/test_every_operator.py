"""Every operator of TOSA by its name, op by op, natively and in the reference handler, on the graphs that the table of
operators draws (`tests/table`): what it gives is what its reference gives."""
from __future__ import annotations

import dataclasses
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs
from tosaic.lowering.graph.graph import Operation
from tosaic.lowering.graph.types import BY_STORAGE, Array, ElementType, ShapeType, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.op_by_op.chain import Chain

from ..table.bounds import limits
from ..table.combinations import TABLE, Types
from ..table.property import check_result
from ..table.signatures import Case, case

ELSEWHERE = {"cond_if", "while_loop", "variable", "variable_read", "variable_write", "custom", "yield"}
"""Operators with regions, effects or implementations, which have tests of their own below, and the end of a region."""
NAMES = sorted(set(TABLE) - ELSEWHERE)
MOST = 3
"""Combinations of types that are tried of each operator."""


def has_dtypes(operation: Operation) -> bool:
    """True if NumPy's dtypes say all types: an array of int8 is one of i8, never of i4; no array is block-scaled."""
    types = [v.type for v in (*operation.operands, *operation.results)]
    return all(isinstance(t, ShapeType) or (isinstance(t, TensorType) and type(t.element) is ElementType
                                            and BY_STORAGE.get(t.element.storage) == t.element) for t in types)


def attributes_of(operation: Operation) -> OpAttrs:
    """The operator's attributes as a client sets them."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(operation.op):  # type: ignore[arg-type]
        value = getattr(operation.op, field.name)
        if isinstance(value, ElementType) and operation.op.name != "tosa.const":
            found[field.name] = value.dtype
        elif value is not None and not (operation.op.name == "tosa.const" and field.name == "to"):
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return OpAttrs(found)


def executed(rt: tosaic.CoreRuntime, name: str, arrays: list[Array], attributes: OpAttrs, handler: str,
             count: int) -> list[Array]:
    results: list[Any] = [None] * count
    rt.execute(f"tosa.{name}", handler, None, [rt.tensor(a) for a in arrays], attributes, results)
    return [r.get() for r in results]


def cases(name: str) -> list[Case]:
    """Cases of one operator whose types NumPy has."""
    rows: tuple[Types, ...] = TABLE[name].combinations("1.0", "1.1", "more")
    drawn = (case(name, types, seed) for types in random.Random(name).sample(rows, len(rows)) for seed in range(2))
    found = []
    for made in drawn:
        if made.operation is not None and has_dtypes(made.operation) and made.work <= 100_000:
            found.append(made)
        if len(found) == MOST:
            break
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_gives_what_its_reference_gives(rt, name):
    made = cases(name)
    if not made:
        pytest.skip(f"NumPy has no dtype for any combination of types of {name}")
    for each in made:
        operation, operands = each.operation, each.operands
        assert operation is not None
        with np.errstate(all="ignore"):
            found = operation.op.reference(*operands)
            bounds = limits(operation, operands) if operands else None
        right = [np.asarray(r) for r in (found if isinstance(found, tuple) else (found,))]
        for handler in ("cpu", "reference"):
            results = executed(rt, name, operands, attributes_of(operation), handler, len(right))
            for number, (a, e) in enumerate(zip(results, right, strict=True)):
                check_result(a, e, bounds[number] if bounds else None, f"{each} on {handler}")


def test_operators_that_numpy_has_no_types_for_are_few():
    assert {name for name in NAMES if not cases(name)} <= {
        "cast_from_block_scaled", "cast_to_block_scaled", "conv2d_block_scaled", "matmul_t_block_scaled"}  # tested below


X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("handler", ["cpu", "reference"])
@pytest.mark.parametrize("p", [True, False])
def test_cond_if_takes_its_graphs_as_functions(rt, handler, p):
    rt.use(handler)
    first, second = rt.run("tosa.cond_if", np.array(p), X, X + 1, then_graph=lambda x, y: (x + y, x),
                           else_graph=lambda x, y: (y, y - x), outputs=2)
    expected = (2 * X + 1, X) if p else (X + 1, np.ones(4, np.float32))
    assert np.array_equal(first.get(), expected[0]) and np.array_equal(second.get(), expected[1])


def test_while_loop_takes_its_graphs_as_functions(rt):
    for handler in ("cpu", "reference"):
        rt.use(handler)
        for n in (0, 1, 5):
            count, x = rt.run("tosa.while_loop", np.int32(n), X, cond_graph=lambda n, x: n > 0,
                              body_graph=lambda n, x: (n - 1, x * 2), outputs=2)
            assert count.get() == 0 and np.array_equal(x.get(), X * 2**n)


@pytest.mark.parametrize("handler", ["cpu", "reference"])
@pytest.mark.parametrize("name", ["tf.If", "tf.StatelessIf"])
@pytest.mark.parametrize("p", [True, False, np.float32(0.5), np.int32(0)])
def test_tensorflow_s_if_takes_bools_and_numbers(rt, handler, name, p):
    rt.use(handler)
    first, second = rt.run(name, np.array(p), X, X + 1, then_branch=lambda x, y: (x + y, x),
                           else_branch=lambda x, y: (y, y - x), outputs=2)
    expected = (2 * X + 1, X) if p else (X + 1, np.ones(4, np.float32))
    assert np.array_equal(first.get(), expected[0]) and np.array_equal(second.get(), expected[1])


@pytest.mark.parametrize("name", ["tf.While", "tf.StatelessWhile"])
@pytest.mark.parametrize("test", [lambda n, x: n > 0, lambda n, x: n], ids=["a bool", "a number"])
def test_tensorflow_s_while_takes_bools_and_numbers(rt, name, test):
    for n in (0, 1, 5):
        count, x = rt.run(name, np.int32(n), X, cond=test, body=lambda n, x: (n - 1, x * 2), outputs=2)
        assert count.get() == 0 and np.array_equal(x.get(), X * 2**n)


@pytest.mark.parametrize(("name", "meant"), [
    ("tf.Addv2", "tf.AddV2"), ("AddV2", "tf.AddV2"), ("matmull", "matmul"), ("tosa.reduce_sums", "tosa.reduce_sum"),
    ("tf.MatMull", "tf.MatMul"), ("TF.WHILE", "tf.While"), ("an.operationn", "an.operation")])
def test_an_unknown_operation_suggests_the_one_that_was_meant(rt, name, meant):
    rt.register("an.operation", lambda call: X)
    with pytest.raises(Problem, match="was not supported") as caught:
        rt.run(name, X, X)
    assert f"did you mean {meant}?" in str(caught.value)


def test_an_operation_that_is_like_no_other_suggests_none(rt):
    with pytest.raises(Problem, match="was not supported") as caught:
        rt.run("no.such", X)
    assert "did you mean" not in str(caught.value)


def test_a_graph_may_be_a_recorded_region(rt):
    x = rt.tensor(X)
    with rt.capture() as region:
        y = x * 2 + 1
    double = region.function(y, inputs=[x])
    for p in (True, False):
        found = rt.run("tosa.cond_if", np.array(p), X, then_graph=double, else_graph=lambda x: x)
        assert np.array_equal(found.get(), X * 2 + 1 if p else X)


def test_graphs_that_disagree_or_are_none_are_errors_at_the_callers_line(rt):
    for graphs, message in (
            ({"then_graph": lambda x: x.sum(), "else_graph": lambda x: x}, "result 0 of cond"),
            ({"then_graph": lambda x: x}, "else_graph"), ({"then_graph": "f", "else_graph": len}, "no function of tensors"),
            ({"then_graph": lambda x, y: x, "else_graph": lambda x: x}, "tosa.cond_if")):
        with pytest.raises(Problem, match=message) as caught:
            rt.run("tosa.cond_if", np.array(True), X, **graphs)
        assert caught.value.position is not None and caught.value.position.source.name == __file__


def test_a_graph_with_a_variable_is_refused(rt):
    variable = tosaic.Variable("opbyop_in_graph", 1.0)
    with pytest.raises(Problem, match="uses variable opbyop_in_graph"):
        rt.run("tosa.cond_if", np.array(True), X, then_graph=lambda x: x + variable.read(), else_graph=lambda x: x)


def test_variables_are_declared_read_and_written_in_the_order_of_their_chain(rt):
    chain: Any = Chain.ready()

    def effect(operator: str, *arguments: Any, results: int = 0, **attributes: Any) -> list[Any]:
        nonlocal chain
        found: list[Any] = [None] * results
        chain = rt.execute(operator, "cpu", None, list(arguments), OpAttrs(attributes), found, chain)
        return found

    effect("tosa.variable", sym_name="v", initial_value=X)
    before, = effect("tosa.variable_read", results=1, name="v")
    effect("tosa.variable", sym_name="v", initial_value=X + 9)
    effect("tosa.variable_write", rt.tensor(X + 1), name="v")
    after, = effect("tosa.variable.read", results=1, name="v")
    effect("tosa.variable", sym_name="w", type=np.dtype(np.int8), var_shape=[2])
    assert np.array_equal(before.get(), X) and np.array_equal(after.get(), X + 1)
    chain.wait()
    assert [(s.name, s.type, s.is_written) for s in rt.context.list()] == [
        ("v", "tensor<4xf32>", True), ("w", "tensor<2xi8>", False)]


@pytest.mark.parametrize("name, arguments, attributes, message", [
    ("tosa.variable_read", [], {"name": "none"}, "there is no variable none"), ("tosa.variable_read", [], {}, "missing 'name'"),
    ("tosa.variable_write", [X], {"name": "none"}, "there is no variable none"),
    ("tosa.variable_write", [X[:2]], {"name": "v"}, "must be tensor<4xf32>"),
    ("tosa.variable_write", [], {"name": "v"}, "takes 1 arguments, not 0"),
    ("tosa.variable", [], {"sym_name": "v"}, "neither an initial value nor a type and a shape"),
    ("tosa.variable", [], {"sym_name": "v", "type": np.dtype(np.int8), "var_shape": [4]},
     "variable v is declared as tensor<4xi8>"),
    ("tosa.variable", [], {"sym_name": "u", "type": np.dtype(np.int8), "initial_value": X}, "its initial value tensor<4xf32>")])
def test_a_wrong_effect_on_a_variable_is_an_error(rt, name, arguments, attributes, message):
    rt.run("tosa.variable", sym_name="v", initial_value=X, outputs=0)
    with pytest.raises(Problem, match=message):
        rt.run(name, *arguments, outputs=1 if name.endswith("read") else 0, **attributes)


def test_a_variable_that_has_not_been_written_is_a_fault(rt):
    rt.run("tosa.variable", sym_name="v", type=np.dtype(np.float32), var_shape=[4], outputs=0)
    with pytest.raises(Problem, match="variable v has not been written"):
        rt.run("tosa.variable_read", name="v").get()


def test_variables_are_those_of_graphs_in_the_same_context(rt):
    from tosaic.jit.stages import Traced
    from tosaic.lowering.text.reader import read_module
    module = read_module("func.func @main() -> tensor<4xf32> {\n  %0 = tosa.variable_read @v : tensor<4xf32>\n"
                         "  return %0 : tensor<4xf32>\n}")
    read = Traced(module, "main").compile(context=rt.context)
    rt.run("tosa.variable", sym_name="v", initial_value=X, outputs=0)
    assert np.array_equal(read(), X)
    rt.run("tosa.variable_write", X + 1, name="v", outputs=0)
    assert np.array_equal(read(), X + 1)


def implementation(factor: float) -> None:
    """Register a custom operator that multiplies."""
    @tosaic.custom("opbyop.test", "scale")
    class Scale(tosaic.Op):
        def infer(self, x):
            return x.type

        def reference(self, x):
            return (x * np.float32(factor)).astype(x.dtype)

        def element(self, out, x):
            return lambda *index: x[index] * factor


def test_a_custom_operator_is_the_registered_one_also_after_it_has_changed(rt):
    attributes = {"operator_name": "scale", "domain_name": "opbyop.test"}
    with pytest.raises(Problem, match="no implementation of custom operator scale"):
        rt.run("tosa.custom", X, **attributes)
    for factor in (2.0, 3.0):
        implementation(factor)
        for handler in ("cpu", "reference", "cpu"):
            rt.use(handler)
            assert np.array_equal(rt.run("tosa.custom", X, **attributes).get(), X * factor)


def test_a_name_that_is_no_operator_is_an_error_at_the_callers_line(rt):
    for name in ("tosa.yield", "tosa.nonsense", "tf.VarHandleOp", "tf.TensorListReserve", "tf.Nonsense"):
        with pytest.raises(Problem, match=f"{name} was not supported") as caught:
            rt.run(name, X)
        assert caught.value.position is not None and caught.value.position.source.name == __file__


@pytest.mark.parametrize("value", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float6_e3m2fn,
                                   ml_dtypes.float6_e2m3fn, ml_dtypes.float4_e2m1fn])
def test_block_scaled_operators_take_values_and_scales(rt, value):
    """NumPy has no block-scaled arrays: such a tensor is two, which these operators take."""
    size = {"block_size": "BLOCK_SIZE_32"}
    x = np.random.default_rng(1).standard_normal((1, 4, 64)).astype(np.float32)
    image = np.random.default_rng(2).standard_normal((1, 3, 3, 32)).astype(np.float32)
    weights = np.random.default_rng(3).standard_normal((2, 2, 2, 32)).astype(np.float32)
    found = {}
    for handler in ("cpu", "reference"):
        rt.use(handler)
        blocks = rt.run("tosa.cast_to_block_scaled", x, to=np.dtype(value), outputs=2, **size)
        assert blocks[0].dtype == value and blocks[1].dtype == ml_dtypes.float8_e8m0fnu
        back = rt.run("tosa.cast_from_block_scaled", *blocks, to=np.dtype(np.float32), **size)
        product = rt.run("tosa.matmul_t_block_scaled", *blocks, *blocks, **size)
        operands = [h for a in (image, weights) for h in
                    rt.run("tosa.cast_to_block_scaled", a, to=np.dtype(value), outputs=2, **size)]
        sums = rt.run("tosa.conv2d_block_scaled", *operands, np.zeros(2, np.float32), pad=[0, 0, 0, 0], stride=[1, 1],
                      dilation=[1, 1], **size)
        found[handler] = [h.get() for h in (*blocks, back, product, sums)]
        exact = back.get().astype(np.float64)
        assert np.allclose(product.get(), exact @ exact.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)
    for mine, wanted in zip(found["cpu"], found["reference"], strict=True):
        assert mine.dtype == wanted.dtype
        assert np.allclose(mine.astype(np.float64), wanted.astype(np.float64), rtol=1e-5, atol=1e-5)
