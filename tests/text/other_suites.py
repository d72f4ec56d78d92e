"""Run the MLIR tests of another project, read from a folder: which load, which are refused and why, internal errors.

    python tests/text/other_suites.py FOLDER [--compile] [--list REASON] [--only TEXT]

Each file is split at `// -----`. A piece with an `expected-error` is an invalid one: it has to be refused. Pieces of dialects
that schedule devices (`tf_device`, TPUs) are counted apart: nothing here runs them. The folder is the caller's (TensorFlow's
`compiler/mlir/tensorflow/tests`, LLVM's `mlir/test/Dialect/Tosa`); no line of it is part of this project.
"""
from __future__ import annotations

import argparse
import re
import signal
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tosaic

SEPARATOR = re.compile(r"^// -----[ \t]*$", re.MULTILINE)
EXPECTED = re.compile(r"expected-error")
DEVICES = re.compile(r"\btf_device\.|tf\.?_?TPU|tf\._?XlaCompile|tf\.\w*TPU|\"tf\.TPU|_tpu_replicate|tpu\b.*cluster")
CODE = re.compile(r"(?:\s|//[^\n]*+)*+\S")
NAMES = re.compile(r"[%@^!#][\w$.#\"-]+|'[^']*'|\d+|tensor<[^ ]*>|![\w.]+<[^ ]*>")
SECONDS = 60
"""For one piece: a longer one counts as an internal error."""


@dataclass(frozen=True)
class Piece:
    """One text of a file, with the line that it begins in."""
    path: Path
    line: int
    text: str

    @property
    def kind(self) -> str:
        if EXPECTED.search(self.text):
            return "invalid"
        return "devices" if DEVICES.search(self.text) else "valid"

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"


def pieces(folder: Path) -> Iterator[Piece]:
    for path in sorted(folder.rglob("*.mlir")):
        whole, start = path.read_text("utf-8", "replace"), 0
        for end in [*(m.span() for m in SEPARATOR.finditer(whole)), (len(whole), len(whole))]:
            text, line = whole[start:end[0]], whole.count("\n", 0, start) + 1
            start = end[1]
            if CODE.match(text):
                yield Piece(path, line, text)


def outcome(piece: Piece, compiles: bool) -> tuple[str, str]:
    """`loads` (`in part`, where a function is left out), `refused` or `internal`, and the reason."""
    signal.alarm(SECONDS)
    try:
        model = tosaic.load("\n" * (piece.line - 1) + piece.text + "\n")
        if compiles:
            compile_all(model)
        left_out = any(f.types is None for f in model.module.absent)
        return "loads", "in part" if left_out else ""
    except tosaic.Problem as problem:
        if problem.kind == "internal":
            return "internal", str(problem)
        return "refused", f"{problem.kind}: {problem.message}"
    except BaseException as error:  # all that is no Problem is a fault of ours, a time-out, too
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        return "internal", f"{type(error).__name__}: {error} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
    finally:
        signal.alarm(0)


def compile_all(model: tosaic.Model) -> None:
    """Lower each entry that is static; a Problem that refuses one is an answer."""
    for entry in model:
        try:
            if not entry.is_dynamic:
                entry.lower()
        except tosaic.Problem as problem:
            if problem.kind == "internal":
                raise


def reason(message: str) -> str:
    """A message without what differs from piece to piece."""
    return NAMES.sub("_", message)[:90]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compile", action="store_true", help="lower each static entry, too")
    parser.add_argument("--list", default=None, metavar="REASON", help="name the pieces refused for reasons that contain this")
    parser.add_argument("--only", default="", help="files whose name contains this")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, list[str]] = defaultdict(list)
    faults: list[str] = []
    taken: Counter[str] = Counter()
    for piece in pieces(options.folder):
        if options.only not in piece.path.name:
            continue
        found, why = outcome(piece, options.compile)
        counts[piece.kind][found] += 1
        counts[piece.kind][why if why == "in part" else ""] += 1
        if found == "internal":
            faults.append(f"{piece}: {why}")
        elif piece.kind == "valid" and found == "refused":
            reasons[reason(why)].append(f"{piece}: {why}")
        elif piece.kind == "invalid" and found == "loads":
            taken[piece.path.name] += 1
            if options.list == "taken":
                print("taken", piece)
    report(counts, reasons, faults, taken, options.list)
    return 1 if faults else 0


def report(counts: dict[str, Counter[str]], reasons: dict[str, list[str]], faults: list[str], taken: Counter[str],
           listed: str | None) -> None:
    for kind in ("valid", "devices", "invalid"):
        row = counts[kind]
        total = row["loads"] + row["refused"] + row["internal"]
        print(f"{kind:8} {total:5}: {row['loads']:5} load ({row['loads'] / max(total, 1):.1%}; {row['in part']} in part), "
              f"{row['refused']:5} refused, {row['internal']} internal errors")
    for why, found in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):5}  {why}")
        if listed is not None and listed in why:
            print("".join(f"         {each}\n" for each in found), end="")
    for name, count in taken.most_common():
        print(f"{count:5}  invalid pieces taken of {name}")
    for fault in faults:
        print("internal", fault)


if __name__ == "__main__":
    sys.exit(main())
