"""What the modules in `systems/` have in common: tosaic behind the interface of Arm's runner.

The runner calls `runTestGraph` in the test's folder, then finds the results in the files that desc.json names.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from runner.tosa_test_runner import TosaTestRunner  # type: ignore[import-not-found]

from .system import Engine, Outcome, Subject


class TosaicRunner(TosaTestRunner):  # type: ignore[misc]
    """One test on one engine; subclasses say which."""
    engine: Engine

    def runTestGraph(self) -> tuple[Any, str | None]:
        """The graph result and a message; results are written where the runner looks for them."""
        run = Subject(self.testDirPath, self.testDesc).run(self.engine)
        for file, array in run.results.items():
            np.save(self.testDirPath / file, array)
        graph_result = TosaTestRunner.TosaGraphResult[run.outcome]
        return graph_result, None if run.outcome is Outcome.VALID else run.message
