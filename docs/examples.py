"""The examples of public names: pages of Markdown in `examples/`, with a section for each name or for several, which says what
the docstring does not (units, shapes, errors) and has a block of Python. What a block prints stands behind it in comments, as
on the pages of the folders; here blocks are run one after the other in one process.
"""
from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from chapters import ROOT

FOLDER = Path(__file__).parent / "examples"
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\) *# (.*)$", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
ERROR = 1e-5
"""How far a printed number may be off: floats of other machines differ in their last digits."""


@cache
def sections() -> dict[str, str]:
    """The section of each name."""
    found = {}
    for page in sorted(FOLDER.glob("*.md")):
        parts = HEADING.split(page.read_text("utf-8"))
        for heading, body in zip(parts[1::2], parts[2::2]):
            for name in heading.split(", "):
                found[name] = body.strip()
    return found


@cache
def blocks_of_pages() -> tuple[str, ...]:
    """All Python on the repository's pages, which tests run."""
    pages = [ROOT / folder / "README.md" for folder in (".", "jit", "lowering", "runtime", "samples")]
    return tuple(block for page in pages for block in BLOCK.findall(page.read_text("utf-8")))


def block_of_pages(text: str) -> str:
    """The shortest block with this text in it."""
    return min((block for block in blocks_of_pages() if text in block), key=len, default="")


@cache
def code_of_pages() -> str:
    """The same with the samples, as one text."""
    return "\n".join([*blocks_of_pages(), *(p.read_text("utf-8") for p in sorted((ROOT / "samples").glob("*.py")))])


def code_of(text: str) -> str:
    return "\n".join(BLOCK.findall(text))


def same(printed: str, promised: str) -> bool:
    """True if texts are the same but for the last digits of numbers, and for spaces."""
    ours, theirs = NUMBER.findall(printed), NUMBER.findall(promised)
    plain = [re.sub(r"\s+", "", NUMBER.sub("0", text)) for text in (printed, promised)]
    return plain[0] == plain[1] and all(abs(float(a) - float(b)) <= ERROR * (1 + abs(float(b))) for a, b in zip(ours, theirs))


def failures() -> Iterator[str]:
    """Run every example; those that fail, or print something else than they promise."""
    import tosaic
    before = os.getcwd()
    for body in dict.fromkeys(sections().values()):
        for block in BLOCK.findall(body):
            tosaic.default_context.clear()
            printed = io.StringIO()
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "samples").symlink_to(ROOT / "samples", target_is_directory=True)
                os.chdir(folder)
                try:
                    with contextlib.redirect_stdout(printed):
                        exec(compile(block, "example", "exec"), {"__name__": "example"})
                except Exception:
                    yield f"{block}\n{traceback.format_exc()}"
                    continue
                finally:
                    os.chdir(before)
            promised = "\n".join(PRINTED.findall(block))
            if not same(printed.getvalue(), promised):
                yield f"{block}\nprints\n{printed.getvalue()}"
