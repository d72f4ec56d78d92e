"""A model file as an object: its entry functions are attributes and items, to be traced, lowered, compiled, called.

What a file is shows in its bytes: `TOSA` at byte 4 is a .tosa, `TFL3` there is a .tflite, which the converter bridge turns
into MLIR; everything else has to be MLIR text.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..lowering.graph.graph import Function, Module
from ..lowering.graph.types import Array
from ..runtime.errors import Problem
from .calls import through, until_quick
from .dynamic import KEPT, Shape, is_dynamic, shapes_of, with_shapes
from .stages import Compiled, Lowered, Traced, show_graph

if TYPE_CHECKING:
    from ..lowering.memory.planner import PlanOptions
    from ..lowering.native.target import Target
    from ..runtime.variables import Context
    from .aot import Artifact
    from .crosscheck import CrossCheck

class Entry:
    """An entry function of a model. The first call compiles it."""
    __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None) -> Any: ...

    def __init__(self, module: Module, function: Function) -> None:
        self._traced = Traced(module, function.name)
        self._compiled: Compiled | None = None
        self._lock = threading.Lock()
        self._special: dict[tuple[tuple[str, tuple[int, ...]], ...], Entry] = {}
        self.is_dynamic = is_dynamic(function)
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self._traced.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names and types of the inputs, in order."""
        return self._traced.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """Types of the outputs, in order."""
        return self._traced.outputs

    def __repr__(self) -> str:
        return f"<Entry {self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def trace(self) -> Traced:
        return self._traced

    def lower(self, target: Target | None = None, memory: PlanOptions | None = None) -> Lowered:
        return self._traced.lower(target, memory)

    def compile(self, target: Target | None = None, context: Context | None = None,
                memory: PlanOptions | None = None) -> Compiled:
        """Machine code; kept for calls when it is for this machine, the process, and memory of any size."""
        if target is not None or context is not None or memory is not None:
            return self._traced.compile(target, context, memory)
        with self._lock:
            if self._compiled is None:
                self._compiled = self._traced.compile()
            return self._compiled

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None) -> Any:
        """One array, or a tuple of several, for arrays in the order of `inputs` or one mapping by name."""
        if self.is_dynamic:
            return self.specialize(shapes_of(self._traced.function, inputs))(*inputs, out=out, context=context)
        return (self._compiled or self.compile())(*inputs, out=out, context=context)

    def _quick(self) -> Callable[..., Any] | None:
        """What calls can do once it is compiled."""
        return None if self.is_dynamic or self._compiled is None else self._compiled.__call__

    def specialize(self, shapes: Mapping[str, Shape]) -> Entry:
        """The entry for inputs of these shapes, by name: what a model with dynamic extents is compiled as. A call does it by
        itself; the last sets of shapes are kept."""
        key = tuple(sorted((name, tuple(map(int, shape))) for name, shape in shapes.items()))
        with self._lock:
            if key not in self._special:
                module = with_shapes(self._traced.module, self._traced.function, shapes)
                if len(self._special) >= KEPT:
                    self._special.pop(next(iter(self._special)))
                self._special[key] = Entry(module, module.function(self.name))
            return self._special[key]

    def show(self, stage: str = "graph") -> str:
        """One stage as text."""
        return self._traced.show(stage)

    def check(self, calls: Sequence[Sequence[Array]], target: Target | None = None,
              memory: PlanOptions | None = None) -> CrossCheck:
        """The compiled function against the reference interpreter."""
        return self._traced.check(calls, target, memory)


class Model:
    """The entry functions of a module. Called itself, it is its only entry, or `main`."""
    __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None) -> Any: ...

    def __init__(self, module: Module) -> None:
        self.module = module
        self.entries = {f.name: Entry(module, f) for f in module.functions if not f.is_private}
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    def entry(self, name: str | None = None) -> Entry:
        """The entry of that name; without one the only one, or `main`."""
        found = self.module.function(name)
        if found.name not in self.entries:
            raise Problem(f"{found.name} is private, it cannot be called from outside", found.position, kind="argument",
                          help=f"the entries are {', '.join(self.entries) or 'none'}")
        return self.entries[found.name]

    def __getitem__(self, name: str) -> Entry:
        return self.entry(name)

    def __getattr__(self, name: str) -> Entry:
        entries: dict[str, Entry] = self.__dict__.get("entries", {})
        if name not in entries:
            raise AttributeError(f"the model has no entry {name}; it has {', '.join(entries) or 'none'}")
        return entries[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.entries})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None) -> Any:
        """A call of the only entry, or of `main`."""
        return self.entry()(*inputs, out=out, context=context)

    def _quick(self) -> Callable[..., Any] | None:
        """What calls can do once the entry is compiled."""
        return self.entry()._quick()

    def save(self, directory: str | os.PathLike[str], name: str, target: Target | None = None,
             memory: PlanOptions | None = None, *, self_contained: bool = False, library: bool = False,
             main: bool = False) -> Artifact:
        """Write all entry functions as one object with its C header, as `Lowered.save` does for one."""
        from .aot import Form, save
        lowered = [entry.lower(target, memory) for entry in self]
        return save(lowered, directory, name, Form(self_contained, library, main))

    def show(self, whole: bool = False) -> str:
        """The module as MLIR text, long constants elided unless `whole`."""
        return show_graph(self.module, whole)

    def __str__(self) -> str:
        return self.show()

    def __repr__(self) -> str:
        return f"<Model with {', '.join(self.entries) or 'no entries'}>"


def load_model(source: Any, name: str | None = None) -> Model:
    """Read a model from a path, an open binary file, bytes, or MLIR text; verified."""
    from ..lowering.graph.verify import verify
    module = read_model(source, name)
    verify(module)
    return Model(module)


def read_model(source: Any, name: str | None = None) -> Module:
    """The module of a source, not verified yet. `name` is what problems call it."""
    from ..lowering.text.reader import read_module
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return read_module(source, name or "<text>")
    data, shown = read_bytes(source)
    shown = name or shown
    match data[4:8]:
        case b"TOSA":
            from ..lowering.flatbuffer.reader import read_module as read_flatbuffer
            return read_flatbuffer(data, shown)
        case b"TFL3":
            from .bridges.tflite import mlir_of_tflite
            return read_module(mlir_of_tflite(data, shown), f"{shown} (as MLIR)")
        case _:
            return read_module(data, shown)


def read_bytes(source: Any) -> tuple[bytes, str]:
    """The bytes of a source, and its name for messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    if hasattr(source, "read"):
        data = source.read()
        return data.encode() if isinstance(data, str) else data, str(getattr(source, "name", "<stream>"))
    if not isinstance(source, str | os.PathLike):
        raise Problem(f"a model cannot be read from a {type(source).__name__}", kind="argument",
                      help="pass a path, an open file, bytes, or MLIR text")
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(), str(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path} cannot be read: {reason}", kind="file") from None
