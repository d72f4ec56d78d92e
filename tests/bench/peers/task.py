"""What a worker receives, and what an engine gives back. Imported in every environment: needs NumPy alone."""
from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Refused(Exception):
    """A peer does not take a case; the message is the reason, a few words."""


@dataclass(frozen=True, slots=True)
class Task:
    """One peer, case and number of threads. `files` are the model's by ending, or the reason why one is not there; `arrays`
    holds the inputs; `kept` is a folder in which a later process finds what an earlier one compiled; `results` is written after
    `CALLS` calls."""
    engine: str
    family: str
    bound: str
    threads: int
    files: dict[str, str]
    arrays: str
    kept: str
    results: str
    option: str = ""
    is_cold: bool = False
    """True if `kept` is empty: this process compiles."""

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Task:
        return cls(**json.loads(text))

    @property
    def is_quantised(self) -> bool:
        return self.bound == "int8"

    def file(self, ending: str) -> str:
        """The model's file. Raises Refused with the reason if it is not there."""
        path = self.files.get(ending, f"there is no .{ending}")
        if not path.endswith(f".{ending}") or not Path(path).exists():
            raise Refused(path)
        return path

    def inputs(self) -> list[np.ndarray]:
        """The arrays to call with, read once: before the clock starts."""
        return read(self.arrays) if self.arrays else []


@functools.cache
def read(path: str) -> list[np.ndarray]:
    """The arrays of an .npz, in the order of their names."""
    with np.load(path) as arrays:
        return [arrays[name] for name in sorted(arrays.files)]


class Loaded(NamedTuple):
    """A model that is ready, and has been called once: what is timed, and the outputs of its last call."""
    call: Callable[[], object]
    outputs: Callable[[], list[np.ndarray]]
    keep: object = None
    """What has to live as long as the call: arrays whose memory the peer shares without saying so."""
    work: int = 0
    """Operations or bytes of a call, of a kernel that measures the machine; `unit` is what it uses."""
    unit: str = ""


CALLS = 4
"""Calls until the results are compared: those of models with state depend on the earlier ones."""
