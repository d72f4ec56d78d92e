"""Sample 9: a module of TensorFlow with state, and a Keras model, compiled (the extra `tensorflow`).

    pip install "tosaic[tensorflow]"
    python samples/9_tensorflow.py
"""
from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tosaic


class Smoother(tf.Module):  # type: ignore[misc]
    """Follows what comes in, slowly, and counts."""

    def __init__(self) -> None:
        super().__init__("smoother")
        self.level = tf.Variable(tf.zeros(4), name="level")
        self.rate = tf.Variable(0.25, name="rate")

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])  # type: ignore[misc]
    def follow(self, rows: Any) -> Any:
        for row in rows:
            self.level.assign_add(self.rate * (row - self.level))
        return self.level.read_value()


def main() -> None:
    smoother = Smoother()
    model = tosaic.from_tensorflow(smoother.follow, name="smoother")
    rng = np.random.default_rng(0)
    for rows in (3, 1, 5):
        x = rng.standard_normal((rows, 4)).astype(np.float32)
        print(f"{rows} rows, as TensorFlow: {np.allclose(model(x), smoother.follow(x), atol=1e-6)}")
    print("variables:", ", ".join(model.context))
    layers = tf.keras.layers
    network = tf.keras.Sequential([tf.keras.Input((32, 32, 3)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPool2D(),
                                   layers.Flatten(), layers.Dense(10, activation="softmax")])
    image = rng.random((1, 32, 32, 3), np.float32)
    compiled = tosaic.from_tensorflow(network, tf.TensorSpec(image.shape), name="network")
    print(f"network, as Keras: {np.allclose(compiled(image), network(image), atol=1e-6)}")
    print(compiled.entry().check([[image]]))


if __name__ == "__main__":
    main()
