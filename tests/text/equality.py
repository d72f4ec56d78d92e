"""Equality of modules: the same structure, operators, types and data, whatever their values are called."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tosaic.lowering.graph.graph import Block, Function, Module, Operation, Value


def equal_modules(a: Module, b: Module) -> bool:
    """Equal but for names of values and positions; fails with the first difference."""
    Comparison().modules(a, b)
    return True


class Comparison:
    """Goes through two graphs together; knows which values stand for each other."""

    def __init__(self) -> None:
        self.partner: dict[Value, Value] = {}

    def modules(self, a: Module, b: Module) -> None:
        assert a.name == b.name
        same(a.attributes, b.attributes, "module attributes")
        self.operations(a.declarations, b.declarations)
        assert len(a.functions) == len(b.functions)
        for f, g in zip(a.functions, b.functions):
            self.functions(f, g)

    def functions(self, f: Function, g: Function) -> None:
        assert (f.name, f.result_types, f.is_private) == (g.name, g.result_types, g.is_private)
        same(f.attributes, g.attributes, f"attributes of @{f.name}")
        for name, count in (("argument_attributes", len(f.arguments)), ("result_attributes", len(f.result_types))):
            none = ({},) * count
            same(getattr(f, name) or none, getattr(g, name) or none, f"{name} of @{f.name}")
        self.blocks(f.body, g.body)

    def blocks(self, a: Block, b: Block) -> None:
        self.values(a.arguments, b.arguments)
        self.operations(a.operations, b.operations)
        assert [self.partner[v] for v in a.yields] == list(b.yields)

    def operations(self, a: Sequence[Operation], b: Sequence[Operation]) -> None:
        assert len(a) == len(b)
        for o, p in zip(a, b):
            assert type(o.op) is type(p.op), (o, p)
            assert [self.partner[v] for v in o.operands] == list(p.operands), o
            same(fields(o.op), fields(p.op), f"fields of {o}")
            same(o.attributes, p.attributes, f"attributes of {o}")
            assert o.location == p.location
            assert len(o.regions) == len(p.regions)
            for r, s in zip(o.regions, p.regions):
                self.blocks(r, s)
            self.values(o.results, p.results)

    def values(self, a: Sequence[Value], b: Sequence[Value]) -> None:
        assert [v.type for v in a] == [v.type for v in b]
        for v, w in zip(a, b):
            same(v.constant, w.constant, f"data of %{v.name}")
            self.partner[v] = w


def fields(op: Any) -> dict[str, Any]:
    return {f.name: getattr(op, f.name) for f in dataclasses.fields(op)}


def same(a: Any, b: Any, what: str) -> None:
    """Equal values; arrays must agree in dtype, shape and bits."""
    assert type(a) is type(b), f"{what}: {a!r} and {b!r}"
    match a:
        case np.ndarray():
            assert (a.dtype, a.shape) == (b.dtype, b.shape), what
            assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), what
        case Mapping():
            assert set(a) == set(b), what
            for key in a:
                same(a[key], b[key], f"{what}.{key}")
        case tuple() | list():
            assert len(a) == len(b), what
            for i, (x, y) in enumerate(zip(a, b)):
                same(x, y, f"{what}[{i}]")
        case float():
            assert np.float64(a).tobytes() == np.float64(b).tobytes(), what
        case _ if dataclasses.is_dataclass(a):
            same(fields(a), fields(b), what)
        case _:
            assert a == b, f"{what}: {a!r} and {b!r}"
