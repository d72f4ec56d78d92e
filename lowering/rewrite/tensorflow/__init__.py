"""TensorFlow's dialects -> TOSA: a function of a module, for arguments of known types, as a function of TOSA's operators.

`translate` walks the operations, `legalizations` of the dialect say what each is, `control_flow` makes regions of branches and
loops, `variables` the process' variables of handles, and `functionalize` the same of executor graphs.
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
