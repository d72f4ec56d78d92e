"""Names by which callers know the results of a function: attributes of ONNX, of a `.tflite`'s signatures and of TensorFlow."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEYS = ("onnx.name", "tf_saved_model.index_path")


def name_of_result(attributes: Mapping[str, Any]) -> str | None:
    """Return the name in the attributes of a result; None if they have none, or a path into a structure."""
    found = next((attributes[key] for key in KEYS if key in attributes), None)
    found = found[0] if isinstance(found, tuple) and len(found) == 1 else found
    return found if isinstance(found, str) and found else None


def names_alone(attributes: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the attributes of results, without those that are no names."""
    return tuple({key: own[key] for key in KEYS if key in own} for own in attributes)
