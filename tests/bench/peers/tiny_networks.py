"""The four networks of MLPerf Tiny, as the reference models of its closed division describe them, in Keras with weights by lot.
keras_models.py makes .tflite files of them, in the environment that has TensorFlow; tests/bench/microcontrollers counts them.

A convolution here is one with `same` padding, a batch normalisation and a ReLU. Normalisations have statistics of noise, so
that their scales differ and no layer's output is all zero.
"""
from __future__ import annotations

from typing import Any

import keras
import numpy as np

NOISE = 8
"""Inputs from which the normalisations take their statistics."""
BIASES = "random_normal"
"""Of layers without a normalisation behind them: zeros would be left out."""


def convolution(x: Any, channels: int, size: int | tuple[int, int], stride: int = 1, is_activated: bool = True) -> Any:
    x = keras.layers.Conv2D(channels, size, stride, "same")(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.ReLU()(x) if is_activated else x


def separable(x: Any, channels: int, stride: int = 1) -> Any:
    """A depthwise convolution and a pointwise one."""
    x = keras.layers.DepthwiseConv2D(3, stride, "same")(x)
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(x))
    return convolution(x, channels, 1)


def classified(x: Any, classes: int) -> Any:
    """The mean over the picture, a dense layer and the probabilities."""
    x = keras.layers.AveragePooling2D(tuple(x.shape[1:3]))(x)
    return keras.layers.Dense(classes, "softmax", bias_initializer=BIASES)(keras.layers.Flatten()(x))


def keyword_spotting(x: Any) -> Any:
    """DS-CNN for 49 frames of 10 coefficients: 12 words."""
    x = convolution(x, 64, (10, 4), 2)
    for _ in range(4):
        x = separable(x, 64)
    return classified(x, 12)


def visual_wake_words(x: Any) -> Any:
    """MobileNetV1 of a quarter's width: is there a person."""
    x = convolution(x, 8, 3, 2)
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1)):
        x = separable(x, channels, stride)
    return classified(x, 2)


def image_classification(x: Any) -> Any:
    """ResNet-8 for CIFAR-10: three stacks, whose shortcuts from the second on are convolutions."""
    x = convolution(x, 16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = convolution(convolution(x, channels, 3, stride), channels, 3, is_activated=False)
        x = x if stride == 1 else keras.layers.Conv2D(channels, 1, stride, "same")(x)
        x = keras.layers.ReLU()(keras.layers.Add()([x, y]))
    return classified(x, 10)


def anomaly_detection(x: Any) -> Any:
    """An autoencoder of dense layers for five frames of 128 bands."""
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = keras.layers.ReLU()(keras.layers.BatchNormalization()(keras.layers.Dense(units)(x)))
    return keras.layers.Dense(640, bias_initializer=BIASES)(x)


NETWORKS = {"keyword_spotting": (keyword_spotting, (1, 49, 10, 1)), "visual_wake_words": (visual_wake_words, (1, 96, 96, 3)),
            "image_classification": (image_classification, (1, 32, 32, 3)), "anomaly_detection": (anomaly_detection, (1, 640))}
"""Each network and the shape of its input."""


def network(name: str) -> Any:
    """The Keras model of a network, ready to be converted."""
    build, shape = NETWORKS[name]
    x = keras.Input(shape[1:])
    model = keras.Model(x, build(x))
    noise = np.random.default_rng(0).standard_normal((NOISE, *shape[1:])).astype(np.float32)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.5
    for _ in range(3):
        model(noise, training=True)
    one = keras.Input(batch_shape=shape)
    return keras.Model(one, model(one, training=False))
