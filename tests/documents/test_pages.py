"""The pages are true: every block runs as printed and prints what the page says, quotations are of the file that they name,
links lead somewhere.

A block of `python` or `sh` is run in a copy of the checkout; of `python` twice, the second time with its code from the cache.
A block after a line "prints" is what the block before it prints. Any other block is a quotation: of the file to which the last
link before it leads.
"""
from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import textwrap

import pytest

from . import command_line_page
from .blocks import ROOT, Block, blocks, numbers, run_python, run_shell, words

README = ROOT / "README.md"
MOST_BYTES = 8 << 10
"""Of README.md: what somebody reads in five minutes."""
PAGES = [path for name in ("README.md", "lowering/README.md", "jit/README.md", "runtime/README.md", "samples/README.md",
                           "tests/README.md", "tests/bench/README.md", "tests/conformance/README.md", ".github/CONTRIBUTING.md",
                           "SECURITY.md", "CHANGELOG.md") if (path := ROOT / name).exists()]
SET_UP = ".venv/bin/pip"
"""The blocks that begin on a fresh machine: `.ci/run` takes them from the README and runs them in a copy of the checkout."""
SLOW = {"tensorflow", "torch"}
"""Packages whose import takes seconds: blocks with them run once, and with code from the cache not again."""
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")

BLOCKS = [(page, block) for page in PAGES for block in blocks(page)]
PYTHON = [(page, block) for page, block in BLOCKS if block.language == "python"]
SHELL = [(page, block) for page, block in BLOCKS if block.language == "sh" and SET_UP not in block.text]
FRESH = [block for page, block in BLOCKS if block.language == "sh" and SET_UP in block.text]
QUOTED = [(page, block) for page, block in BLOCKS if block.language not in ("python", "sh")]


def name_of(value: pathlib.Path | Block) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, pathlib.Path) else str(value)


def missing(block: Block) -> list[str]:
    """Packages of other extras that a block needs and this environment lacks."""
    return sorted(name for name in block.packages & {"tensorflow", "torch"} if importlib.util.find_spec(name) is None)


def agree(printed: str, promised: str, page: pathlib.Path, update: bool) -> None:
    """What is printed is what the page promises; with `--update-golden`, the page then promises it."""
    if update and words(printed) != words(promised):
        page.write_text(page.read_text().replace(promised, printed))
        return
    assert words(printed) == words(promised)
    assert numbers(printed) == pytest.approx(numbers(promised), rel=1e-6, abs=1e-6)


def test_the_readme_has_blocks_of_each_kind_and_is_short() -> None:
    kinds = [block.language for page, block in BLOCKS if page == README]
    assert "python" in kinds and "sh" in kinds
    assert README.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=name_of)
def test_a_block_of_python_prints_what_the_page_says(page: pathlib.Path, block: Block, tmp_path: pathlib.Path,
                                                     request: pytest.FixtureRequest) -> None:
    if lacking := missing(block):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    assert block.prints is not None, "a block says what it prints"
    update = request.config.getoption("--update-golden") and "\n\nprints\n\n" in page.read_text()
    for run in ("cold", "warm")[:1 if block.packages & SLOW else 2]:  # the second has its code from the cache of the first
        folder = tmp_path / run
        folder.mkdir()
        agree(run_python(block, folder, tmp_path / "cache"), block.prints, page, update)


@pytest.mark.parametrize(("page", "block"), SHELL, ids=name_of)
def test_a_block_of_commands_runs_as_printed(page: pathlib.Path, block: Block, tmp_path: pathlib.Path,
                                             request: pytest.FixtureRequest) -> None:
    if "tests/conformance" in block.text:
        from ..conformance.environment import Unavailable, ensure
        try:
            ensure()
        except Unavailable as reason:
            pytest.skip(str(reason))
    printed = run_shell(block, tmp_path)
    assert printed.strip()
    if block.prints is not None:
        agree(printed, block.prints, page, request.config.getoption("--update-golden"))


@pytest.mark.parametrize(("page", "block"), [(p, b) for p, b in PYTHON if ".save(\"build\"" in b.text], ids=name_of)
def test_a_model_is_saved_where_the_page_says(page: pathlib.Path, block: Block, tmp_path: pathlib.Path) -> None:
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


@pytest.mark.parametrize(("page", "block"), QUOTED, ids=name_of)
def test_a_quotation_stands_in_the_file_that_the_page_names(page: pathlib.Path, block: Block) -> None:
    before = page.read_text().split("\n")[:block.line - 1]
    links = [link for link in LINK.findall("\n".join(before)) if not link.startswith("http")]
    assert links, "a quotation follows a link to its file"
    source = textwrap.dedent((page.parent / links[-1]).read_text())
    assert any(textwrap.indent(block.text, " " * n, lambda line: bool(line.strip())) in source for n in (0, 4, 8))


def test_the_page_of_the_command_line_is_made_from_the_parser(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        command_line_page.PAGE.write_text(command_line_page.page_with(command_line_page.part()))
    assert command_line_page.PAGE.read_text() == command_line_page.page_with(command_line_page.part())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: pathlib.Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if not link.startswith("http")]
    assert all((page.parent / link).exists() for link in links), links


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_figure_is_left_out(page: pathlib.Path) -> None:
    assert "FIGURES" not in page.read_text()
