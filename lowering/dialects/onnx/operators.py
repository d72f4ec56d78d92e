"""The table of ONNX's operators, filled: each module beside this one adds those of its kind."""
from __future__ import annotations

from . import arithmetic, constants, convolutions  # noqa: F401
from .operator import OPERATORS

__all__ = ["OPERATORS"]
