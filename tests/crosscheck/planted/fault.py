"""Faults that are planted into the product, one at a time: each is a row of data, and `check` has to find it and to name the
operator of the model that it is in."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.tools.check.crosscheck import CrossCheck
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

DATA = Path(__file__).parents[2] / "data" / "planted"
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Subject:
    """A model through its door, and the calls that it is checked with."""
    load: Callable[[], Any]
    calls: Sequence[Sequence[Array]]

    def check(self) -> CrossCheck:
        found: CrossCheck = self.load().check(self.calls)
        return found


@dataclass(frozen=True)
class Fault:
    """`where` it is planted in the product, what plants it, a model that runs through it, and the operator that `check` must
    name."""
    name: str
    where: str
    patch: Patch
    subject: Callable[[], Subject]
    operator: str

    def verdict(self) -> str | None:
        """What `check` gets wrong with the fault planted; None where it finds and names it."""
        with pytest.MonkeyPatch.context() as planted:
            self.patch(planted)
            try:
                found = self.subject().check()
            except Problem as problem:
                return f"cannot run: {problem.message}"
        named = named_by(found)
        if found.agrees:
            return "agrees"
        return None if self.operator in named else f"names {named or 'nothing'}, not {self.operator}"

    def alarm(self) -> str | None:
        """What `check` says without the fault; None where it agrees."""
        try:
            found = self.subject().check()
        except Problem as problem:
            return f"cannot run: {problem.message}"
        return None if found.agrees else str(found)


def named_by(found: CrossCheck) -> str:
    """The operators of the source that a verdict names."""
    stages = [s.operator for s in (found.source, found.imported) if s is not None and s.operator]
    return ", ".join(stages)


def text(name: str, *calls: Sequence[Array], **options: Any) -> Callable[[], Subject]:
    """A model that is MLIR text in a file."""
    return functools.partial(Subject, lambda: tosaic.load(DATA / f"{name}.mlir", **options), calls)


def numbers(*dims: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Numbers about 0, no two alike."""
    random = np.random.default_rng(seed)
    found = random.permutation(int(np.prod(dims))).reshape(dims) - int(np.prod(dims)) // 2
    return found.astype(dtype) + (np.float32(0.3) if np.dtype(dtype).kind == "f" else np.dtype(dtype).type(0))
