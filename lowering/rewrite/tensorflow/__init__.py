"""TensorFlow's dialects -> TOSA: a function of a module, for arguments of known types, becomes a function of TOSA's operators.

`translate` walks the operations, the dialect's `legalizations` lower each operation, `control_flow` turns branches and loops
into regions, `variables` turns handles into the process' variables, and `functionalize` lowers executor graphs in the same way.
"""
from __future__ import annotations

from .. import functionalize  # noqa: F401  fills the table, as the next ones do
from . import (  # noqa: F401
    control_flow,
    inlined_calls,
    messages,
    standard_operations,
    structured_blocks,
    tosa_operations,
    variable_operations,
)
from .translate import Bindings, argument_names, handle_symbols, to_tosa

__all__ = ["Bindings", "argument_names", "handle_symbols", "to_tosa"]
