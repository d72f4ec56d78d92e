"""The rows of the comparison: which model each runs, what bounds it, and when two peers' results are the same."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Bound = Literal["f32", "int8", "copy"]
"""Which measured peak of the machine a case's work is compared with."""

MEGABYTES_32 = 2 * 4 * 1000 * 4096
"""16 MB read and 16 MB written. No power of two, so that where an input and an output lie in memory matters little: 2^24 bytes
apart they may take turns in one bank of it, at half the speed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row. `model` names the files; `family` says which mathematics it is, for peers that read no .tflite; `work` is bytes
    where `copy` bounds it, else it follows from the model."""
    name: str
    model: str
    family: str
    bound: Bound
    title: str
    work: int = 0

    @property
    def is_quantised(self) -> bool:
        return self.bound == "int8"


def networks() -> list[Case]:
    images = {"mobilenet_v2": "MobileNetV2 1.0 224", "mobilenet_v1": "MobileNetV1 1.0 224", "resnet50": "ResNet-50 224"}
    pairs: list[tuple[str, Bound, str]] = [("f32", "f32", "f32"), ("i8", "int8", "int8")]
    made = [Case(f"{name}_{kind}", f"{name}_{kind}", "network", bound, f"{title} {shown}")
            for name, title in images.items() for kind, bound, shown in pairs]
    return [*made,
            Case("face_landmark", "face_landmark", "network", "f32", "face_landmark f32"),
            Case("face_detection_front", "face_detection_front", "network", "f32", "face_detection_front f32"),
            Case("okay_nabu", "okay_nabu", "network", "int8", "okay_nabu int8, a step"),
            Case("hey_jarvis", "hey_jarvis", "network", "int8", "hey_jarvis int8, a step"),
            Case("lstm", "lstm_f32", "lstm", "f32", "LSTM 40-128-128 f32, a step"),
            *(Case(f"encoder_{n}", f"encoder_{n}_f32", "encoder", "f32", f"encoder layer f32, {n} tokens") for n in (128, 512))]


def operators() -> list[Case]:
    sizes = (512, 1024, 2048)
    titles = {"chain": "chain of six operators", "transcendental": "tanh, sigmoid, exp",
              "softmax": "softmax over rows of 4096", "layer_norm": "layer norm over rows of 4096"}
    return [*(Case(f"product_{n}_f32", f"product_{n}_f32", "product", "f32", f"product {n} f32") for n in sizes),
            *(Case(f"product_{n}_i8", f"product_{n}_i8", "product", "int8", f"product {n} int8") for n in sizes),
            *(Case(name, f"{name}_f32", name, "copy", title, MEGABYTES_32) for name, title in titles.items())]


CASES = {case.name: case for case in (*networks(), *operators())}

QUICK = ("okay_nabu", "product_512_f32", "chain")
"""What `--quick` runs: small cases of three kinds."""


def given(case: Case, inputs: list[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    """The arrays that every peer is called with."""
    rng = np.random.default_rng(4)
    return [rng.integers(-128, 128, shape).astype(dtype) if dtype == "int8" else rng.standard_normal(shape).astype(dtype)
            for shape, dtype in inputs]


def difference(actual: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """How far results are apart: steps for integers, for floats a part of the largest magnitude; infinite where shapes do not
    fit or a value is not a number. Outputs are matched by size, which peers may order as they like."""
    if sorted(a.size for a in actual) != sorted(e.size for e in expected):
        return float("inf")
    pairs = zip(sorted(actual, key=lambda a: a.size), sorted(expected, key=lambda e: e.size))
    return max(_difference(a.reshape(-1), e.reshape(-1)) for a, e in pairs)


def _difference(actual: np.ndarray, expected: np.ndarray) -> float:
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    largest = 1.0 if expected.dtype.kind in "iu" else max(float(np.abs(expected).max()), 1e-30)
    return float("inf") if np.isnan(difference) else float(difference) / largest


def tolerance(case: Case) -> float:
    """What `difference` may be: peers round intermediate integers in their own ways."""
    return 4.0 if case.is_quantised else 1e-4
