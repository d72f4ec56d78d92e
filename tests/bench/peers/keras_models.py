"""The models that Keras makes, with random weights: NAME.tflite, and NAME.keras or NAME.npz with the same weights for peers
that read no .tflite. Runs in the environment that has TensorFlow:

    python keras_models.py FOLDER NAME...
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", KERAS_BACKEND="tensorflow")
import keras
import numpy as np
import tensorflow as tf
from tiny_networks import NETWORKS, network

IMAGE = (1, 224, 224, 3)
FLAT = (1, 1000, 4096)
WIDTH, HEADS, HIDDEN = 768, 12, 3072

Made = tuple[Any, dict[str, np.ndarray]]
"""A Keras model, and arrays to keep beside it."""


def classifier(application: Callable[..., Any]) -> Made:
    """One of Keras' image classifiers for a batch of one. Its batch normalisations have statistics of noise, and its last
    layer is scaled so that its thousand probabilities differ."""
    model = application(weights=None, input_shape=IMAGE[1:])
    noise = np.random.default_rng(0).standard_normal((8, *IMAGE[1:])).astype(np.float32)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.5
    for _ in range(3):
        model(noise, training=True)
    before = keras.Model(model.input, model.layers[-2].output)(noise).numpy()
    head = model.layers[-1]
    if head.get_weights():
        kernel, bias = head.get_weights()
        spread = (before.reshape(8, -1) @ kernel.reshape(-1, kernel.shape[-1])).std()
        head.set_weights([kernel * 3 / spread, bias])
    image = keras.Input(batch_shape=IMAGE)
    return keras.Model(image, model(image, training=False)), {}


def mobilenet_v1() -> Made:
    """Keras ends this one in a convolution, a reshape and a softmax, so the convolution is made louder here."""
    model, arrays = classifier(keras.applications.MobileNet)
    last = model.layers[-1].get_layer("conv_preds")
    kernel, bias = last.get_weights()
    last.set_weights([kernel * 20, bias])
    return model, arrays


def lstm() -> Made:
    """Two stateful LSTM layers, one step of 40 features a call."""
    x = keras.Input(batch_shape=(1, 1, 40))
    y = keras.layers.LSTM(128, stateful=True, return_sequences=True, unroll=True)(x)
    y = keras.layers.LSTM(128, stateful=True, unroll=True)(y)
    model = keras.Model(x, keras.layers.Dense(32, activation="softmax")(y))
    names = ("kernel0", "recurrent0", "bias0", "kernel1", "recurrent1", "bias1", "kernel", "bias")
    return model, dict(zip(names, model.get_weights(), strict=True))


def encoder(length: int) -> Made:
    """A transformer's encoder layer of BERT-base's size: attention with 12 heads, then two dense layers with GELU (by tanh),
    each with its residual and layer norm."""
    x = keras.Input(batch_shape=(1, length, WIDTH))
    attention = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS, flash_attention=False)
    first = keras.layers.LayerNormalization(epsilon=1e-5)
    second = keras.layers.LayerNormalization(epsilon=1e-5)
    up, down = keras.layers.Dense(HIDDEN), keras.layers.Dense(WIDTH)
    y = first(x + attention(x, x))
    h = up(y)
    h = 0.5 * h * (1.0 + keras.ops.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
    model = keras.Model(x, second(y + down(h)))
    rng = np.random.default_rng(1)
    for layer in (attention, first, second, up, down):  # not ones and zeros, so that a peer that leaves one out shows
        layer.set_weights([w + rng.normal(0, 0.02, w.shape) for w in layer.get_weights()])
    arrays = {part: getattr(attention, f"_{part}_dense") for part in ("query", "key", "value", "output")}
    layers = {**arrays, "first": first, "second": second, "up": up, "down": down}
    return model, {f"{name}{i}": w for name, layer in layers.items() for i, w in enumerate(layer.get_weights())}


def product(size: int) -> Made:
    """A square product with a constant right side."""
    x = keras.Input(batch_shape=(size, size))
    model = keras.Model(x, keras.layers.Dense(size, use_bias=False)(x))
    return model, {"kernel": model.get_weights()[0]}


def elementwise(function: Callable[[Any], Any]) -> Made:
    x = keras.Input(batch_shape=FLAT)
    return keras.Model(x, function(x)), {}


def chain(x: Any) -> Any:
    """Six operators."""
    x = keras.ops.maximum(x * 1.5 + 0.25, 0.0)
    return keras.ops.minimum(x * x - 0.125, 6.0)


def transcendental(x: Any) -> Any:
    return keras.ops.exp(keras.ops.tanh(x) * keras.ops.sigmoid(x) * 0.5)


MODELS: dict[str, Callable[[], Made]] = {
    "mobilenet_v2": lambda: classifier(keras.applications.MobileNetV2),
    "mobilenet_v1": mobilenet_v1,
    "resnet50": lambda: classifier(keras.applications.ResNet50),
    "lstm": lstm, "encoder_128": lambda: encoder(128), "encoder_512": lambda: encoder(512),
    **{f"product_{n}": (lambda n=n: product(n)) for n in (512, 1024, 2048)},  # type: ignore[misc]
    "chain": lambda: elementwise(chain), "transcendental": lambda: elementwise(transcendental),
    "softmax": lambda: elementwise(keras.layers.Softmax()),
    "layer_norm": lambda: elementwise(keras.layers.LayerNormalization(epsilon=1e-5)),
    **{name: (lambda name=name: (network(name), {})) for name in NETWORKS},  # type: ignore[misc]
}


def converted(model: Any, quantised: bool) -> bytes:
    """The .tflite of a model; quantised: int8 throughout, its ranges those of noise."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if quantised:
        def samples() -> Iterator[list[np.ndarray]]:
            rng = np.random.default_rng(2)
            for _ in range(8):
                yield [rng.standard_normal(model.inputs[0].shape).astype(np.float32)]
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def quantisation(model: bytes) -> dict[str, np.ndarray]:
    """The weights, scales and zero points of a quantised product."""
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
    ends = x["index"], y["index"]
    (kernel,) = (d for d in interpreter.get_tensor_details() if d["index"] not in ends and d["shape"].size == 2)
    return {"kernel": interpreter.get_tensor(kernel["index"]), "kernel_scale": kernel["quantization_parameters"]["scales"],
            "input": np.array(x["quantization"]), "output": np.array(y["quantization"])}


def write(folder: Path, name: str) -> None:
    """Make one model; the .tflite comes last, and says that all is there."""
    keras.utils.set_random_seed(0)
    base, _, kind = name.rpartition("_")
    model, arrays = MODELS[base]()
    data = converted(model, kind == "i8")
    if kind == "i8":
        arrays = quantisation(data) if base.startswith("product") else {}
    elif not arrays:
        model.save(folder / f"{name}.keras")
    if arrays:
        np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]
    part = folder / f"{name}.part"
    part.write_bytes(data)
    part.rename(folder / f"{name}.tflite")


if __name__ == "__main__":
    for chosen in sys.argv[2:]:
        print(f"making {chosen}", flush=True)
        write(Path(sys.argv[1]), chosen)
