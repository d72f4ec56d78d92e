"""A driver of tests in parts, on processes of this machine or on the workers of a Dask cluster, whose machines have this
checkout under the same path:

    python tests/spread.py [--scheduler ADDRESS | --workers N] [--parts N] COMMAND...

runs the command once for each part, with `{part}` (from 1), `{parts}` and `{seed}` (from 0) in it replaced, in a process of its
own that a fault or a lost worker ends alone. It prints what each part printed, as it ends, and ends with 1 where one failed:

    python tests/spread.py --parts 16 python tests/conformance --jobs 1 --quiet --shard {part}/{parts}
    python tests/spread.py env TOSAIC_FUZZ_SECONDS=600 TOSAIC_FUZZ_SEED={seed}0000 python -m pytest -q -m long tests/fuzz
    python tests/spread.py --parts 8 python tests/onnx/random_graphs.py {seed}000 1000
    python tests/spread.py --items alexa okay_nabu -- python -m pytest -q tests/models/test_wake_words.py -k {item}

With `--items`, there is a part for each of them, and `{item}` is it.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tosaic.jit.many.scheduler import workers_for

ROOT = Path(__file__).parents[1]


class Ended(NamedTuple):
    """What a part printed, and its exit status."""
    status: int
    text: str


class Command:
    """A command that a worker runs in the checkout; an item is the words of one part."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, words: Sequence[str]) -> Ended:
        python = [sys.executable if word == "python" else word for word in words]
        found = subprocess.run(python, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", check=False)
        return Ended(found.returncode, found.stdout)


def parts_of(command: Sequence[str], parts: int, items: Sequence[str]) -> list[list[str]]:
    """The words of each part's command."""
    count = len(items) or parts
    meanings = [{"part": str(n + 1), "parts": str(count), "seed": str(n)} | ({"item": items[n]} if items else {})
                for n in range(count)]
    return [[replaced(word, meaning) for word in command] for meaning in meanings]


def replaced(word: str, meaning: dict[str, str]) -> str:
    for name, value in meaning.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/spread.py", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster")
    parser.add_argument("--workers", type=int, metavar="N", help="processes of this machine (default: one for each core)")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--items", nargs="+", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    parts = parts_of([w for w in chosen.command if w != "--"], chosen.parts, chosen.items)
    if not parts or not parts[0]:
        parser.error("a command is missing")
    failed = 0
    with workers_for(chosen.scheduler, chosen.workers) as workers:
        for outcome in workers.run(Command(str(ROOT)), parts):
            found = outcome.value or Ended(1, outcome.error or "")
            failed += found.status != 0
            print(f"part {outcome.number + 1} of {len(parts)}: exit status {found.status}: {' '.join(parts[outcome.number])}\n"
                  f"{found.text}", flush=True)
    print(f"{len(parts) - failed} of {len(parts)} parts have succeeded")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
