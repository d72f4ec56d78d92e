"""Two models whose variables have one name and different types, each with a context of its own: whatever they come through, a
call, `compile` and loading make no variable in another context than the one that they are given."""
from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.runtime.function_object import MAX_LOCKED_STEPS

from ..tflite.files import Graph, Operator, Signature, Tensor, constant, file, ints

NAME = "contexts.total"
Door = Callable[[int, Any, Path], Any]
"""Gives a function of n numbers that adds them to its variable `NAME`, and returns what that is then: with a context, or
without one."""


def text(n: int | str, extent: int) -> str:
    return f"""module {{
  tosa.variable @"{NAME}" = dense<0.0> : tensor<{extent}xf32>
  func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
    %0 = tosa.variable_read @"{NAME}" : tensor<{extent}xf32>
    %1 = tosa.add %0, %x : (tensor<{extent}xf32>, tensor<{n}xf32>) -> tensor<{extent}xf32>
    tosa.variable_write @"{NAME}", %1 : tensor<{extent}xf32>
    return %1 : tensor<{extent}xf32>
  }} }}"""


def of_text(n: int, context: Any, folder: Path) -> Any:
    return tosaic.load(text(n, n), context=context)


def of_text_with_open_extents(n: int, context: Any, folder: Path) -> Any:
    source = text("?", n).replace("-> tensor<?xf32> {", f"-> tensor<{n}xf32> {{")
    return tosaic.load(source, context=context)


def of_file(n: int, context: Any, folder: Path) -> Any:
    path = folder / f"{n}.tosa"
    path.write_bytes(write_module(tosaic.load(text(n, n)).module))
    return tosaic.load(path, context=context)


def of_tensorflow(n: int, context: Any, folder: Path) -> Any:
    handle = f"tensor<!tf_type.resource<tensor<{n}xf32>>>"
    source = f"""func.func @main(%x: tensor<{n}xf32>, %h: {handle}) -> tensor<{n}xf32> {{
      %0 = "tf.ReadVariableOp"(%h) : ({handle}) -> tensor<{n}xf32>
      %1 = "tf.AddV2"(%0, %x) : (tensor<{n}xf32>, tensor<{n}xf32>) -> tensor<{n}xf32>
      "tf.AssignVariableOp"(%h, %1) : ({handle}, tensor<{n}xf32>) -> ()
      return %1 : tensor<{n}xf32> }}"""
    return tosaic.load(source, variables={"h": NAME, NAME: np.zeros(n, np.float32)}, context=context)


def lite(n: int) -> bytes:
    """Adds nothing: it writes what it is given, which is the sum after one call."""
    handle, v = Operator("VAR_HANDLE", "", "v", (None, NAME)), Tensor("v", (), "resource")
    return file(
        Graph("x", "y", [Tensor("x", (n,)), v, Tensor("y", (n,))], [
            Operator("CALL_ONCE", options=ints(1)), handle, Operator("ASSIGN_VARIABLE", "v x"),
            Operator("READ_VARIABLE", "v", "y")], "main"),
        Graph("", "", [v, constant("c", [0.0] * n)], [handle, Operator("ASSIGN_VARIABLE", "v c")], "NoOp"),
        signatures=[Signature("main", 0, {"x": "x"}, {"y": "y"})])


def of_tflite(n: int, context: Any, folder: Path) -> Any:
    return tosaic.from_tflite(lite(n), context=context)


def of_tflite_file(n: int, context: Any, folder: Path) -> Any:
    path = folder / f"{n}.tflite"
    path.write_bytes(lite(n))
    return tosaic.load(path, context=context)


def of_compile(n: int, context: Any, folder: Path) -> Any:
    return tosaic.compile(text(n, n), context=context)


def of_entry(n: int, context: Any, folder: Path) -> Any:
    return tosaic.load(text(n, n)).main.compile(context=context)


def of_trace(n: int, context: Any, folder: Path) -> Any:
    return tosaic.load(text(n, n), context=context).main.trace().compile()


def of_lowered(n: int, context: Any, folder: Path) -> Any:
    return tosaic.load(text(n, n), context=context).main.lower().compile()


def step(n: int) -> Any:
    total = tosaic.Variable(NAME, np.zeros(n, np.float32))

    def add(x: Any) -> Any:
        total.write(total.read() + x)
        return total.read()

    return add


def of_jit(n: int, context: Any, folder: Path) -> Any:
    return tosaic.jit(context=context)(step(n))


def of_lowered_jit(n: int, context: Any, folder: Path) -> Any:
    return tosaic.jit(context=context)(step(n)).lower(tosaic.TensorSpec((n,))).compile()


def of_compiled_function(n: int, context: Any, folder: Path) -> Any:
    return tosaic.compile(step(n), tosaic.TensorSpec((n,)), context=context)


MODELS: dict[str, Door] = {
    "text": of_text, "text with open extents": of_text_with_open_extents, ".tosa": of_file, "TensorFlow's text": of_tensorflow,
    "bytes of a .tflite": of_tflite, ".tflite": of_tflite_file}
DOORS: dict[str, Door] = {
    **MODELS, "compile": of_compile, "an entry's compile": of_entry, "a trace": of_trace, "a lowered entry": of_lowered,
    "jit": of_jit, "a lowered function": of_lowered_jit, "compile of a function": of_compiled_function}
FEW, MORE = np.array([1], np.float32), np.array([1, 2], np.float32)


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """The process has no such variable before, and whoever makes one there is found."""
    assert NAME not in tosaic.default_context
    yield
    if NAME in tosaic.default_context:
        tosaic.default_context.delete(NAME)


def doors(some: dict[str, Door]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("door", some.values(), ids=some.keys())


@doors(DOORS)
def test_models_that_are_given_contexts_make_no_variable_elsewhere(door: Door, tmp_path: Path) -> None:
    one, two = tosaic.Context("one"), tosaic.Context("two")
    few, more = door(1, one, tmp_path), door(2, two, tmp_path)
    assert few(FEW).tolist() == [1] and more(MORE).tolist() == [1, 2]
    assert one.read(NAME).tolist() == [1] and two.read(NAME).tolist() == [1, 2]
    assert NAME not in tosaic.default_context


@doors(MODELS)
def test_calls_that_name_a_context_make_no_variable_elsewhere(door: Door, tmp_path: Path) -> None:
    """The first call compiles; later ones go by the built-in function where they name no context."""
    one, two, three = (tosaic.Context(name) for name in ("one", "two", "three"))
    few, more = door(1, None, tmp_path), door(2, None, tmp_path)
    assert few.main(FEW, context=one).tolist() == [1] and more(MORE, context=two).tolist() == [1, 2]
    assert NAME not in few.context and NAME not in tosaic.default_context
    few(FEW, context=three)
    assert three.read(NAME).tolist() == [1] and len(one) == len(two) == 1
    assert few(FEW).tolist() == [1] and few(FEW, context=one) is not None
    assert few.context.read(NAME).tolist() == [1]
    if few.context is more.context:  # MLIR: names of the process
        with pytest.raises(tosaic.Problem, match="is declared as"):
            more(MORE)
    else:
        assert more(MORE).tolist() == [1, 2] and NAME not in tosaic.default_context
    assert more(MORE, context=two).shape == (2,)


@doors(MODELS)
def test_a_call_may_name_another_context_than_the_models(door: Door, tmp_path: Path) -> None:
    own, other = tosaic.Context("own"), tosaic.Context("other")
    model = door(1, own, tmp_path)
    model(FEW, context=other)
    assert NAME in other and NAME not in own
    model(FEW)
    assert own.read(NAME).tolist() == [1] and NAME not in tosaic.default_context


def test_calls_without_a_context_are_built_in_though_the_first_ones_named_one() -> None:
    model = tosaic.load(text(1, 1))
    for _ in range(2):
        model.main(FEW, context=tosaic.Context("first"))
        model(FEW, context=tosaic.Context("first"))
    model.main(FEW)
    model(FEW)
    assert MAX_LOCKED_STEPS > 1 and type(model.main.__call__) is type(model.__call__) is type(model.main.compile().__call__)
    assert model(FEW).tolist() == [3] and model.main(FEW, context=tosaic.Context("later")).tolist() == [1]


def test_models_of_one_context_share_their_variables() -> None:
    shared = tosaic.Context("shared")
    first, second = (tosaic.load(text(1, 1), context=shared) for _ in range(2))
    assert [m(FEW).tolist() for m in (first, second, first)] == [[1], [2], [3]]
    assert first.within(None) is first and first.main.within(shared) is first.main


def test_checks_of_models_make_no_variable_in_the_process() -> None:
    for n, x in ((1, FEW), (2, MORE)):
        assert tosaic.load(text(n, n)).main.check([[x], [x]]).agrees
    assert NAME not in tosaic.default_context


@pytest.mark.skipif(any(importlib.util.find_spec(package) is None for package in ("torch", "torch_mlir")),
                    reason="PyTorch is not installed (the extra `torch`)")
def test_buffers_of_pytorch_modules_belong_to_the_context() -> None:
    import torch

    class Sum(torch.nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(n))

        def forward(self, x: Any) -> Any:
            self.total += x
            return self.total.clone()

    one, two = tosaic.Context("one"), tosaic.Context("two")
    models = [tosaic.from_torch(Sum(n), torch.zeros(n), name="contexts", context=c) for n, c in ((1, one), (2, two))]
    assert models[0](FEW).tolist() == [1] and models[1](MORE).tolist() == [1, 2]
    assert NAME not in tosaic.default_context and NAME in one and NAME in two


WRONG: dict[str, Callable[[], object]] = {
    "a call of a model": lambda: tosaic.load(text(1, 1))(FEW, context=5),  # type: ignore[arg-type]
    "a call of an entry": lambda: tosaic.load(text(1, 1)).main(FEW, context="c"),  # type: ignore[arg-type]
    "a call with open extents": lambda: of_text_with_open_extents(1, None, Path())(FEW, context=5),
    "a call of compiled code": lambda: tosaic.compile(text(1, 1), context=tosaic.Context("c"))(FEW, context=5),  # type: ignore[arg-type]
    "an entry's compile": lambda: tosaic.load(text(1, 1)).main.compile(context=5),  # type: ignore[arg-type]
    "a trace's compile": lambda: tosaic.load(text(1, 1)).main.trace().compile(context=5),  # type: ignore[arg-type]
    "a lowered compile": lambda: tosaic.load(text(1, 1)).main.lower().compile(5),  # type: ignore[arg-type]
    "load": lambda: tosaic.load(text(1, 1), context=5),  # type: ignore[arg-type]
    "from_tflite": lambda: tosaic.from_tflite(lite(1), context=5),  # type: ignore[arg-type]
    "compile": lambda: tosaic.compile(text(1, 1), context=5),  # type: ignore[arg-type]
    "jit": lambda: tosaic.jit(context=5)(step(1)),  # type: ignore[call-overload]
    "from_torch": lambda: tosaic.from_torch(None, context=5),  # type: ignore[arg-type]
    "from_tensorflow": lambda: tosaic.from_tensorflow(None, context=5),  # type: ignore[arg-type]
    "an operation's runtime": lambda: tosaic.CoreRuntime(context=5)}  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_context_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(tosaic.Problem, match=r"context is an? \w+, not a tosaic\.Context") as caught:
        wrong()
    assert caught.value.kind == "argument" and 'tosaic.Context("name")' in str(caught.value)
    assert NAME not in tosaic.default_context


def test_a_compiled_python_function_has_no_parameter_for_a_context() -> None:
    """Its named arguments are its own; a context is an option of `tosaic.jit`."""
    for context in (5, tosaic.Context("c")):
        with pytest.raises(tosaic.Problem, match="unexpected keyword argument 'context'"):
            tosaic.jit(step(1))(FEW, context=context)
