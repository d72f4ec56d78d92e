"""`python tests/conformance`: tosaic against Arm's conformance suite.

Finds or makes the environment of Arm's tools and goes on in its Python, writes the tests that are asked for, unless they
are there, and runs them in a few processes, on both engines, or as C source; with `--arm`, Arm's own runner does. Exit status
0: every test came to what was expected; 1: one did not; 2: the suite cannot be had.

As a folder, and not with `-m tests.conformance`, because other packages install a package `tests`; in Arm's environment
there is none, and it goes on under that name.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from . import environment
else:
    import environment

os.environ["TOSAIC_CACHE"] = "off"  # what is tested is the compiler

if TYPE_CHECKING:
    from .judge import Record
    from .system import Engine


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/conformance", description=__doc__.split("\n\n")[0])
    parser.add_argument("--version", choices=("1.0", "1.1"), default="1.0", help="of the specification (default: %(default)s)")
    parser.add_argument("--selection", choices=("compact", "all", "ci"),
                        help="compact: one test per operator, group, type and kind, and all negative ones; ci: fewer of them "
                        "(default: compact, with --suite all)")
    parser.add_argument("--operators", nargs="*", default=[], help="only these (default: all)")
    parser.add_argument("--filter", default="", help="only tests whose name has this regular expression")
    parser.add_argument("--seed", type=int, default=42, help="of the generator (default: %(default)s)")
    parser.add_argument("--rotation", default="1/1", help="i/n: the i-th of n equal parts of the operators; no test of "
                        "others is written")
    parser.add_argument("--shard", default="1/1", help="i/n: the i-th of n equal parts")
    parser.add_argument("--skip", type=int, default=0, help="leave out this number of them: a run that was cut off goes on")
    parser.add_argument("--native", action="store_true", help="the native engine alone")
    parser.add_argument("--interpreter", action="store_true", help="the reference interpreter alone")
    parser.add_argument("--c", action="store_true", help="C source alone, compiled by gcc")
    parser.add_argument("--features", default="", help="of the machine that native code is made for, added to this one's: "
                        "\"-avx512f\", \"-amx-int8\"")
    parser.add_argument("--threads", type=int, default=1, help="that native code uses (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one test on one engine (default: %(default)s)")
    parser.add_argument("--suite", type=Path, help="a folder of tests that is there, instead of the cache")
    parser.add_argument("--json", type=Path, help="write every test's outcome to this file, a JSON object on each line")
    parser.add_argument("--arm", action="store_true", help="let Arm's runner run and judge the tests: slower")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    chosen = parser.parse_args(arguments)
    chosen.selection = chosen.selection or ("all" if chosen.suite else "compact")
    return chosen


def root_of(chosen: argparse.Namespace) -> Path:
    """The folder of the suite, written where it is not there."""
    from .suite import suite
    return chosen.suite or suite(chosen.version, chosen.selection, chosen.seed, chosen.rotation)


def unwritten(chosen: argparse.Namespace, root: Path) -> list[str]:
    """What Arm's generator could not write, of the operators that are asked for."""
    from .generate import generator_failures
    return [line for line in generator_failures(root) if not chosen.operators or line.split()[0] in chosen.operators]


def tests(chosen: argparse.Namespace, root: Path) -> list[Path]:
    """The folders of the tests that are asked for, small ones first and operators mixed: faults show early."""
    from .report import operator_of
    from .selection import order
    from .suite import choose
    pattern, (part, parts) = re.compile(chosen.filter), map(int, chosen.shard.split("/"))
    found = [path.parent for path in Path(root).absolute().rglob("desc.json")]
    if chosen.suite or chosen.selection == "ci":  # what is written is chosen batch by batch, and a folder has several batches
        found = choose(found, chosen.version, chosen.selection)
    if chosen.operators:
        found = [test for test in found if operator_of(test) in chosen.operators]
    matching = [test for test in found if pattern.search(test.name)]
    return sorted(matching, key=lambda test: order(test.name))[part - 1::parts][chosen.skip:]


def engines(chosen: argparse.Namespace) -> tuple[Engine, ...]:
    """The engines that are asked for; without a wish, the two that need nothing else."""
    from .system import ENGINES
    wished = tuple(engine for engine in ENGINES if getattr(chosen, engine))
    return wished or ("native", "interpreter")


def run(chosen: argparse.Namespace, folders: list[Path]) -> int:
    """Run the tests, print and write what came of them."""
    from .report import as_json, failures, table, totals
    from .system import Machine
    from .workers import Task, records
    wanted, start = engines(chosen), time.monotonic()
    machine = Machine(chosen.features, chosen.threads)
    found: list[Record] = []
    with open(chosen.json or os.devnull, "w") as file:
        for record in records([Task(folder, wanted, machine) for folder in folders], chosen.jobs, chosen.timeout):
            found.append(record)
            print(as_json(record), file=file, flush=True)
            if not chosen.quiet and len(found) % 100 == 0:
                wrong = sum(not r.result.is_right for r in found)
                print(f"{len(found)} of {len(folders) * len(wanted)}, {wrong} not as expected, "
                      f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(found))
    if wrong := failures(found):
        print(wrong)
    for engine in wanted:
        print(totals(found, engine))
    return 0 if all(r.result.is_right for r in found) else 1


def main(arguments: list[str]) -> int:
    chosen = options(arguments)
    try:
        environment.enter("tests.conformance", arguments)
    except environment.Unavailable as reason:
        print(f"the conformance suite cannot be had: {reason}", file=sys.stderr)
        return 2
    root = root_of(chosen)
    folders, missing = tests(chosen, root), unwritten(chosen, root)
    for line in missing:
        print(f"Arm's generator has failed: {line}")
    if not folders:
        print("no test has these names", file=sys.stderr)
        return 2
    if chosen.arm:
        from .arm_runner import run_all
        return run_all(folders, [f"tosaic_{engine}" for engine in engines(chosen)], chosen.jobs) or bool(missing)
    status = run(chosen, folders)
    if missing:
        print(f"{len(missing)} batches of the suite were not written, and not run: Arm's generator has failed for them")
    return status or bool(missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
