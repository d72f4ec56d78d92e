"""`tosaic.ops`: functions of traced tensors with NumPy's names. They also run where NumPy's own are called on a tensor.

Operands may be tensors, NumPy arrays and Python numbers; ranks are aligned and shapes broadcast as NumPy does. The
operators of the specification themselves are in `tosaic.tosa`.
"""
from __future__ import annotations

from . import special as special
from .arithmetic import *  # noqa: F403
from .arithmetic import __all__ as _arithmetic
from .arithmetic import absolute, divide, invert, power, remainder
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .layout import *  # noqa: F403
from .layout import __all__ as _layout
from .reduction import *  # noqa: F403
from .reduction import __all__ as _reduction

abs = absolute
true_divide = divide
mod = remainder
pow = float_power = power
bitwise_not = invert
amax, amin = max, min

__all__ = [*_arithmetic, *_functions, *_layout, *_reduction, "abs", "amax", "amin", "bitwise_not", "mod", "pow",
           "true_divide"]
