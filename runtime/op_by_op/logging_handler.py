"""The logging handler: logs operations with their arguments, then passes them to its fallback."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arguments import MLIR_NAMES
from ..errors import printable
from .attributes import FrozenOpAttrs
from .handle import TensorHandle
from .handler import OpHandler, OpInvocation
from .tensor_kinds import SCALARS, STRINGS

Write = Callable[[str], object]


def say(line: str) -> None:
    """Print a line; attributes and contents may hold any character."""
    print(printable(line))


class LoggingOpHandler(OpHandler):
    """Logs operators, attributes and inputs; with `sync_log_results` it waits for the results and logs them, too. `write`
    receives one line at a time."""

    def __init__(self, fallback: OpHandler, write: Write = say, sync_log_results: bool = False) -> None:
        super().__init__(fallback)
        self.write, self.sync_log_results = write, sync_log_results
        self._ids = itertools.count()

    def execute(self, invocation: OpInvocation) -> bool:
        number = next(self._ids)
        self.write(f"[{number}] dispatch '{invocation.op_name}' {len(invocation.arguments)} argument(s), "
                   f"{len(invocation.results)} result(s), {attributes_head(invocation.attributes)}")
        for name, entry in invocation.attributes.items():
            self.write(f"  '{name}' {entry.text()}")
        self.log_inputs(number, invocation.op_name, [a.copy() if a.is_valid else a for a in invocation.arguments])
        assert self.fallback is not None
        done = self.fallback.run(invocation)
        if done and self.sync_log_results:
            self.log(f"Outputs for [{number}]: '{invocation.op_name}':", "  Output for", number, waited(invocation.results))
        return done

    def log_inputs(self, number: int, op_name: str, arguments: Sequence[TensorHandle]) -> None:
        """Log the inputs now, or when the last of them is settled."""
        if not arguments:
            return
        left = len(arguments)

        def arrived(_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                self.log(f"Inputs for [{number}]: '{op_name}':", "  Input for", number, arguments)

        for argument in arguments:
            argument.then(arrived)

    def log(self, head: str, begin: str, number: int, handles: Sequence[TensorHandle]) -> None:
        self.write(head)
        for place, handle in enumerate(handles):
            self.write(f"{begin} [{number}] tensor {place}: {tensor_text(handle)}")


def waited(results: Sequence[TensorHandle | None]) -> list[TensorHandle]:
    """Return the results, once they are settled."""
    found = [r for r in results if r is not None]
    for result in found:
        result.wait()
    return found


def attributes_head(attributes: FrozenOpAttrs) -> str:
    return f"OpAttrs contains {len(attributes)} entries:" if len(attributes) else "no attributes"


def tensor_text(handle: TensorHandle) -> str:
    """Return a settled handle on one line."""
    if handle.error is not None:
        return f"error: {handle.error.message}"
    array = handle.get()
    shape, values = f"shape = [{', '.join(map(str, array.shape))}]", ", ".join(map(value_text, array.ravel().tolist()))
    if array.dtype == STRINGS:
        return f"StringHostTensor {shape}, values = [{values}]"
    element = MLIR_NAMES.get(array.dtype.name, array.dtype.name)
    if array in SCALARS and array.size:
        return f"ScalarHostTensor dtype = {element}, {shape}, value = {value_text(array.ravel()[0].item())}"
    return f"DenseHostTensor dtype = {element}, {shape}, values = [{values}]"


def value_text(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{printable(value.decode("utf-8", "backslashreplace"))}"'
    return f"{value:e}" if isinstance(value, float | np.floating) else str(int(value))
