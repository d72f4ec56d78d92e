"""Microsoft's DynamicQuantizeLSTM: an LSTM whose weights are bytes, [inputs, gates * hidden] for each direction.

ONNX Runtime quantizes the inputs of all steps at once, and the state before each step, for all rows of the batch; if it splits
a batch among threads, for each part. Here the batch is one part.
"""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ....runtime.records import dataclass
from ...formulas.quantization import factor_of
from ...graph.graph import Value
from ...graph.types import F32, Array, ElementType
from ..data import Datum
from ..emitter import Emitter
from .operator import operator
from .quantize import dynamic, emitted_dynamic
from .quantized_products import emitted_total, total_of
from .recurrence import LSTM, Weights, halves, of_direction, peepholes_of


# ---- NumPy ---------------------------------------------------------------------------------------------------------------
def product(x: Array, weights: Array, scale: Array, zero: Array) -> Array:
    """Return quantized x times bytes, in float32."""
    stored, own, own_zero = dynamic(x.astype(np.float32))
    return np.asarray(total_of(stored, weights, own_zero, zero).astype(np.float32) * (own * scale), np.float32)


def places_of(steps: int, counts: Array, back: bool) -> Array:
    """Return the step of the input for each step of a direction, [steps, batch]."""
    step = np.arange(steps)[:, None]
    return np.where(step < counts, counts - 1 - step, step) if back else np.broadcast_to(step, (steps, len(counts)))


# ---- TOSA ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class ByteWeights(Weights):
    """The weights of one direction, with scales and zero points of both matrices."""
    w_scale: Value
    w_zero: Value
    r_scale: Value
    r_zero: Value

    def projected(self, e: Emitter, x: Value) -> Value:
        return emitted_product(e, x, self.w, self.w_scale, self.w_zero)

    def recurrent(self, e: Emitter, h: Value, first: int = 0, count: int | None = None) -> Value:
        return e.sum(emitted_product(e, h, self.r, self.r_scale, self.r_zero), self.recurrent_bias)


def emitted_product(e: Emitter, x: Value, weights: Value, scale: Value, zero: Value) -> Value:
    stored, own, own_zero = emitted_dynamic(e, x)
    return e.product(e.cast(emitted_total(e, stored, weights, own_zero, zero), F32), factor_of(e, (own, scale), None))


@operator("com.microsoft.DynamicQuantizeLSTM")
class DynamicQuantizeLSTM(LSTM):
    def reference(self, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
                  first: Array | None = None, cell: Array | None = None, peepholes: Array | None = None,
                  w_scale: Array | None = None, w_zero: Array | None = None, r_scale: Array | None = None,
                  r_zero: Array | None = None) -> tuple[Array, ...]:
        require(w_scale is not None and r_scale is not None, "its weights have no scales", kind="type")
        assert w_scale is not None and r_scale is not None
        w_zero = np.zeros(w_scale.shape, w.dtype) if w_zero is None else w_zero
        r_zero = np.zeros(r_scale.shape, r.dtype) if r_zero is None else r_zero
        (steps, batch, inputs), hidden, rows = x.shape, r.shape[1], np.arange(x.shape[1])
        counts = np.full(batch, steps) if lengths is None else lengths
        outputs, last = [], []
        for d, back in enumerate(self.directions()):
            bias = np.zeros(8 * hidden, np.float32) if b is None else b[d]
            holes = np.zeros(3 * hidden, np.float32) if peepholes is None else peepholes[d]
            state = [np.zeros((batch, hidden), np.float32) if s is None else s[d] for s in (first, cell)]
            flat = product(x.reshape(-1, inputs), w[d], w_scale[d], w_zero[d]).reshape(steps, batch, -1) + bias[:4 * hidden]
            found = np.zeros((steps, batch, hidden), np.float32)
            for step, place in enumerate(places_of(steps, counts, back)):
                total = flat[place, rows] + product(state[0], r[d], r_scale[d], r_zero[d]) + bias[4 * hidden:]
                goes = (step < counts)[:, None]
                new = self.cell_of(total, state[1], holes, self.functions()[d])
                state = [np.where(goes, a, s).astype(np.float32) for a, s in zip(new, state)]
                found[place, rows] = np.where(goes, state[0], 0)
            outputs.append(found)
            last.append(state)
        return np.stack(outputs, 1), np.stack([h for h, _ in last]), np.stack([c for _, c in last])

    def lower(self, e: Emitter, x: Value, w: Value, r: Value, b: Value | None = None,
              lengths: Value | None = None, first: Value | None = None, cell: Value | None = None,
              peepholes: Value | None = None, w_scale: Value | None = None, w_zero: Value | None = None,
              r_scale: Value | None = None, r_zero: Value | None = None) -> tuple[Datum, ...]:
        directions, hidden = len(self.directions()), r.tensor.dims[1]
        require(w.tensor.dims == (directions, x.tensor.dims[-1], 4 * hidden) and
                r.tensor.dims == (directions, hidden, 4 * hidden),
                f"weights of {w.type} and {r.type} are none of 4 gates in {directions} directions", kind="shape")
        require(w_scale is not None and r_scale is not None, "its weights have no scales", kind="type")
        assert w_scale is not None and r_scale is not None
        zeros = [e.zeros(s.tensor.with_element(m.tensor.element)) if z is None else z
                 for z, s, m in ((w_zero, w_scale, w), (r_zero, r_scale, r))]

        def weights(d: int, working: ElementType) -> Weights:
            own_w, own_r, *numbers = (of_direction(e, v, d) for v in (w, r, w_scale, zeros[0], r_scale, zeros[1]))
            holes = peepholes_of(e, peepholes, d, hidden, working)
            return ByteWeights(own_w, own_r, *halves(e, b, d, 4 * hidden, working), holes, hidden, *numbers)
        return self.lowered(e, x, weights, lengths, (first, cell))
