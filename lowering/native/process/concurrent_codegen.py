"""Concurrent code generation: while later kernels are scheduled, and before memory is planned, other processes compile earlier
ones.

A kernel's code depends on the plan only if the plan lets it overwrite what it reads. So each function is written as LLVM IR
when it is scheduled, as if it did not, and a full batch goes to a process. The module of the plan then declares the functions
that are compiled, and defines the others. Batches are cut by length alone, so that the same program gives the same image.
"""
from __future__ import annotations

import sys
import threading
from collections import deque
from dataclasses import field

from ....runtime.limits import checkpoint, seconds_left
from ....runtime.machine_code import is_debugged
from ....runtime.records import dataclass
from ...loops.ir import Function, first_of
from ...machine_code.codegen import binding, object_of
from ...machine_code.link import is_supported
from ...machine_code.llvm_writer import module, plain
from ...machine_code.split_module import FunctionText
from ...machine_code.worker_processes import Worker, processors
from ...target.features import SHAPES_TILES
from ...target.target import Target
from ..llvm.emit import EmittedEarlier, attributes, emit_function, own_definitions

LINES_OF_A_BATCH = 1500
"""Minimum number of lines of a batch: LLVM compiles fewer in less time than a process costs."""
MOST_WORKERS = 3


@dataclass(slots=True)
class Batch:
    """Functions that are compiled together: their definitions, their declarations, and finally their object."""
    declared: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    code: bytes = b""

    def add(self, definition: FunctionText) -> None:
        self.lines += definition.exported
        self.names.append(definition.name.strip('"'))

    def text(self, target: Target) -> str:
        declarations = [text for text in self.declared.values() if text.startswith("declare")]
        return module(target.triple, declarations, own_definitions(self.declared), self.lines, [attributes(target)])


class ConcurrentCodegen:
    """The functions of one program that are compiled before its plan is made. A context: the processes end with it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.emitted = EmittedEarlier()
        self._batches, self._open = list[Batch](), Batch()
        self._waiting: deque[Batch] = deque()
        self._changed = threading.Condition()
        self._workers: list[Worker] = []
        self._is_closed = False

    def __enter__(self) -> ConcurrentCodegen:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.end()

    def add(self, function: Function) -> None:
        """Write a function that has been scheduled. A function equal to an earlier one is not compiled again."""
        checkpoint()
        first, (texts, definitions) = first_of(function), (self.emitted.texts, self.emitted.definitions)
        if first in texts:
            return
        text = texts[first] = emit_function(function, self.target, self._open.declared)
        if text in definitions:
            return
        name = f"early.{len(definitions)}_{plain(function.name)}"
        definitions[text] = FunctionText(tuple(f"define internal void @{name}{text}".split("\n")))
        self._open.add(definitions[text])
        if len(self._open.lines) >= LINES_OF_A_BATCH:
            self._start()

    def _start(self) -> None:
        """Give the open batch to the processes, and start another process up to the limit."""
        self._close_batch()
        if len(self._workers) < min(processors() - 1, MOST_WORKERS):
            binding()
            self._workers.append(Worker(self._object))
            threading.Thread(target=self._serve, args=(self._workers[-1],), daemon=True).start()

    def _close_batch(self) -> None:
        with self._changed:
            self._batches.append(self._open)
            self._waiting.append(self._open)
            self._changed.notify_all()
        self._open = Batch()

    def _object(self, text: str) -> bytes:
        return object_of(text, self.target)

    def _serve(self, worker: Worker) -> None:
        """Serve one worker from a thread of this process: give it batches until none is left, or until it fails."""
        while (batch := self._next(waits=True)) is not None:
            code = worker.compiled(batch.text(self.target))
            with self._changed:
                batch.code = code
                if not code:
                    self._waiting.appendleft(batch)
                self._changed.notify_all()
            if not code:
                return

    def _next(self, waits: bool) -> Batch | None:
        """Return a batch that nobody compiles yet. None: with `waits`, no more batches will come; else none is waiting, and
        none that is being compiled can still fail."""
        with self._changed:
            while not self._waiting and not self._is_closed and (waits or any(not b.code for b in self._batches)):
                self._changed.wait(seconds_left())
                checkpoint()
            return self._waiting.popleft() if self._waiting and not self._is_closed else None

    def name_of(self, function: Function) -> str:
        """Return the name of a function that is compiled here; empty for any other function."""
        text = self.emitted.texts.get(first_of(function))
        return self.emitted.definitions[text].name.strip('"') if text in self.emitted.definitions else ""

    @property
    def names(self) -> frozenset[str]:
        """Names of the functions that are compiled here."""
        return frozenset(definition.name.strip('"') for definition in self.emitted.definitions.values())

    @property
    def uses_tiles(self) -> bool:
        return any(SHAPES_TILES in text for text in self.emitted.definitions)

    def finish(self) -> list[bytes]:
        """Return the objects of all batches; this process compiles the batches that are still waiting."""
        if self._open.lines:
            self._close_batch()
        while (batch := self._next(waits=False)) is not None:
            batch.code = self._object(batch.text(self.target))
        return [batch.code for batch in self._batches]


def concurrent_codegen(target: Target) -> ConcurrentCodegen | None:
    """Return concurrent code generation for this process; None where it is not possible."""
    if is_debugged():
        return None
    return ConcurrentCodegen(target) if sys.platform.startswith("linux") and is_supported() and processors() > 1 else None
