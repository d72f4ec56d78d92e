"""The recorded input of the component's test: the features of spoken words, and what Python makes of them.

Features come from the package pymicro-features, the bytes of each step from the model called from Python, and the rows in
which words are heard from ESPHome's rules on these bytes. TensorFlow Lite of the package pymicro-wakeword must hear the same
words; its fast kernels round otherwise, so that its bytes are near, and it may be a step earlier or later.
"""
from __future__ import annotations

import json
import tempfile
import wave
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tosaic
from pymicro_features import MicroFrontend
from pymicro_wakeword import MicroWakeWord

from .micro_wake_word import Event, events, quantized
from .models import FEATURES, ROWS, Model

RATE, CHUNK = 16000, 160  # samples a second, samples in 10 ms
FEATURE_UNIT = 10 / 256    # of the front end's integers, in the floats that pymicro-features gives


@dataclass(frozen=True)
class Recording:
    """`features`: the front end's integers, uint16[rows, 40]; `bytes`: uint8[steps, models]; rows with `events`."""
    features: np.ndarray
    bytes: np.ndarray
    events: list[Event]


def record(models: list[Model], sounds: list[Path]) -> Recording:
    """The words one after the other, a second of silence around each."""
    silence = np.zeros(RATE, np.int16)
    samples = np.concatenate([part for sound in sounds for part in (silence, samples_of(sound), silence)])
    features = features_of(samples)
    rows = quantized(features)
    found = np.stack([bytes_of(model, rows) for model in models], axis=1)
    recording = Recording(features, found, events(models, found))
    peer = events(models, np.stack([tensorflow_bytes(model, rows) for model in models], axis=1))
    met = {i for event in recording.events for i in range(len(models)) if (event.heard | event.blocked) >> i & 1}
    if missing := [model.word for i, model in enumerate(models) if not model.is_voice and i not in met]:
        raise SystemExit(f"not heard in the recording: {', '.join(missing)}")
    if words_of(peer) != words_of(recording.events):
        raise SystemExit(f"TensorFlow Lite hears {words_of(peer)}, not {words_of(recording.events)}")
    return recording


def words_of(found: list[Event]) -> list[int]:
    """The words that are heard, one after the other, as sets."""
    return [event.heard for event in found if event.heard]


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


def bytes_of(model: Model, rows: np.ndarray) -> np.ndarray:
    """The model's probability in every step, as the byte that it gives."""
    step = tosaic.load(model.path).main.compile(context=tosaic.Context(model.name))
    return np.array([int(step(x[None])[0, 0]) for x in steps(rows)], np.uint8)


def steps(rows: np.ndarray) -> Iterable[np.ndarray]:
    return (np.ascontiguousarray(rows[i:i + ROWS]) for i in range(0, len(rows) - ROWS + 1, ROWS))


def tensorflow_bytes(model: Model, rows: np.ndarray) -> np.ndarray:
    """The same by TensorFlow Lite, to which scales of 1 and a window of 1 give and take plain bytes."""
    data = json.loads(model.config.read_text(encoding="utf-8"))
    data["model"], data["micro"]["sliding_window_size"] = str(model.path.resolve()), 1
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "bytes.json"
        config.write_text(json.dumps(data), encoding="utf-8")
        engine = MicroWakeWord.from_config(config)
    engine.input_scale, engine.input_zero_point, engine.output_scale = 1, 0, 1
    found = [engine.process_streaming_prob(row.reshape(1, 1, FEATURES)) for row in rows]
    return np.array(found[ROWS - 1::ROWS], np.uint8)


def header_text(recording: Recording) -> str:
    rows = ",\n".join("    {" + ", ".join(map(str, row)) + "}" for row in recording.features.tolist())
    found = ",\n".join(f"    {{{event.row}, {event.heard}u, {event.blocked}u}}" for event in recording.events)
    results = ",\n".join("    {" + ", ".join(map(str, row)) + "}" for row in recording.bytes.tolist())
    return f"""\
/* Features of spoken words, the byte that each model gives in each step, and the rows in which words are heard or blocked. */
#include <stdint.h>

#define RECORDING_ROWS {len(recording.features)}

static const uint16_t recording_features[RECORDING_ROWS][{FEATURES}] = {{
{rows}
}};

static const uint8_t recording_bytes[{len(recording.bytes)}][{recording.bytes.shape[1]}] = {{
{results}
}};

#define RECORDING_EVENTS {len(recording.events)}

static const struct {{
    int row;
    uint32_t heard, blocked;
}} recording_events[RECORDING_EVENTS] = {{
{found}
}};
"""
