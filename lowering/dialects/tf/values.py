"""Data of TensorFlow's interpreters besides arrays: handles of variables, lists of tensors."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....runtime.records import dataclass
from ...graph.types import Array


@dataclass(frozen=True, slots=True)
class NamedVariable:
    """A variable, by its name."""
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class TensorList:
    """Tensors of one shape (-1: an unknown extent) and dtype; an element None was never set."""
    items: tuple[Array | None, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def replaced(self, items: tuple[Array | None, ...]) -> TensorList:
        return replace(self, items=items)


Datum = Any
"""An array, a Handle or a TensorList."""
