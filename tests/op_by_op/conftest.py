"""A runtime of its own for each test, with variables of its own."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
import tosaic


@pytest.fixture
def diagnostics() -> list[object]:
    """What the runtime `rt` has reported to its client."""
    return []


@pytest.fixture
def rt(diagnostics: list[object]) -> Iterator[tosaic.CoreRuntime]:
    runtime = tosaic.CoreRuntime(diagnostics.append, context=tosaic.Context("test"))
    yield runtime
    runtime.shutdown()
