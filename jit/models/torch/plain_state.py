"""The check for state that a PyTorch module keeps in plain attributes: torch.export treats these as constants, so that a model
would always compute with the values of its first call. A module is refused if its forward reads such an attribute and then
changes it, or binds another value to it. A tensor that is written in place is no plain state: the graph has it as a
variable."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ....runtime.errors import Position, Problem, Source, printable
from ...followed import PLAIN, is_python_object
from ...kept_values import attributes

DEEP = 6
"""Maximum depth of nested objects to look at."""


def check_plain_state(module: Any, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], name: str) -> None:
    """Raise a Problem if the forward of the module changes a plain attribute that it has read. The forward runs on a copy,
    whose parameters are the module's own; the first of its two runs creates the values that are only created once."""
    import torch
    try:
        trial = copy.deepcopy(module, {id(p): p for p in module.parameters()})
        given, named = copy.deepcopy((inputs, dict(kwargs)))
        with warnings.catch_warnings(), torch.no_grad(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            trial(*given, **named)
            before, reads = states(trial), Reads(trial)
            with reads:
                trial(*given, **named)
    except Exception:  # torch.export reports the error
        return
    after = states(trial)
    for place, value in before.items():
        if place in reads.first and after.get(place) != value:
            raise refused(module, place, name)


def refused(module: Any, place: tuple[str, str], name: str) -> Problem:
    path = ".".join(filter(None, place))
    code = getattr(type(module).forward, "__code__", None)
    position = Position(Source(code.co_filename), code.co_firstlineno, 1) if code else None
    return Problem(printable(f"forward of {name} reads the attribute {path} and changes it, which torch.export does once: a "
                             "graph keeps state in buffers alone"), position, kind="unsupported",
                   help=f"register it: self.register_buffer({place[1]!r}, torch.zeros(...)), and write it in place; or pass it "
                        "as an argument, and return it")


class Reads:
    """The plain attributes that a module and its submodules read before they write them, in this context."""

    def __init__(self, module: Any) -> None:
        self.first: set[tuple[str, str]] = set()
        self.written: set[tuple[str, str]] = set()
        self.classes = {path: type(inner) for path, inner in module.named_modules()}
        self.modules = dict(module.named_modules())

    def __enter__(self) -> Reads:
        for path, inner in self.modules.items():
            inner.__class__ = self._recording(path, type(inner))
        return self

    def __exit__(self, *exception: object) -> None:
        for path, inner in self.modules.items():
            inner.__class__ = self.classes[path]

    def _recording(self, path: str, of: Any) -> type:
        first, written = self.first, self.written

        def read(inner: Any, attribute: str) -> Any:
            if (path, attribute) not in written:
                first.add((path, attribute))
            return of.__getattribute__(inner, attribute)

        def write(inner: Any, attribute: str, value: Any) -> None:
            written.add((path, attribute))
            of.__setattr__(inner, attribute, value)
        return type(of.__name__, (of,), {"__getattribute__": read, "__setattr__": write})


def states(module: Any) -> dict[tuple[str, str], Any]:
    """Return the current state of the plain attributes of a module and its submodules."""
    import torch
    own = set(vars(torch.nn.Module()))
    return {(path, name): state(value, DEEP) for path, inner in module.named_modules()
            for name, value in vars(inner).items() if name not in own}


def state(value: Any, deep: int) -> Any:
    """Return a key that stays equal as long as a value is unchanged."""
    import torch
    match value:
        case _ if isinstance(value, PLAIN):
            return type(value), repr(value)
        case torch.Tensor() | torch.nn.Module():
            return id(value)  # writes into a tensor are state of the graph
        case np.ndarray():
            return value.shape, value.tobytes()
        case _ if deep == 0:
            return id(value)
        case list() | tuple():
            return type(value), [state(v, deep - 1) for v in value]
        case dict():
            return type(value), list(items(value, deep - 1))
        case set() | frozenset():
            return type(value), sorted(map(repr, value))
        case _ if is_python_object(value):
            return id(value), list(items(attributes(value), deep - 1))
        case _:
            return id(value)


def items(values: Mapping[Any, Any], deep: int) -> Iterator[tuple[Any, Any]]:
    return ((key, state(value, deep)) for key, value in values.items())
