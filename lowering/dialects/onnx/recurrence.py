"""Recurrent layers: RNN, GRU, LSTM. One product computes the inputs of all steps outside of the loop that carries the state.

X is [steps, batch, inputs] (with `layout` 1 [batch, steps, inputs]); weights have one matrix for each direction, with the gates
stacked by rows. If lengths are given, a backward direction runs over each sequence from its own end.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...formulas.contractions import batched_product
from ...formulas.indexing import gathered
from ...formulas.layout import reversed_axis
from ...formulas.rounding import clamp
from ...formulas.term import Term, absolute, maximum, minimum, select, sigmoid, tanh
from ...formulas.transcendental import expm1_below_half
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import I32, Array, ElementType
from ..control_flow import loop
from ..data import Datum, ListOfTensors
from ..emitter import Emitter
from ..tensor_lists import element_at, list_of, tensor_of, with_element
from .activations import softplus
from .operator import Floats, Operator, Strings, operator

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


# ---- activation functions ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Function:
    """An activation by name: in NumPy, as a formula, and its default parameters."""
    numpy: Callable[[Array, float, float], Array]
    formula: Callable[[Term, float, float], Term]
    alpha: float = 0.0
    beta: float = 0.0


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "sigmoid": Function(lambda x, a, b: logistic(x), lambda x, a, b: sigmoid(x)),
    "tanh": Function(lambda x, a, b: np.tanh(x), lambda x, a, b: tanh(x)),
    "relu": Function(lambda x, a, b: np.maximum(x, 0), lambda x, a, b: maximum(x, 0)),
    "affine": Function(lambda x, a, b: a * x + b, lambda x, a, b: x * a + b, 1.0),
    "leakyrelu": Function(lambda x, a, b: np.where(x < 0, a * x, x), lambda x, a, b: select(x < 0, x * a, x), 0.01),
    "thresholdedrelu": Function(lambda x, a, b: np.where(x > a, x, 0), lambda x, a, b: select(x > a, x, 0), 1.0),
    "scaledtanh": Function(lambda x, a, b: a * np.tanh(b * x), lambda x, a, b: tanh(x * b) * a, 1.0, 1.0),
    "hardsigmoid": Function(lambda x, a, b: np.clip(a * x + b, 0, 1), lambda x, a, b: clamp(x * a + b, 0, 1), 0.2, 0.5),
    "elu": Function(lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
                    lambda x, a, b: select(x < 0, expm1_below_half(minimum(x, 0)) * a, x), 1.0),
    "softsign": Function(lambda x, a, b: x / (1 + np.abs(x)), lambda x, a, b: x / (absolute(x) + 1)),
    "softplus": Function(lambda x, a, b: np.logaddexp(x, 0), lambda x, a, b: softplus(x))}
ACTIVATED_BY_ALPHA = ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu")
"""Activations that take the next of the node's alphas; some of these take a beta."""
ACTIVATED_BY_BETA = ("affine", "scaledtanh", "hardsigmoid")


@dataclass(frozen=True, slots=True)
class Activation:
    """A function with its parameters."""
    function: Function
    alpha: float
    beta: float

    def numpy(self, x: Array) -> Array:
        return self.function.numpy(x, self.alpha, self.beta)

    def formula(self, x: Term) -> Term:
        return self.function.formula(x, self.alpha, self.beta)


def wide(x: Array) -> Array:
    return x.astype(np.float64)


class Recurrent(Operator):
    """The common base of RNN, GRU and LSTM. Operands: X, W, R, B, lengths, the first state, and for LSTM the first cell state
    and the peepholes."""
    activations: Strings = ()
    activation_alpha: Floats = ()
    activation_beta: Floats = ()
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None
    layout: int = 0
    output_sequence: int = 0
    input_forget: int = 0
    linear_before_reset: int = 0
    gates: ClassVar[int] = 1
    own: ClassVar[tuple[str, ...]] = ("Tanh",)
    """Activations of one direction if the node names none."""
    states: ClassVar[int] = 1

    def directions(self) -> tuple[bool, ...]:
        if self.direction not in DIRECTIONS:
            raise Problem(f"the direction {self.direction} is not known", kind="attribute", help=", ".join(DIRECTIONS))
        return DIRECTIONS[self.direction]

    def functions(self) -> list[list[Activation]]:
        """Return the activations of each direction."""
        names = self.activations or self.own * len(self.directions())
        alphas, betas, found = list(self.activation_alpha), list(self.activation_beta), []
        for name in names:
            key = name.lower()
            if key not in FUNCTIONS:
                raise Problem(f"the activation {name} is not known", kind="attribute", help=", ".join(FUNCTIONS))
            f = FUNCTIONS[key]
            alpha = alphas.pop(0) if key in ACTIVATED_BY_ALPHA and alphas else f.alpha
            beta = betas.pop(0) if key in ACTIVATED_BY_BETA and betas else f.beta
            found.append(Activation(f, alpha, beta))
        each = len(self.own)
        return [found[d * each:(d + 1) * each] for d in range(len(self.directions()))]

    # ---- reference -------------------------------------------------------------------------------------------------------
    def reference(self, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
                  first: Array | None = None, cell: Array | None = None, peepholes: Array | None = None) -> tuple[Any, ...]:
        dtype = x.dtype
        seen = wide(x).transpose(1, 0, 2) if self.layout else wide(x)
        steps, batch, _ = seen.shape
        hidden, counts = r.shape[-1], np.full(batch, steps) if lengths is None else lengths
        outputs, last = [], []
        for d, back in enumerate(self.directions()):
            state = [np.zeros((batch, hidden)) if s is None else wide(s)[:, d] if self.layout else wide(s)[d]
                     for s in (first, cell)[:self.states]]
            bias = np.zeros(2 * self.gates * hidden) if b is None else wide(b)[d]
            holes = np.zeros(3 * hidden) if peepholes is None else wide(peepholes)[d]
            rows = np.zeros((steps, batch, hidden))
            ends = [np.array(s) for s in state]
            for k in range(batch):
                own = [s[k:k + 1] for s in state]
                for t in range(int(counts[k])):
                    place = int(counts[k]) - 1 - t if back else t
                    own = self.step(seen[place, k:k + 1], own, wide(w)[d], wide(r)[d], bias, holes, self.functions()[d])
                    rows[place, k] = own[0][0]
                for s, value in zip(ends, own):
                    s[k] = value[0]
            outputs.append(rows)
            last.append(ends)
        y = np.stack(outputs, 1)
        ends = [np.stack([end[s] for end in last]) for s in range(self.states)]
        if self.layout:
            y, ends = y.transpose(2, 0, 1, 3), [s.transpose(1, 0, 2) for s in ends]
        return tuple(a.astype(dtype) for a in (y, *ends))

    def step(self, x: Array, state: list[Array], w: Array, r: Array, b: Array, holes: Array, f: list[Activation]
             ) -> list[Array]:
        raise NotImplementedError

    def clipped(self, x: Array) -> Array:
        return x if self.clip is None else np.clip(x, -self.clip, self.clip)

    # ---- lowering --------------------------------------------------------------------------------------------------------
    def lower(self, e: Emitter, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
              first: Value | None = None, cell: Value | None = None, peepholes: Value | None = None) -> tuple[Datum, ...]:
        def weights(d: int, working: ElementType) -> Weights:
            return Weights.of(e, self, d, working, w, r, b, peepholes)
        return self.lowered(e, x, weights, lengths, (first, cell)[:self.states])

    def lowered(self, e: Emitter, x: Value, weights_of: Callable[[int, ElementType], Weights], lengths: Value | None,
                first: Sequence[Value | None]) -> tuple[Datum, ...]:
        """Return the results of all directions, with the weights of each."""
        own = x.tensor.element
        working = working_type(own, False, True)
        seen = e.cast(e.transpose(x, (1, 0, 2)) if self.layout else x, working)
        steps, batch, _ = seen.tensor.dims
        if not steps or not batch:
            raise Problem(f"{x.type} has no steps", kind="unsupported")
        counts = None if lengths is None else e.cast(lengths, I32)
        outputs, last = [], []
        for d, back in enumerate(self.directions()):
            weights = weights_of(d, working)
            state = [self.state(e, s, d, batch, weights) for s in first]
            turned = self.turned(e, seen, counts) if back else seen
            rows, ends = self.run(e, turned, state, counts, weights, self.functions()[d])
            rows = self.turned(e, rows, counts) if back else rows
            outputs.append(e.reshape(rows, (steps, 1, batch, weights.hidden)))
            last.append(ends)
        y = e.concat(outputs, 1)
        finals = [e.concat([e.reshape(end[s], (1, *end[s].tensor.dims)) for end in last], 0) for s in range(self.states)]
        if self.layout:
            y, finals = e.transpose(y, (2, 0, 1, 3)), [e.transpose(s, (1, 0, 2)) for s in finals]
        return tuple(e.cast(v, own) for v in (y, *finals))

    def state(self, e: Emitter, given: Value | None, d: int, batch: int, weights: Weights) -> Value:
        """Return the state before the first step, [batch, hidden]."""
        working = weights.projected_bias.tensor.element
        if given is None:
            return e.constant(np.zeros((batch, weights.hidden), working.dtype), working)
        wide = e.cast(given, working)
        if self.layout:
            wide = e.transpose(wide, (1, 0, 2))
        return e.reshape(e.slice(wide, (d, 0, 0), (1, batch, weights.hidden)), (batch, weights.hidden))

    def turned(self, e: Emitter, x: Value, counts: Value | None) -> Value:
        """Return each sequence reversed from its end, [steps, batch, ...]."""
        if counts is None:
            return reversed_axis(e, x, 0)
        steps, batch, *_ = x.tensor.dims
        place = Term(e, e.constant(np.arange(steps, dtype=np.int32)[None]))
        given = Term(e, e.reshape(counts, (batch, 1)))
        places = e.select((given > place).value, (given - 1 - place).value, place.value)
        return e.transpose(gathered(e, e.transpose(x, (1, 0, 2)), places, 1, 1), (1, 0, 2))

    def run(self, e: Emitter, x: Value, state: list[Value], counts: Value | None, weights: Weights, f: list[Activation]
            ) -> tuple[Value, list[Value]]:
        """Run all steps of one direction: return the results of the steps, [steps, batch, hidden], and the state after the
        last."""
        steps, batch, inputs = x.tensor.dims
        flat = weights.projected(e, e.reshape(x, (steps * batch, inputs)))
        rows = list_of(e.reshape(e.sum(flat, weights.projected_bias), (steps, batch, flat.tensor.dims[-1])))

        def one(number: Value, before: Sequence[Datum]) -> list[Value]:
            old = [s for s in before if isinstance(s, Value)]
            new = self.lowered_step(e, element_at(e, rows, number), old, weights, f)
            if counts is None:
                return [*new, new[0]]
            goes = e("greater", e.reshape(counts, (batch, 1)), e.reshape(e.cast(number, I32), (1, 1)))
            kept = [e.select(goes, a, s) for a, s in zip(new, old)]
            return [*kept, e.select(goes, new[0], e.splat(0, new[0]))]

        if steps == 1:
            *ends, row = one(e.constant(np.array(0, np.int64)), state)
            return e.reshape(row, (1, *row.tensor.dims)), ends
        most = e.constant(np.array(steps, np.int64))

        def body(held: Sequence[Datum]) -> list[Datum]:
            number, *before, items = held
            assert isinstance(number, Value) and isinstance(items, ListOfTensors)
            *ends, row = one(number, before)
            return [e.sum(number, e.constant(np.array(1, np.int64))), *ends, with_element(e, items, number, row)]

        def test(held: Sequence[Datum]) -> Datum:
            assert isinstance(held[0], Value)
            return e("greater", most, held[0])
        start: list[Datum] = [e.constant(np.array(0, np.int64)), *state, ListOfTensors(steps, None)]
        _, *finals, items = loop(e, start, test, body)
        assert isinstance(items, ListOfTensors)
        return tensor_of(e, items), [s for s in finals if isinstance(s, Value)]

    def lowered_step(self, e: Emitter, x: Value, state: list[Value], weights: Weights, f: list[Activation]) -> list[Value]:
        raise NotImplementedError

    def held(self, x: Term) -> Term:
        return x if self.clip is None else clamp(x, -self.clip, self.clip)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of one direction: [inputs, gates * hidden], [hidden, gates * hidden], the biases of both, and the
    peepholes."""
    w: Value
    r: Value
    projected_bias: Value
    recurrent_bias: Value
    holes: tuple[Value, ...]
    hidden: int

    @staticmethod
    def of(e: Emitter, node: Recurrent, d: int, working: Any, w: Value, r: Value, b: Value | None, p: Value | None) -> Weights:
        hidden = r.tensor.dims[-1]
        width = node.gates * hidden
        if w.tensor.dims[1:2] != (width,) or r.tensor.dims != (len(node.directions()), width, hidden):
            raise Problem(f"weights of {w.type} and {r.type} are none of {node.gates} gates in "
                          f"{len(node.directions())} directions", kind="shape")

        def matrix(v: Value) -> Value:
            return e.cast(e.transpose(of_direction(e, v, d), (1, 0)), working)
        return Weights(matrix(w), matrix(r), *halves(e, b, d, width, working), peepholes_of(e, p, d, hidden, working), hidden)

    def projected(self, e: Emitter, x: Value) -> Value:
        """Return rows of the input times its weights."""
        return batched_product(e, x, self.w, self.w.tensor.element)

    def gate(self, e: Emitter, x: Value, number: int) -> Term:
        """Return the columns of one gate."""
        return Term(e, e.slice(x, (0, number * self.hidden), (x.tensor.dims[0], self.hidden)))

    def recurrent(self, e: Emitter, h: Value, first: int = 0, count: int | None = None) -> Value:
        """Return h times the recurrent weights of some gates, with their biases."""
        count = self.r.tensor.dims[1] // self.hidden - first if count is None else count
        columns = e.slice(self.r, (0, first * self.hidden), (self.hidden, count * self.hidden))
        bias = e.slice(self.recurrent_bias, (0, first * self.hidden), (1, count * self.hidden))
        return e.sum(batched_product(e, h, columns, columns.tensor.element), bias)


def of_direction(e: Emitter, v: Value, d: int) -> Value:
    """Return the part of one direction, which is the first axis."""
    dims = v.tensor.dims
    return e.reshape(e.slice(v, (d, *[0] * (len(dims) - 1)), (1, *dims[1:])), dims[1:])


def halves(e: Emitter, b: Value | None, d: int, width: int, working: ElementType) -> tuple[Value, Value]:
    """Return the biases of a direction's two products, each [1, width]."""
    if b is None:
        zero = e.constant(np.zeros((1, width), working.dtype), working)
        return zero, zero
    wide = e.cast(b, working)
    first, second = (e.reshape(e.slice(wide, (d, k * width), (1, width)), (1, width)) for k in range(2))
    return first, second


def peepholes_of(e: Emitter, p: Value | None, d: int, hidden: int, working: ElementType) -> tuple[Value, ...]:
    return () if p is None else tuple(
        e.cast(e.reshape(e.slice(p, (d, k * hidden), (1, hidden)), (1, hidden)), working) for k in range(3))


@operator("RNN")
class RNN(Recurrent):
    def step(self, x: Array, state: list[Array], w: Array, r: Array, b: Array, holes: Array, f: list[Activation]
             ) -> list[Array]:
        n = r.shape[0]
        return [f[0].numpy(self.clipped(x @ w.T + state[0] @ r.T + b[:n] + b[n:]))]

    def lowered_step(self, e: Emitter, x: Value, state: list[Value], weights: Weights, f: list[Activation]) -> list[Value]:
        total = Term(e, e.sum(x, weights.recurrent(e, state[0])))
        return [f[0].formula(self.held(total)).value]


@operator("GRU")
class GRU(Recurrent):
    """Gates in the order update, reset, hidden."""
    gates = 3
    own = ("Sigmoid", "Tanh")

    def step(self, x: Array, state: list[Array], w: Array, r: Array, b: Array, holes: Array, f: list[Activation]
             ) -> list[Array]:
        (h,), n = state, r.shape[1]
        wx, bw, br = x @ w.T, b[:3 * n], b[3 * n:]
        z, reset = (f[0].numpy(self.clipped(wx[:, k * n:(k + 1) * n] + h @ r[k * n:(k + 1) * n].T + bw[k * n:(k + 1) * n] +
                                            br[k * n:(k + 1) * n])) for k in range(2))
        own = wx[:, 2 * n:] + bw[2 * n:]
        if self.linear_before_reset:
            new = f[1].numpy(self.clipped(own + reset * (h @ r[2 * n:].T + br[2 * n:])))
        else:
            new = f[1].numpy(self.clipped(own + (reset * h) @ r[2 * n:].T + br[2 * n:]))
        return [(1 - z) * new + z * h]

    def lowered_step(self, e: Emitter, x: Value, state: list[Value], weights: Weights, f: list[Activation]) -> list[Value]:
        h = Term(e, state[0])
        both = weights.recurrent(e, h.value, 0, 3 if self.linear_before_reset else 2)
        z, reset = (f[0].formula(self.held(weights.gate(e, x, k) + weights.gate(e, both, k))) for k in range(2))
        if self.linear_before_reset:
            after = reset * weights.gate(e, both, 2)
        else:
            after = Term(e, weights.recurrent(e, (reset * h).value, 2, 1))
        new = f[1].formula(self.held(weights.gate(e, x, 2) + after))
        return [((1 - z) * new + z * h).value]


@operator("LSTM")
class LSTM(Recurrent):
    """Gates in the order input, output, forget, cell; peepholes input, output, forget."""
    gates = 4
    own = ("Sigmoid", "Tanh", "Tanh")
    states = 2

    def step(self, x: Array, state: list[Array], w: Array, r: Array, b: Array, holes: Array, f: list[Activation]
             ) -> list[Array]:
        (h, c), n = state, r.shape[1]
        return self.cell_of(x @ w.T + h @ r.T + b[:4 * n] + b[4 * n:], c, holes, f)

    def cell_of(self, total: Array, c: Array, holes: Array, f: list[Activation]) -> list[Array]:
        """Return the states after a step, from the sums of all gates and the previous cell state."""
        n = c.shape[-1]
        i, o, forget, new = (total[:, k * n:(k + 1) * n] for k in range(4))
        i = f[0].numpy(self.clipped(i + holes[:n] * c))
        forget = 1 - i if self.input_forget else f[0].numpy(self.clipped(forget + holes[2 * n:] * c))
        cell = forget * c + i * f[1].numpy(self.clipped(new))
        o = f[0].numpy(self.clipped(o + holes[n:2 * n] * cell))
        return [o * f[2].numpy(cell), cell]

    def lowered_step(self, e: Emitter, x: Value, state: list[Value], weights: Weights, f: list[Activation]) -> list[Value]:
        c = Term(e, state[1])
        total = e.sum(x, weights.recurrent(e, state[0]))
        i, o, forget, new = (weights.gate(e, total, k) for k in range(4))
        holes = [Term(e, v) for v in weights.holes]
        i = f[0].formula(self.held(i + holes[0] * c if holes else i))
        kept = 1 - i if self.input_forget else f[0].formula(self.held(forget + holes[2] * c if holes else forget))
        cell = kept * c + i * f[1].formula(self.held(new))
        o = f[0].formula(self.held(o + holes[1] * cell if holes else o))
        return [(o * f[2].formula(cell)).value, cell.value]
