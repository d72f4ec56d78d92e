"""For Arm's runner, `--sut-module tosaic_interpreter`: tosaic's reference interpreter as the system under test."""
from __future__ import annotations

from tests.conformance.runner_system import TosaicRunner


class TosaSUTRunner(TosaicRunner):
    """The class that Arm's runner looks for."""
    engine = "interpreter"
