"""Refute the tests of the documents' lists: a mutation of the product makes each row's statement untrue, and one of the row's
tests must then fail.

    python tests/documents/refute.py [--document NAME] [--match TEXT] [--jobs N]

`mutations/DOCUMENT.toml` holds the mutations. Each has a name, the row that it makes untrue ("section: statement"), a file, the
text there and its replacement. The driver copies the checkout once for each job, and applies one mutation after the other. A
mutation that no test of its row notices survives. The exit status is 0 only if every chosen mutation is refuted. That the tests
pass without a mutation is the suite's business.
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
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Literal

if __package__:
    from .lists import DOCUMENTS, HERE, SOURCES, Row, rows_of
else:
    from lists import DOCUMENTS, HERE, SOURCES, Row, rows_of

LIMIT = 300
"""Seconds for the tests of one row. A mutation whose tests take longer has no verdict."""


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
    return tuple(Mutation(**entry) for entry in tomllib.loads(path.read_text()).get("mutation", ()))


def copy_of_checkout(folder: Path) -> Path:
    """Return a copy of the product and its tests, in which a mutation is applied. Its folder has the package's name."""
    ignored = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", ".hypothesis", "build", "dist", "site")
    checkout = Path(shutil.copytree(SOURCES, folder / "tosaic", ignore=ignored))
    compileall.compile_dir(checkout, quiet=2)
    return checkout


Verdict = Literal["refuted", "SURVIVED", "TIMED OUT"]


def verdict(checkout: Path, tests: Sequence[str]) -> Verdict:
    """Return whether one of the tests fails in the copy, whose tosaic is the one that they import."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "",
               *(f"tests/{test}" for test in tests)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        status = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        return "TIMED OUT"
    return "SURVIVED" if status == 0 else "refuted"


def with_mutation(checkout: Path, mutation: Mutation, row: Row) -> Verdict:
    """Return the verdict of the row's tests on the copy with the mutation."""
    path = checkout / mutation.file
    original = path.read_text()
    path.write_text(mutation.applied(original))
    try:
        return verdict(checkout, row.tests)
    finally:
        path.write_text(original)


def verdicts(chosen: Sequence[tuple[Mutation, Row]], jobs: int) -> Iterator[tuple[Mutation, Verdict]]:
    """Yield each mutation with its verdict, in order."""
    with tempfile.TemporaryDirectory(prefix="tosaic-refute-") as folder:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copy_of_checkout(Path(folder) / str(number)))

        def tried(pair: tuple[Mutation, Row]) -> tuple[Mutation, Verdict]:
            checkout = copies.get()
            try:
                return pair[0], with_mutation(checkout, *pair)
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
    counts = Counter[Verdict]()
    for mutation, found in verdicts(chosen, options.jobs):
        counts[found] += 1
        print(f"{found:9}", mutation.name, "|", mutation.row, flush=True)
    print(f"{len(chosen)} mutations: {', '.join(f'{count} {found}' for found, count in counts.items())}")
    return 0 if chosen and counts["refuted"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
