"""Variables that a module reads and does not declare: another graph of the process declares them, this one says their types."""
from __future__ import annotations

from .graph import Module, Operation
from .verify import symbol_of


def external_reads(module: Module) -> dict[str, Operation]:
    """The first read of each, by symbol."""
    inside = [o for f in module.functions for o in f.body.walk() if o.op.variable_effect]
    own = {symbol_of(o) for o in (*module.declarations, *inside) if o.op.variable_effect == "declare"}
    found: dict[str, Operation] = {}
    for operation in inside:
        if operation.op.variable_effect == "read" and symbol_of(operation) not in own:
            found.setdefault(symbol_of(operation), operation)
    return found
