"""Machines on which something costs more or less than it does, so that a test's small work is treated as large work is."""
from __future__ import annotations

from dataclasses import replace

import pytest
from tosaic.lowering.target.costs import COSTS
from tosaic.lowering.target.target import Target


def every_machine_costs(monkeypatch: pytest.MonkeyPatch, **costs: object) -> None:
    """For the rest of a test, every target has these costs, and the usual ones otherwise."""
    monkeypatch.setattr(Target, "costs", replace(COSTS, **costs))  # type: ignore[arg-type]
