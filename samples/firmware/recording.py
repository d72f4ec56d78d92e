"""The recorded input of the component's test: the features of spoken words, and what Python makes of them.

Features come from the package pymicro-features, the bytes of each step from the model called from Python, and the step in which
a word is heard from the package pymicro-wakeword, which runs the models with TensorFlow Lite.
"""
from __future__ import annotations

import wave
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tosaic
from pymicro_features import MicroFrontend
from pymicro_wakeword import MicroWakeWord

from .models import FEATURE_UNIT, FEATURES, ROWS, Model

RATE, CHUNK = 16000, 160  # samples a second, samples in 10 ms


@dataclass(frozen=True)
class Recording:
    """`features`: the front end's integers, uint16[rows, 40]; `bytes`: uint8[steps, models]; `heard`: a step of each model."""
    features: np.ndarray
    bytes: np.ndarray
    heard: list[int]


def record(models: list[Model], sounds: list[Path]) -> Recording:
    """The words one after the other, a second of silence around each."""
    silence = np.zeros(RATE, np.int16)
    samples = np.concatenate([part for sound in sounds for part in (silence, samples_of(sound), silence)])
    features = features_of(samples)
    return Recording(features, np.stack([bytes_of(model, features) for model in models], axis=1),
                     [heard_in(model.config, features) for model in models])


def samples_of(path: Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (RATE, 2, 1):
            raise SystemExit(f"{path}: a sound must have one channel of {RATE} samples a second, 16 bits each")
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def features_of(samples: np.ndarray) -> np.ndarray:
    """40 features for each 10 ms, as the integers that the front end computes on a chip."""
    frontend, data, rows = MicroFrontend(), samples.tobytes(), []
    while len(data) >= 2 * CHUNK:
        output = frontend.process_samples(data[:2 * CHUNK])
        data = data[2 * output.samples_read:]
        if output.features:
            rows.append(output.features)
    return np.round(np.array(rows) / FEATURE_UNIT).astype(np.uint16)


def quantized(model: Model, features: np.ndarray) -> np.ndarray:
    values = np.round(features * FEATURE_UNIT / model.scale) + model.zero_point
    return np.clip(values, -128, 127).astype(np.int8)


def bytes_of(model: Model, features: np.ndarray) -> np.ndarray:
    """The model's probability in every step, as the byte that it gives."""
    step = tosaic.load(model.path).main.compile(context=tosaic.Context(model.name))
    return np.array([int(step(x[None])[0, 0]) for x in steps(quantized(model, features))], np.uint8)


def steps(rows: np.ndarray) -> Iterable[np.ndarray]:
    return (np.ascontiguousarray(rows[i:i + ROWS]) for i in range(0, len(rows) - ROWS + 1, ROWS))


def heard_in(config: Path, features: np.ndarray) -> int:
    """The first step in which TensorFlow Lite's mean is above the cutoff."""
    engine = MicroWakeWord.from_config(config)
    for number, row in enumerate(features * FEATURE_UNIT):
        if engine.process_streaming(row.reshape(1, 1, FEATURES)):
            return number // ROWS
    raise SystemExit(f"{config.stem} is not heard in the recording")


def header_text(recording: Recording) -> str:
    rows = ",\n".join("    {" + ", ".join(map(str, row)) + "}" for row in recording.features.tolist())
    results = ",\n".join("    {" + ", ".join(map(str, row)) + "}" for row in recording.bytes.tolist())
    return f"""\
/* Features of spoken words, the byte that each model gives in each step, and the step in which its word is heard. */
#include <stdint.h>

#define RECORDING_ROWS {len(recording.features)}

static const uint16_t recording_features[RECORDING_ROWS][{FEATURES}] = {{
{rows}
}};

static const uint8_t recording_bytes[{len(recording.bytes)}][{recording.bytes.shape[1]}] = {{
{results}
}};

static const int recording_heard[{len(recording.heard)}] = {{{", ".join(map(str, recording.heard))}}};
"""
