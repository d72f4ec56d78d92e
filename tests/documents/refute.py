"""Refute the tests of the documents' lists: a mutation of the product makes each row's statement untrue, and one of the row's
tests must then fail.

    python tests/documents/refute.py [--document NAME] [--match TEXT] [--jobs N]

`mutations/DOCUMENT.toml` holds the mutations. Each has a name, the row that it makes untrue ("section: statement"), a file, the
text there and its replacement. The driver copies the checkout once for each job, and applies one mutation after the other. A
mutation that no test of its row notices survives: it is printed, and the exit status is 1. That the tests pass without it, the
suite shows.
"""
from __future__ import annotations

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

if __package__:
    from .lists import DOCUMENTS, HERE, SOURCES, Row, rows_of
else:
    from lists import DOCUMENTS, HERE, SOURCES, Row, rows_of

LIMIT = 300
"""Seconds for the tests of one row; a mutation that makes them endless is noticed."""


@dataclass(frozen=True)
class Mutation:
    """A change of one file of the product that makes the statement of one row untrue."""
    name: str
    row: str
    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return the file's text with the change. Raise ValueError unless `old` occurs exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: its text occurs {count} times in {self.file}")
        return text.replace(self.old, self.new)


def mutations_of(document: str) -> tuple[Mutation, ...]:
    """The mutations of a document, in the file's order."""
    path = HERE / "mutations" / f"{document}.toml"
    return tuple(Mutation(**entry) for entry in tomllib.loads(path.read_text())["mutation"]) if path.exists() else ()


def copy_of_checkout(folder: Path) -> Path:
    """Return a copy of the product and its tests, in which a mutation is applied. Its folder has the package's name."""
    ignored = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", ".hypothesis", "build", "dist", "site")
    checkout = Path(shutil.copytree(SOURCES, folder / "tosaic", ignore=ignored))
    compileall.compile_dir(checkout, quiet=2)
    return checkout


def passes(checkout: Path, tests: Sequence[str]) -> bool:
    """True if all these tests pass in the copy, whose tosaic is the one that they import."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "",
               *(f"tests/{test}" for test in tests)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def survives(checkout: Path, mutation: Mutation, row: Row) -> bool:
    """True if every test of the row passes with the mutation."""
    path = checkout / mutation.file
    original = path.read_text()
    path.write_text(mutation.applied(original))
    try:
        return passes(checkout, row.tests)
    finally:
        path.write_text(original)


def survivors(chosen: Sequence[tuple[Mutation, Row]], jobs: int) -> Iterator[tuple[Mutation, bool]]:
    """Each mutation and whether it survives, in order."""
    with tempfile.TemporaryDirectory(prefix="tosaic-refute-") as folder:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copy_of_checkout(Path(folder) / str(number)))

        def tried(pair: tuple[Mutation, Row]) -> tuple[Mutation, bool]:
            checkout = copies.get()
            try:
                return pair[0], survives(checkout, *pair)
            finally:
                copies.put(checkout)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(tried, chosen)


def selected(documents: Sequence[str], match: str) -> list[tuple[Mutation, Row]]:
    """The mutations of these documents whose name or row has this text, with their rows."""
    return [(mutation, row) for document in documents for row in rows_of(document) for mutation in mutations_of(document)
            if mutation.row == row.title and match in f"{mutation.name} {mutation.row}"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="refute the tests of the documents' lists")
    parser.add_argument("--document", choices=DOCUMENTS, action="append", help="one of the five; all of them by default")
    parser.add_argument("--match", default="", help="only mutations whose name or row has this text")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    chosen = selected(options.document or list(DOCUMENTS), options.match)
    survived = 0
    for mutation, is_alive in survivors(chosen, options.jobs):
        survived += is_alive
        print("SURVIVED" if is_alive else "refuted ", mutation.name, "|", mutation.row, flush=True)
    print(f"{len(chosen)} mutations, {survived} survived")
    return 1 if survived or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
