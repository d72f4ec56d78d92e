"""What a pickle of a model, an entry, compiled code, a jitted function or a context has, and what comes out of it: here, in a
process that was really started by `spawn`, and through cloudpickle, which Dask, Ray and joblib use."""
from __future__ import annotations

import copy
import importlib
import multiprocessing
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops
from tosaic.runtime.variables import ContextState

TEXT = """func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tosa.add %x, %x : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}"""
COUNTER = """module {
  tosa.variable @pickled_count = dense<0> : tensor<1xi32>
  func.func @next() -> tensor<1xi32> {
    %one = "tosa.const"() {values = dense<1> : tensor<1xi32>} : () -> tensor<1xi32>
    %old = tosa.variable_read @pickled_count : tensor<1xi32>
    %new = tosa.add %old, %one : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    tosa.variable_write @pickled_count, %new : tensor<1xi32>
    return %new : tensor<1xi32>
  }
}"""
X = np.array([[1, -2]], np.float32)


def adds(values: str, type: str) -> str:
    """A function that adds a constant."""
    return f"""func.func @main(%x: {type}) -> {type} {{
  %c = "tosa.const"() {{values = {values} : {type}}} : () -> {type}
  %0 = tosa.add %x, %c : ({type}, {type}) -> {type}
  return %0 : {type}
}}"""


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that any process can import which has this one's path."""
    Path(tmp_path, "pickled_example.py").write_text("""
import tosaic
@tosaic.jit
def twice(x): return x + x
class Scale:
    @tosaic.jit
    def by(self, x): return x * 3
def plain(x): return x * 5
times_five = tosaic.jit(options=tosaic.CompileOptions(threads=1))(plain)
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("pickled_example")
    sys.modules.pop("pickled_example")


def test_a_spawned_process_calls_what_was_made_here(module: Any) -> None:
    counter = tosaic.load(COUNTER, context=tosaic.Context("spawned"))
    counter.next()
    values = counter.next.compile().executable.context.state()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(tosaic.load(TEXT), (X,))
        assert np.array_equal(found, X + X)
        assert np.array_equal(pool.apply(module.twice, (X,)), X + X)
        assert np.array_equal(pool.apply(module.twice.compile(X), (X,)), X + X)
        assert pool.apply(counter.next) == [1]                      # a pickle has no values
        assert pool.apply(counter.next, (), {"context": None}) == [1]  # and nobody there held the context
        there = pool.apply(tosaic.Context.from_state, (values,))
        assert there.name == "spawned" and counter.next() == [2]


def test_a_model_comes_back_with_its_entries_and_its_text() -> None:
    model = tosaic.load(TEXT)
    found = again(model)
    assert np.array_equal(found(X), X + X) and found.show() == model.show()
    assert found.main.inputs == model.main.inputs and found.main.is_dynamic
    special = again(model.main.specialize({"x": (1, 2)}))
    assert np.array_equal(special(X), X + X) and special.inputs[0].shape == (1, 2)


def test_every_stage_comes_back_as_it_was() -> None:
    traced = tosaic.load(TEXT).main.specialize({"x": (1, 2)}).trace()
    lowered = traced.lower()
    assert again(traced).show() == traced.show()
    assert all(again(lowered).show(stage) == lowered.show(stage) for stage in ("kernels", "loops", "plan"))
    for compiled in (traced.compile(), lowered.compile()):
        found = again(compiled)
        assert np.array_equal(found(X), X + X) and str(found.executable.signature) == str(compiled.executable.signature)
        assert np.array_equal(again(compiled.executable)(X)[0], X + X)


def test_compiled_code_comes_back_with_its_options() -> None:
    options = tosaic.CompileOptions(memory=tosaic.Memory(pools=(tosaic.Pool("fast", 64),)))
    assert again(options) == options and again(tosaic.target("cortex-m7")) == tosaic.target("cortex-m7")
    compiled = tosaic.load(TEXT).main.specialize({"x": (1, 2)}).compile(options)
    assert again(compiled).lowered.plan.pools == compiled.lowered.plan.pools


def test_a_jitted_function_is_pickled_by_its_name(module: Any) -> None:
    assert again(module.twice) is module.twice
    assert again(module.Scale.by) is module.Scale.by
    assert len(pickle.dumps(module.twice)) < 100
    found = again(module.times_five)                                # its name is that of the function that it was made of
    assert found.options == tosaic.CompileOptions(threads=1) and np.array_equal(found(X), X * 5)


def test_cloudpickle_takes_functions_that_nobody_can_import() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    scale = 3
    jitted = tosaic.jit(lambda x: ops.maximum(x, 0) * scale, options=tosaic.CompileOptions(threads=1))
    found = pickle.loads(cloudpickle.dumps(jitted))
    assert found is not jitted and found.options == jitted.options and np.array_equal(found(X), [[3, 0]])
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(jitted)


def test_cloudpickle_takes_what_a_script_defines(tmp_path: Path) -> None:
    """A script's functions have a name that pickle takes for `spawn`, and that no worker of another program has."""
    pytest.importorskip("cloudpickle")
    import subprocess
    script, data = Path(tmp_path, "script.py"), Path(tmp_path, "data")
    script.write_text("""
import sys, pickle, cloudpickle, tosaic
@tosaic.jit
def thrice(x): return x * 3
assert pickle.loads(pickle.dumps(thrice)) is thrice
open(sys.argv[1], "wb").write(cloudpickle.dumps(thrice))
""")
    subprocess.run([sys.executable, str(script), str(data)], check=True)
    assert np.array_equal(pickle.loads(data.read_bytes())(X), X * 3)


def test_a_context_is_the_same_one_wherever_its_pickles_meet() -> None:
    context = tosaic.Context("met")
    assert again(context) is context and again(tosaic.default_context) is tosaic.default_context
    data = pickle.dumps((tosaic.load(COUNTER, context=context), context))
    model, found = pickle.loads(data)
    assert found is context and model() == [1] and context.read("pickled_count") == [1]


def test_values_travel_where_they_are_asked_for() -> None:
    context = tosaic.Context("kept")
    model = tosaic.load(COUNTER, context=context)
    model(), model()
    state = again(context.state())
    assert isinstance(state, ContextState)
    elsewhere = tosaic.Context.from_state(state)
    assert model(context=elsewhere) == [3] and model() == [3] and model(context=elsewhere) == [4]
    elsewhere.reset()
    assert model(context=elsewhere) == [1]


def test_a_copy_of_code_is_the_code_and_a_copy_of_a_context_another_one(module: Any) -> None:
    model = tosaic.load(COUNTER, context=tosaic.Context("copied"))
    model()
    compiled = model.next.compile()
    for each in (model, model.next, compiled, compiled.executable, module.twice):
        assert copy.copy(each) is each and copy.deepcopy([each])[0] is each
    other = copy.deepcopy(compiled.executable.context)
    assert model(context=other) == [2] and model() == [2]
    assert copy.deepcopy(tosaic.default_context) is tosaic.default_context


def test_large_constants_go_out_of_band() -> None:
    weights = np.arange(1 << 14, dtype=np.float32)
    compiled = tosaic.jit(lambda x: x * weights).compile(np.ones(1 << 14, np.float32))
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(compiled, 5, buffer_callback=buffers.append)
    assert len(data) < weights.nbytes / 4 and sum(b.raw().nbytes for b in buffers) >= weights.nbytes
    assert np.array_equal(pickle.loads(data, buffers=buffers)(np.ones(1 << 14, np.float32)), weights)


def test_a_constant_that_repeats_one_element_stays_small() -> None:
    text = adds("dense<2.0>", "tensor<1x1048576xf32>")
    data = pickle.dumps(tosaic.load(text))
    assert len(data) < 10_000
    assert pickle.loads(data).show(whole=True) == tosaic.load(text).show(whole=True)


def test_a_problem_keeps_its_place_and_its_remedy() -> None:
    with pytest.raises(tosaic.Problem) as error:
        tosaic.load("func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {\n  %0 = tosa.ad %x : tensor<1xf32> }")
    assert str(again(error.value)) == str(error.value) and again(error.value).kind == error.value.kind


def test_what_cannot_travel_says_why() -> None:
    from tosaic.runtime.executable import Executable
    compiled = tosaic.load(COUNTER).next.compile()
    with pytest.raises(tosaic.Problem, match="it is code alone, and no graph"):
        pickle.dumps(Executable(compiled.executable.code, tosaic.Context("alone")))


def test_check_says_that_the_source_stayed_behind() -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    path = Path(tosaic.__file__ or "").parent / "samples" / "models" / "monitor.tflite"
    entry = again(tosaic.load(path)).observe
    calls = [[np.zeros(i.shape, i.dtype) for i in entry.inputs]]
    found = entry.check(calls)
    assert found.agrees and "was pickled without its source" in str(found.imported)


def test_a_graph_computes_the_same_with_dtypes_that_were_pickled() -> None:
    """NumPy's dtypes of a pickle are equal to its own, and not built-in ones; a constant of a graph that travelled has such."""
    from tosaic.runtime.interpreter import interpret
    module, one = again(tosaic.load(adds("dense<1.0e-6>", "tensor<1xf32>"))).module, np.ones(1, np.float32)
    assert interpret(module, None, [one])[0] == one + np.float32(1e-6)
