"""The deviations of C source from MISRA C:2012 are those that the page lists, as cppcheck finds them in several models."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tosaic.jit.command_line.cli import main

ROOT = Path(__file__).parents[2]
MODELS = ("corpus/v_lstm", "corpus/f_mobilenet_block_int8", "corpus/f_while", "corpus/f_attention_block", "corpus/f_cond",
          "counter")
MANDATORY = {"9.1", "12.5", "13.6", "17.3", "17.4", "17.6", "19.1", "21.13", "21.17", "21.18", "21.19", "21.20", "22.2", "22.4",
             "22.5", "22.6"}
"""Rules from which nothing may deviate."""


def listed() -> set[str]:
    """The rules in the page's table."""
    section = (ROOT / "jit" / "README.md").read_text().partition("### MISRA C:2012")[2].partition("\n#")[0]
    return {rule for row in re.findall(r"^\| ([\d., ]+) \|", section, re.MULTILINE) for rule in row.split(", ")}


def deviations(model: str, folder: Path) -> set[str]:
    """The rules that cppcheck finds broken in the model's C source."""
    source = ROOT / "tests" / "data" / f"{model}.mlir"
    assert main(["compile", str(source), "-o", str(folder), "--emit", "c", "--name", "m"]) == 0
    done = subprocess.run(["cppcheck", "--addon=misra", "--enable=style", "--suppress=missingIncludeSystem", "--template={id}",
                           "m.c"], cwd=folder, capture_output=True, text=True, check=True)
    return set(re.findall(r"misra-c2012-([\d.]+)", done.stderr))


@pytest.mark.sampled(4)
@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="there is no cppcheck")
def test_the_page_lists_the_deviations_of_c_source(tmp_path: Path) -> None:
    found = set().union(*(deviations(model, tmp_path / model.replace("/", "_")) for model in MODELS))
    assert found and not found & MANDATORY
    assert found <= listed(), sorted(found - listed())
    assert listed() <= found, sorted(listed() - found)
