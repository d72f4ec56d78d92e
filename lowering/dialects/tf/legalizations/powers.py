"""TensorFlow's powers."""
from __future__ import annotations

import numpy as np

from ....formulas.powers import integer_power, real_power
from ....graph.graph import Operation, Value
from ...emitter import Emitter
from .table import legalization


@legalization("tf.Pow")
def power(e: Emitter, operation: Operation, x: Value, y: Value) -> Value:
    found = (integer_power if x.tensor.element.is_integer else real_power)(e, x, y)
    return e.broadcast_to(found, np.broadcast_shapes(x.tensor.dims, y.tensor.dims))
