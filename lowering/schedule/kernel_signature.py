"""The signature of a kernel: everything that its schedule depends on except the data of constants, as nested tuples that
compare by value. Kernels of one signature differ only in the names of buffers and axes, and in the data of constants.
"""
from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping
from dataclasses import field

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ..elements.expression import Apply, Buffer, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from ..elements.traverse import children
from ..kernels.kernel import Kernel

Text = tuple[Hashable, ...]


@dataclass(slots=True)
class KernelSignature:
    """A numbering of nodes, buffers, axes and computed indices, in the order in which the walk reaches them."""
    nodes: dict[int, int] = field(default_factory=dict)
    lines: list[Text] = field(default_factory=list)
    buffers: dict[Buffer, int] = field(default_factory=dict)
    axes: dict[Axis, int] = field(default_factory=dict)
    terms: dict[Computed, int] = field(default_factory=dict)

    def value(self, e: Expr) -> int:
        """Return the number of a node; without recursion, because chains may be long."""
        stack = [e]
        while stack:
            node = stack[-1]
            pending = [] if id(node) in self.nodes else [x for x in children(node) if id(x) not in self.nodes]
            if pending:
                stack += pending
                continue
            stack.pop()
            if id(node) not in self.nodes:
                self.nodes[id(node)] = len(self.lines)
                self.lines.append(self.line(node))
        return self.nodes[id(e)]

    def line(self, e: Expr) -> Text:
        match e:
            case Apply(primitive, args, dtype):
                return primitive, dtype, *[self.nodes[id(a)] for a in args]
            case Const(value, dtype):
                return "constant", dtype, type(value).__name__, bits(value)
            case Load(buffer, index):
                return "load", self.buffer(buffer), *map(self.index, index)
            case Cast(arg, dtype, is_bits):
                return "cast", dtype, is_bits, self.nodes[id(arg)]
            case Guard(where, inside, outside):
                return "guard", self.conditions(where), self.nodes[id(inside)], self.nodes[id(outside)]
            case Reduce(primitive, axes, body, where):
                own = tuple(map(self.axis, axes))
                return "reduce", primitive, own, self.nodes[id(body)], self.conditions(where)
            case IndexValue(index, dtype):
                return "index", dtype, self.index(index)
        raise TypeError(e)

    def buffer(self, buffer: Buffer) -> int:
        return self.buffers.setdefault(buffer, len(self.buffers))

    def axis(self, axis: Axis) -> int:
        return self.axes.setdefault(axis, len(self.axes))

    def conditions(self, where: tuple[Range, ...]) -> Text:
        return tuple([(self.index(r.index), r.low, r.high) for r in where])

    def index(self, i: Affine) -> Text:
        return i.const, *[(self.term(t), c) for t, c in i.terms]

    def term(self, term: Term) -> Hashable:
        match term:
            case Wrapped(source, extent):
                return "wrapped", self.index(source), extent
            case Computed(value, extent):
                return "computed", self.terms.setdefault(term, len(self.terms)), self.nodes[id(value)], extent
            case _:
                return self.axis(term)


def signature_of(kernel: Kernel, rings: Mapping[Buffer, Buffer]) -> tuple[Text, tuple[Buffer, ...]]:
    """Return the signature of a kernel whose buffers are stored in these rings, and its buffers, the output first."""
    signature = KernelSignature()
    signature.buffer(kernel.out)
    axes = tuple(map(signature.axis, kernel.axes))
    root = signature.value(kernel.value)
    buffers = tuple([(b.role, b.dtype, b.shape, b.copies, b.data is None, ring_of(b, rings)) for b in signature.buffers])
    return (root, axes, tuple(signature.lines), buffers, tuple([a.extent for a in signature.axes])), tuple(signature.buffers)


def ring_of(buffer: Buffer, rings: Mapping[Buffer, Buffer]) -> Text | None:
    ring = rings.get(buffer)
    return None if ring is None else (ring.role, ring.shape, ring.copies)


def bits(value: float | int) -> Hashable:
    """Return a key that tells constants apart: 0.0 and -0.0, which compare equal, have different keys; a NaN equals itself."""
    return struct.pack("<d", value) if isinstance(value, float) else value
