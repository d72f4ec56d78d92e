"""`tosaic.ops`: functions of traced tensors with NumPy's names. They also run where NumPy's own are called on a tensor.

Operands may be tensors, NumPy arrays and Python numbers; ranks are aligned, shapes broadcast and element types promoted as in
NumPy. The operators of the specification itself are in `tosaic.tosa`.
"""
from __future__ import annotations

from . import fft as fft
from . import linear_algebra as linalg
from . import special as special
from .arithmetic import *  # noqa: F403
from .arithmetic import __all__ as _arithmetic
from .arithmetic import absolute, conjugate, divide, power, remainder
from .choosing import *  # noqa: F403
from .choosing import __all__ as _choosing
from .complex_functions import *  # noqa: F403
from .complex_functions import __all__ as _complex
from .complex_functions import of_both_kinds
from .contractions import *  # noqa: F403
from .contractions import __all__ as _contractions
from .counting import *  # noqa: F403
from .counting import __all__ as _counting
from .creation import *  # noqa: F403
from .creation import __all__ as _creation
from .editing import *  # noqa: F403
from .editing import __all__ as _editing
from .floats import *  # noqa: F403
from .floats import __all__ as _floats
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .functions import arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
from .integers import *  # noqa: F403
from .integers import __all__ as _integers
from .integers import invert, left_shift, right_shift
from .known_facts import *  # noqa: F403
from .known_facts import __all__ as _known_facts
from .layout import *  # noqa: F403
from .layout import __all__ as _layout
from .layout import concatenate
from .padding import *  # noqa: F403
from .padding import __all__ as _padding
from .polynomials import *  # noqa: F403
from .polynomials import __all__ as _polynomials
from .rearranging import *  # noqa: F403
from .rearranging import __all__ as _rearranging
from .reduction import *  # noqa: F403
from .reduction import __all__ as _reduction
from .running import *  # noqa: F403
from .running import __all__ as _running
from .sampled import *  # noqa: F403
from .sampled import __all__ as _sampled
from .sorting import *  # noqa: F403
from .sorting import __all__ as _sorting
from .statistics import *  # noqa: F403
from .statistics import __all__ as _statistics
from .windows import *  # noqa: F403
from .windows import __all__ as _windows
from .without_nan import *  # noqa: F403
from .without_nan import __all__ as _without_nan

abs = absolute
true_divide = divide
mod = remainder
pow = power
conj = conjugate
bitwise_not = bitwise_invert = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
amax, amin = max, min
concat = concatenate

__all__ = [*_arithmetic, *_choosing, *_complex, *_contractions, *_counting, *_creation, *_editing, *_floats, *_functions,
           *_integers, *_known_facts, *_layout, *_padding, *_polynomials, *_rearranging, *_reduction, *_running, *_sampled,
           *_sorting, *_statistics, *_windows, *_without_nan, "abs", "acos", "acosh", "amax", "amin", "asin", "asinh", "atan",
           "atan2", "atanh", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_right_shift", "concat", "conj",
           "fft", "linalg", "mod", "pow", "true_divide"]

for _name in __all__:
    if callable(globals()[_name]) and _name not in _complex:
        globals()[_name] = of_both_kinds(_name, globals()[_name])
