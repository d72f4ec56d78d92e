"""`tosaic.from_tensorflow` against TensorFlow itself: functions, state, SavedModels, Keras models, graphs of TensorFlow 1."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.runtime.errors import Problem

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
tf: Any = pytest.importorskip("tensorflow", reason='the extra is not installed: pip install "tosaic[tensorflow]"')


def near(found: Any, expected: Any, bound: float = 1e-5) -> None:
    """Integers exactly, floats within a part of the range."""
    expected = np.asarray(expected)
    found = np.asarray(found)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound * np.abs(expected).max(initial=0))
    else:
        assert np.array_equal(found, expected)


def data(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Counter(tf.Module):  # type: ignore[misc]
    """Two functions over one variable."""

    def __init__(self) -> None:
        super().__init__("counter")
        self.total = tf.Variable([1.0, 2.0, 3.0], name="total")
        self.scale = tf.Variable(0.5, name="scale")

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
    def add(self, x: Any) -> Any:
        self.total.assign_add(x * self.scale)
        return tf.reduce_sum(self.total)

    @tf.function(input_signature=[])
    def get(self) -> Any:
        return self.total.read_value()


def test_a_function_of_tensors() -> None:
    @tf.function
    def f(x: Any, y: Any) -> Any:
        return tf.nn.relu(x @ y) + 1.0, tf.shape(x)[0]
    x, y = data(4, 6), data(6, 3, seed=1)
    found = tosaic.from_tensorflow(f, x, y)(x, y)
    for a, b in zip(found, f(x, y), strict=True):
        near(a, b.numpy())


def test_open_extents_are_those_of_the_arrays() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.reduce_sum(x, axis=1) * tf.cast(tf.shape(x)[0], tf.float32)
    model = tosaic.from_tensorflow(f, tf.TensorSpec([None, 5], tf.float32))
    for rows in (1, 3, 8):
        near(model(data(rows, 5)), f(data(rows, 5)).numpy())


def test_variables_belong_to_the_context_that_is_given() -> None:
    own = tosaic.Context("own")
    counter, before = Counter(), set(tosaic.default_context)
    model, x = tosaic.from_tensorflow(counter.add, name="kept apart", context=own), data(3)
    for _ in range(2):
        near(model(x), counter.add(x).numpy())
    assert list(own) == ["kept apart/total"] and set(tosaic.default_context) == before


def test_a_variable_that_is_written_lives_on_and_one_that_is_not_is_a_constant() -> None:
    counter = Counter()
    model = tosaic.from_tensorflow(counter.add, name="written")
    x = data(3)
    for _ in range(3):
        near(model(x), counter.add(x).numpy())
    near(tosaic.default_context.read("written/total"), counter.total.numpy())
    assert "written/scale" not in list(tosaic.default_context)


def test_results_are_called_what_the_keys_of_a_signature_are(tmp_path: Path) -> None:
    """Of one shape, in the order of their keys; calls give the mapping, and descriptors say the same."""
    class Two(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([3]), tf.TensorSpec([3])])  # type: ignore[untyped-decorator]
        def both(self, p: Any, a: Any) -> Any:
            return {"z": p - a, "b": p * a}

    two = Two()
    tf.saved_model.save(two, str(tmp_path / "two"), signatures={"both": two.both})
    entry = tosaic.load(tmp_path / "two")["both"]
    p, a = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    assert [o.name for o in entry.outputs] == list(entry(p=p, a=a)) == ["b", "z"]
    assert {k: v.tolist() for k, v in entry(p=p, a=a).items()} == {"b": [4, 10, 18], "z": [-3, -3, -3]}


def test_signatures_of_a_saved_model_share_their_variables(tmp_path: Path) -> None:
    counter = Counter()
    tf.saved_model.save(counter, str(tmp_path / "saved"), signatures={
        "add": counter.add.get_concrete_function(), "get": counter.get.get_concrete_function()})
    model = tosaic.from_tensorflow(tmp_path / "saved")
    x = data(3)
    for _ in range(2):
        near(model.add(x)["output_0"], counter.add(x).numpy())
        near(model.get()["output_0"], counter.get().numpy())


def test_models_read_twice_do_not_share_variables() -> None:
    counters = Counter(), Counter()
    first, second = (tosaic.from_tensorflow(c.add, name="twice") for c in counters)
    x = np.ones(3, np.float32)
    assert first(x) == second(x)


def test_control_flow() -> None:
    @tf.function
    def f(x: Any, n: Any) -> Any:
        if tf.reduce_sum(x) > 0:
            x = -x
        for i in tf.range(n):
            x = x * 0.5 + tf.cast(i, tf.float32)
        return x
    model = tosaic.from_tensorflow(f, tf.TensorSpec([4], tf.float32), tf.TensorSpec([], tf.int32))
    for sign in (1, -1):
        for n in (0, 1, 5):
            x = sign * np.abs(data(4))
            near(model(x, np.int32(n)), f(x, tf.constant(n)).numpy())


def graph_of_tensorflow_1() -> Any:
    """A loop with a condition in it, as TensorFlow 1 builds them: Enter, Merge, Switch, Exit."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        v1.disable_control_flow_v2()
        x, n = v1.placeholder(tf.float32, [3], "x"), v1.placeholder(tf.int32, [], "n")
        _, result = v1.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, v1.cond(
            tf.equal(i % 2, 0), lambda: a * 2.0, lambda: a - 1.0)), [tf.constant(0), x])
        tf.identity(result, "y")
        v1.enable_control_flow_v2()
    return graph.as_graph_def()


def test_a_graph_of_tensorflow_1(tmp_path: Path) -> None:
    definition = graph_of_tensorflow_1()
    assert {"Enter", "Switch", "Merge", "NextIteration"} <= {n.op for n in definition.node}
    path = tmp_path / "graph.pb"
    path.write_bytes(definition.SerializeToString())
    for source in (definition, path):
        model = tosaic.from_tensorflow(source, outputs=["y"])
        for n in (0, 1, 4):
            x = data(3)
            expected = x
            for i in range(n):
                expected = expected * 2 if i % 2 == 0 else expected - 1
            near(model(x, np.int32(n)), expected)


def test_a_stateful_lstm_of_keras() -> None:
    keras = tf.keras
    model = keras.Sequential([keras.Input((5, 6), batch_size=2), keras.layers.LSTM(8, stateful=True, return_sequences=True)])
    found = tosaic.from_tensorflow(model, name="stateful_lstm")
    for call in range(3):
        x = data(2, 5, 6, seed=call)
        near(found(x), model(x).numpy())


def test_mobilenet_of_keras() -> None:
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.applications.MobileNetV2(weights=None)
    x = data(1, 224, 224, 3)
    near(tosaic.from_tensorflow(model)(x), model(x, training=False).numpy())


# ---- what cannot be done ---------------------------------------------------------------------------------------------
def test_without_tensorflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Problem, match="TensorFlow is not installed") as caught:
        tosaic.from_tensorflow(lambda x: x, data(1))
    assert "tosaic[tensorflow]" in str(caught.value)


def test_what_is_no_function_is_a_problem() -> None:
    with pytest.raises(Problem, match="no TensorFlow function"):
        tosaic.from_tensorflow(3)


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_path_without_a_model_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xff no graph")
    with pytest.raises(Problem, match=r"cannot be read|no GraphDef"):
        tosaic.from_tensorflow(tmp_path / name)


def test_a_signature_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    counter = Counter()
    tf.saved_model.save(counter, str(tmp_path), signatures={"get": counter.get.get_concrete_function()})
    with pytest.raises(Problem, match="no signature put"):
        tosaic.from_tensorflow(tmp_path, signatures=["put"])


def test_an_operation_without_a_lowering_is_named_with_its_function() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.unique(x)[0]
    with pytest.raises(Problem, match=r"tf\.Unique"):
        tosaic.from_tensorflow(f, data(4))(data(4))


def test_a_method_of_an_object_that_is_gone_is_a_problem() -> None:
    with pytest.raises(Problem, match="exists no more") as found:
        tosaic.from_tensorflow(Counter().add)
    assert "m = Module()" in str(found.value)


# ---- audio features, counts and segments -----------------------------------------------------------------------------
def features(x: Any) -> Any:
    """Cepstral coefficients, by a cosine transform that TensorFlow makes of complex numbers."""
    return tf.signal.mfccs_from_log_mel_spectrograms(x)


def spectrum(x: Any) -> Any:
    return tf.abs(tf.signal.stft(tf.reshape(x, [-1]), 32, 16) * tf.complex(0.5, -1.0))


def counted(x: Any) -> Any:
    """What Keras's encodings are made of."""
    return tf.math.bincount(tf.cast(tf.abs(x) * 3, tf.int32), minlength=5, maxlength=5, axis=-1)


def segments(x: Any) -> Any:
    numbers = [0, 0, 1, 3]
    return (tf.math.segment_max(x, numbers), tf.math.segment_mean(x, numbers), tf.math.unsorted_segment_min(x, [2, 0, 2, 0], 4),
            tf.math.unsorted_segment_mean(x, [2, 0, 2, 0], 4))


@pytest.mark.parametrize("function", [features, spectrum, counted, segments], ids=lambda f: f.__name__)
def test_functions_that_features_are_made_of(function: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32)
    model, right = tosaic.from_tensorflow(tf.function(function), x), tf.nest.flatten(function(tf.constant(x)))
    found = model(x)
    for mine, expected in zip(found if isinstance(found, tuple) else [found], right, strict=True):
        assert mine.dtype == expected.numpy().dtype and mine.shape == expected.shape
        np.testing.assert_allclose(mine, expected, rtol=0, atol=2.0**-19 * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize(("function", "remedy"), [
    (lambda x: x + tf.random.uniform([3]), "random numbers are no function of the inputs"),
    (lambda x: tf.py_function(lambda v: v * 2, [x], tf.float32), "Python code is no part of a graph"),
    (lambda x: (tf.print(x), x)[1], "leave what prints out")], ids=["random", "python", "print"])
def test_what_is_no_function_of_tensors_says_what_to_do(function: Any, remedy: str) -> None:
    with pytest.raises(tosaic.Problem, match=remedy):
        tosaic.from_tensorflow(tf.function(function), np.zeros(3, np.float32))(np.zeros(3, np.float32))
