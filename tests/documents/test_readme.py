"""The README is true: every block runs as printed and prints what it says, its links lead somewhere."""
from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import textwrap

import pytest

from .blocks import ROOT, Block, blocks, numbers, run_python, run_shell, words

README = ROOT / "README.md"
TEXT = README.read_text()
BLOCKS = blocks(README)
SET_UP = ".venv/bin/pip"
"""The blocks that begin on a fresh machine: `.ci/run` takes them from the README and runs them in a copy of the checkout."""

PYTHON = [block for block in BLOCKS if block.language == "python"]
SHELL = [block for block in BLOCKS if block.language == "sh" and SET_UP not in block.text]
FRESH = [block for block in BLOCKS if block.language == "sh" and SET_UP in block.text]
QUOTED = [block for block in BLOCKS if block.language == ""]


def missing(block: Block) -> list[str]:
    """Packages of other extras that a block needs and this environment lacks."""
    return sorted(name for name in block.packages & {"tensorflow", "torch"} if importlib.util.find_spec(name) is None)


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {block.language for block in BLOCKS} == {"python", "sh", ""}
    assert len(PYTHON) + len(SHELL) + len(FRESH) + len(QUOTED) == len(BLOCKS)
    assert min(map(len, (PYTHON, SHELL, FRESH, QUOTED))) >= 2


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_a_block_of_python_prints_what_the_readme_says(block: Block, tmp_path: pathlib.Path) -> None:
    if lacking := missing(block):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    printed = run_python(block, tmp_path)
    assert block.prints is not None, "a block says what it prints"
    assert words(printed) == words(block.prints)
    assert numbers(printed) == pytest.approx(numbers(block.prints), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_a_block_of_commands_runs_as_printed(block: Block, tmp_path: pathlib.Path) -> None:
    if "tests/conformance" in block.text:
        from ..conformance.environment import Unavailable, ensure
        try:
            ensure()
        except Unavailable as reason:
            pytest.skip(str(reason))
    assert run_shell(block, tmp_path).strip()


def test_the_model_is_saved_where_the_readme_says(tmp_path: pathlib.Path) -> None:
    block, = (block for block in PYTHON if ".save(" in block.text)
    run_python(block, tmp_path)
    named = re.findall(r"build/([\w.]+)", block.text)
    assert {path.name for path in (tmp_path / "build").iterdir()} == set(named) != set()


def test_ci_runs_the_two_commands_for_a_fresh_machine_as_printed() -> None:
    """Both, each on one line, are what the function of `.ci/run` finds in the README; nothing else is."""
    script = (ROOT / ".ci" / "run").read_text()
    function = re.search(r"^readme_command\(\).*$", script, re.MULTILINE)
    assert function and len(FRESH) == 2
    for number, block in enumerate(FRESH, start=1):
        lines = f"{function[0]}\nreadme_command {number}"
        found = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, cwd=ROOT)
        assert found.stdout == block.text and f'"$(readme_command {number})"' in script


def test_a_quotation_is_of_the_source_or_of_totals() -> None:
    quoted, totals = (block.text for block in QUOTED)
    source = (ROOT / "lowering/dialects/tosa/reduction.py").read_text()
    assert textwrap.indent(quoted, "    ", lambda line: bool(line.strip())) in source
    assert all(line.startswith("Totals (tosaic_") for line in totals.splitlines())


def test_every_link_leads_to_a_file() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if not link.startswith("http")]
    assert links and all((ROOT / link).exists() for link in links)


def test_no_figure_is_left_out() -> None:
    assert "FIGURES" not in TEXT
