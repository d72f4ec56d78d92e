"""`tosaic targets`: the machines that have names, as a table and as JSON."""
from __future__ import annotations

from typing import Any

from ...lowering.target.machines import ALIASES, MACHINES, Machine
from ...lowering.target.presets import host
from .answer import Table

COLUMNS = ("name", "core", "instruction set", "float unit", "vectors", "code", "boards")
NOTE = """host is this machine. A board's name is a name of its machine, too; --cpu also takes LLVM's names of other processors.
Code is an object, or C source where there is no back end for the processor."""


def list_targets() -> tuple[str, dict[str, Any], Table]:
    """Return the list as text, as JSON and for terminals."""
    rows = [COLUMNS, *map(row, MACHINES.values())]
    widths = [max(len(r[i]) for r in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip() for r in rows]
    here = f"host: {host().triple}, {host().cpu}"
    return ("\n".join([*lines, "", here, NOTE]), {"targets": [entry(m) for m in MACHINES.values()]},
            Table(COLUMNS, rows[1:], f"{here}\n{NOTE}"))


def row(machine: Machine) -> tuple[str, ...]:
    return (machine.name, machine.core, machine.instructions, machine.float_unit, machine.vectors,
            "object" if machine.target.has_object_code else "C source", ", ".join(machine.boards))


def entry(machine: Machine) -> dict[str, Any]:
    target = machine.target
    return {"name": machine.name, "core": machine.core, "instructions": machine.instructions,
            "float_unit": list(target.float_unit), "vector_bytes": target.vector_bytes if target.vector_bytes > 1 else 0,
            "object": target.has_object_code, "boards": list(machine.boards),
            "aliases": [alias for alias, name in ALIASES.items() if name == machine.name],
            "triple": target.triple, "cpu": target.cpu, "features": target.features}
