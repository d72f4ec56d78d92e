"""The fenced blocks of a page, and what each claims: code to run, commands to run, or text that a run has printed.

A block of `python` claims what its `print` lines carry as comments; one of `python` or `sh` what stands in the block that
follows it after a line "prints". Any other block is a quotation.
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\) *# (.*)$", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line it begins at, and what the page says it prints (None: nothing)."""
    language: str
    text: str
    line: int
    prints: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}"

    @property
    def packages(self) -> set[str]:
        """What a block of Python imports."""
        return {name for names in re.findall(r"^(?:import|from) ([\w, ]+?)(?: import .*| as .*)?$", self.text, re.MULTILINE)
                for name in names.split(", ")}


def blocks(page: pathlib.Path) -> list[Block]:
    """All blocks of a page, in order; one that is the output of the one before is joined to it."""
    text, found = page.read_text(), []
    outputs = {match.end(): match for match in re.finditer(r"\n\nprints\n\n(?=```\n)", text)}
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match.start() in outputs:
            found[-1] = Block(found[-1].language, found[-1].text, found[-1].line, match[2])
        else:
            comments = PRINTED.findall(match[2]) if match[1] == "python" else []
            found.append(Block(match[1], match[2], line, "".join(f"{c}\n" for c in comments) or None))
    return found


def folder_for(path: pathlib.Path) -> dict[str, str]:
    """Make `path` what a reader has in front of them, a checkout; the environment variables in which `tosaic` and `python` are
    those of this environment."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name != "build":  # what is made there is the page's own
            (path / entry.name).symlink_to(entry)
    own = pathlib.Path(sys.executable).parent
    return {**os.environ, "PATH": f"{own}{os.pathsep}{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "3"}


def run_python(block: Block, folder: pathlib.Path, cache: pathlib.Path | None = None) -> str:
    """What a block of Python prints, run as it stands in a process of its own; with a folder for the cache of code, or none."""
    variables = folder_for(folder) | ({} if cache is None else {"TOSAIC_CACHE": str(cache)})
    (folder / "block.py").write_text(block.text)
    result = subprocess.run([sys.executable, "block.py"], capture_output=True, text=True, cwd=folder, env=variables)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_shell(block: Block, folder: pathlib.Path) -> str:
    """What a block of commands prints, run by bash as it stands, up to the first that fails."""
    result = subprocess.run(["bash", "-euo", "pipefail", "-x", "-c", block.text], capture_output=True, text=True, cwd=folder,
                            env=folder_for(folder))
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def words(text: str) -> list[str]:
    """Text without its numbers and its spacing, which differ in the last place from machine to machine."""
    return NUMBER.sub("#", text).split()


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]
