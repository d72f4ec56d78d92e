"""Inputs by their names, and names that nothing has: a Problem with the names that there are, and the one that was meant."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.errors import Problem

MODEL = """func.func @main(%input_audio: tensor<4xf32>, %mask: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.sub %input_audio, %mask : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
OPEN = MODEL.replace("4x", "?x")
TF = """func.func @main(%input_audio: tensor<4xf32>, %mask: tensor<4xf32>) -> tensor<*xf32> {
  %0 = "tf.Sub"(%input_audio, %mask) : (tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}"""
X, Y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)


def callables() -> list[tuple[str, Callable[..., Any]]]:
    """Everything of a model that is called with inputs, before and after its first call."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for what, text in (("static", MODEL), ("open", OPEN), ("tf", TF)):
        found += [(what, tosaic.load(text)), (f"{what} entry", tosaic.load(text).main)]
        called = tosaic.load(text)
        called(X, Y)
        found += [(f"{what}, called", called), (f"{what} entry, called", called.main)]
    compiled = tosaic.load(MODEL).main.compile()
    return [*found, ("compiled", compiled), ("executable", compiled.calls.ordinary)]


CALLABLES = callables()


@pytest.mark.parametrize(("name", "call"), CALLABLES, ids=[n for n, _ in CALLABLES])
def test_inputs_may_be_named(name: str, call: Callable[..., Any]) -> None:
    for _ in range(3):
        for result in (call(input_audio=X, mask=Y), call(mask=Y, input_audio=X), call(X, mask=Y),
                       call({"input_audio": X}, mask=Y), call(X, Y), call({"mask": Y, "input_audio": X})):
            np.testing.assert_array_equal(result, X - Y)
    out = np.empty(4, np.float32)
    call(mask=Y, input_audio=X, out=out, num_threads=1, context=tosaic.Context("named"))
    np.testing.assert_array_equal(out, X - Y)


@pytest.mark.parametrize(("name", "call"), CALLABLES, ids=[n for n, _ in CALLABLES])
@pytest.mark.parametrize(("inputs", "named", "words"), [
    ((X,), {"msk": Y}, "did you mean mask"), ((X, Y), {"contxt": None}, "did you mean context"),
    ((X, Y), {"anything": 1}, "its inputs: input_audio, mask; its options: out, context, num_threads"),
    ((X, Y), {"mask": Y}, "gets input mask twice"), ((), {"mask": Y}, "input input_audio of main is missing"),
    ((X, Y, X), {"mask": Y}, "takes 2 inputs, got 3 and mask"), (({"input_audio": X},), {"input_audio": X}, "twice"),
    ((X,), {"mask": X[:2]}, "mask")])
def test_a_name_that_is_wrong_is_a_problem(name: str, call: Callable[..., Any], inputs: tuple[Any, ...],
                                           named: dict[str, Any], words: str) -> None:
    with pytest.raises(Problem) as caught:
        call(*inputs, **named)
    assert words in str(caught.value) and "_call" not in str(caught.value) and "ordinary" not in str(caught.value)
    if "mask" in named and len(named) == 1 and named["mask"].size == 2 and "open" in name:
        return  # a wrong shape may have another cause there
    assert caught.value.kind == "argument"


@pytest.mark.parametrize(("named", "words"), [
    ({"context": 5}, "context is an option of the decorator: tosaic.jit(context=...)"),
    ({"num_threads": 2}, "tosaic.jit(options=tosaic.CompileOptions(threads=...))"), ({"hidn": X}, "did you mean hidden?"),
    ({"odd": 1}, "its parameters are (x: 'Any', hidden: 'Any' = None)")])
def test_a_jitted_function_says_what_it_takes(named: dict[str, Any], words: str) -> None:
    @tosaic.jit
    def step(x: Any, hidden: Any = None) -> Any:
        return x + 1.0

    for _ in range(2):
        with pytest.raises(Problem) as caught:
            step(X, **named)
        assert words in (caught.value.help or "") and caught.value.position is not None
        assert str(caught.value.position).startswith(__file__)
        step(X)


OPTIONS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "jit": (tosaic.jit, "statics", "did you mean static"), "jit of": (lambda **n: tosaic.jit(abs, **n), "taget", "target"),
    "load": (lambda **n: tosaic.load(MODEL, **n), "nam", "name"), "load all": (tosaic.load, "sorce", "source"),
    "compile": (lambda **n: tosaic.compile(MODEL, **n), "entyr", "entry"),
    "from_tflite": (lambda **n: tosaic.from_tflite("m", **n), "nmae", "name"),
    "from_torch": (lambda **n: tosaic.from_torch(None, **n), "dynamic_shape", "dynamic_shapes"),
    "from_onnx": (lambda **n: tosaic.from_onnx("m", **n), "shape", "shapes"),
    "from_tensorflow": (lambda **n: tosaic.from_tensorflow("m", **n), "output", "outputs"),
    "Memory": (tosaic.Memory, "pool", "pools"), "Pool": (lambda **n: tosaic.Pool("a", **n), "size_hint", "size_hint_bytes"),
    "target": (tosaic.target, "cpus", "cpu"), "set_num_threads": (tosaic.set_num_threads, "numbr", "number"),
    "Entry.compile": (tosaic.load(MODEL).main.compile, "memry", "memory"),
    "Entry.lower": (tosaic.load(MODEL).main.lower, "targt", "target"),
    "Model.save": (tosaic.load(MODEL).save, "libary", "library"),
    "Traced.compile": (tosaic.load(MODEL).main.trace().compile, "contxt", "context"),
    "Lowered.save": (tosaic.load(MODEL).main.lower().save, "self_containd", "self_contained")}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_not_known_is_a_problem_with_those_that_are(name: str) -> None:
    function, wrong, meant = OPTIONS[name]
    with pytest.raises(Problem) as caught:
        function(**{wrong: 1})
    assert f"has no option named {wrong}" in caught.value.message and f"{meant}" in (caught.value.help or "")
    assert "did you mean" in (caught.value.help or "")


def test_options_keep_their_names_for_tools() -> None:
    import copy
    import inspect
    import pickle
    assert list(inspect.signature(tosaic.load).parameters)[:2] == ["source", "name"]
    assert tosaic.compile.__doc__ and callable(tosaic.jit)
    memory = tosaic.Memory(pools=(tosaic.Pool("a", 5),), alignment=16)
    assert copy.deepcopy(memory) == memory == pickle.loads(pickle.dumps(memory))
    assert not Path("never written").exists()
