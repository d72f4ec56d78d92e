"""Options and fixtures of the whole suite. `pytest --update-golden` writes the golden texts again.

The cache of machine code is off, here and in the processes that tests start: what is tested is the compiler. Libraries that
results are compared with run on one thread each: the suite's workers take the cores.
"""
from __future__ import annotations

import datetime
import gc
import os
import pathlib
from collections.abc import Callable

import pytest

from .sampling import parted

os.environ["TOSAIC_CACHE"] = "off"
os.environ.setdefault("TOSAIC_TEST_DAY", str(datetime.date.today().toordinal()))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts again")
    parser.addoption("--whole", action="store_true", help="take all cases of tests that are marked as sampled")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the cases of the day (`sampling`), unless the run asks for tests by name."""
    if config.option.whole or config.option.keyword or any("::" in argument for argument in config.args):
        return
    items[:], left = parted(items, int(os.environ["TOSAIC_TEST_DAY"]))
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is collected lives until the end: the garbage collector need not look through it again."""
    gc.freeze()


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
