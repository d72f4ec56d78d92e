"""For Arm's runner, `--sut-module tosaic_c`: tosaic's C source, compiled by gcc, as the system under test."""
from __future__ import annotations

from tests.conformance.runner_system import TosaicRunner


class TosaSUTRunner(TosaicRunner):
    """The class that Arm's runner looks for."""
    engine = "c"
