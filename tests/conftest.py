"""Options and fixtures of the whole suite. `pytest --update-golden` writes the golden texts again.

The cache of machine code is off, here and in the processes that tests start: what is tested is the compiler.
"""
from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

os.environ["TOSAIC_CACHE"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts again")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): the text is that of tests/golden/NAME."""
    def check(name: str, text: str) -> None:
        path = pathlib.Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert path.exists(), f"{path.name} does not exist; pytest --update-golden writes it"
        assert text == path.read_text()

    return check
