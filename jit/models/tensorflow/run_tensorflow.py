"""A function of TensorFlow run by TensorFlow. Its variables begin with the values with which the model was read, and are
restored to their own values after each call.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...source import ImportedSource, SourceEvaluator, SourceRun

if TYPE_CHECKING:
    from ....lowering.graph.types import Array


def tensorflow_source(functions: Mapping[str, Any], variables: Mapping[str, Any]) -> ImportedSource:
    """Return the source of a model of concrete functions by the names of its entries, with their variables by name."""
    first = {name: variable.numpy() for name, variable in variables.items()}

    def start(entry: str) -> SourceRun:
        return ConcreteRun(functions[entry], variables, first)

    return ImportedSource("a TensorFlow function", (SourceEvaluator("TensorFlow", "tensorflow", "tensorflow-cpu", start),))


class ConcreteRun:
    """Calls of a concrete function."""

    def __init__(self, function: Any, variables: Mapping[str, Any], first: Mapping[str, Array]) -> None:
        self.function, self.owned = function, variables
        self.values: dict[str, Array] = dict(first)

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        import tensorflow as tf
        signature = self.function.structured_input_signature
        with self.state():
            args, kwargs = tf.nest.pack_sequence_as(signature, [tf.constant(a) for a in arrays], expand_composites=True)
            found = self.function(*args, **kwargs)
            return [np.asarray(leaf) for leaf in tf.nest.flatten(found)]

    @contextmanager
    def state(self) -> Iterator[None]:
        """Set the variables to this run's values in the context, and restore them afterwards."""
        before = {name: variable.numpy() for name, variable in self.owned.items()}
        self.assign(self.values)
        try:
            yield
        finally:
            self.values = {name: variable.numpy() for name, variable in self.owned.items()}
            self.assign(before)

    def assign(self, values: Mapping[str, Array]) -> None:
        for name, variable in self.owned.items():
            variable.assign(values[name])

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return dict(self.values)
