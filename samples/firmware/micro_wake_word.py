"""The rules of ESPHome's micro_wake_word, in Python: what a feature becomes, and in which rows of features words are heard.

A row is 10 ms of sound. Models run in every third one; ESPHome looks at them in every one.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from .models import ROWS, Model

QUIET = 100  # rows


def quantized(features: np.ndarray) -> np.ndarray:
    """The front end's integers as the byte that all models take, whatever their own scale."""
    return np.minimum((256 * features.astype(np.int64) + 333) // 666 - 128, 127).astype(np.int8)


@dataclass
class Detector:
    """One model's: the last bytes, and how many rows pass before they count."""
    cutoff: int
    window: int
    quiet: int = QUIET
    fresh: bool = False
    recent: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self.recent, self.quiet = deque([0] * self.window, self.window), QUIET

    def take(self, probability: int) -> None:
        self.recent.append(probability)
        self.fresh = True

    def pass_row(self) -> None:
        if self.recent[-1] < self.cutoff:
            self.quiet = max(self.quiet - 1, 0)

    def is_above(self) -> bool:
        return sum(self.recent) > self.cutoff * self.window

    def is_heard(self) -> bool:
        """True if a word ends here; no byte is looked at twice."""
        if self.quiet or not self.fresh:
            return False
        self.fresh = False
        return self.is_above()


@dataclass(frozen=True)
class Event:
    """Sets of models, bit i for model i: words that are `heard` in a row, or `blocked` since there is no voice."""
    row: int
    heard: int
    blocked: int


def events(models: list[Model], probabilities: np.ndarray) -> list[Event]:
    """Rows in which something is heard, for the models' bytes in each step, uint8[steps, models]."""
    detectors, found = [Detector(model.cutoff_byte, model.window) for model in models], []
    words = [i for i, model in enumerate(models) if not model.is_voice]
    for row in range(ROWS * len(probabilities)):
        if row % ROWS == ROWS - 1:
            for detector, probability in zip(detectors, probabilities[row // ROWS].tolist()):
                detector.take(probability)
        for i in words:
            detectors[i].pass_row()
        voice = all(detectors[i].is_above() for i, model in enumerate(models) if model.is_voice)
        ended = [i for i in words if detectors[i].is_heard()]
        for i in ended if voice else ():
            detectors[i].begin_anew()
        if ended:
            bits = sum(1 << i for i in ended)
            found.append(Event(row, bits if voice else 0, 0 if voice else bits))
    return found
