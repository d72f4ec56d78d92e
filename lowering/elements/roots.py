"""The constants of a Fourier transform: a buffer that says of itself what it holds, so that a schedule need not find out."""
from __future__ import annotations

import numpy as np

from ...runtime.records import dataclass
from ..graph.types import Array
from .expression import Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Roots(Buffer):
    """[2, 2, M]: at [part, q, i] what part q of an input adds to a part of the transform, at an angle of i / M turns. Parts
    are real and imaginary; an `inverse` transform turns the other way."""
    inverse: bool = False


def roots_buffer(turn: int, inverse: bool) -> Roots:
    """The constants for angles that are multiples of 1 / `turn`."""
    cosine, sine = roots(turn, np.arange(turn), -1.0 if inverse else 1.0)
    data = np.stack([np.stack([cosine, sine]), np.stack([-sine, cosine])])
    data.flags.writeable = False
    return Roots("roots", "float32", data.shape, "constant", data, inverse=inverse)


def roots(n: int, k: Array, sign: float) -> tuple[Array, Array]:
    """cos and sign * sin of 2 pi k / n; exact at quarter turns."""
    turns = np.arange(n) / n
    cosine, sine = np.cos(2 * np.pi * turns), sign * np.sin(2 * np.pi * turns)
    exact = 4 * np.arange(n) % n == 0
    cosine[exact], sine[exact] = np.rint(cosine[exact]), np.rint(sine[exact])
    return cosine.astype(np.float32)[k % n], sine.astype(np.float32)[k % n]
