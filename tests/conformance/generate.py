"""Writes Arm's conformance tests, all of them or a selection, with the generator of the package `tosa-tools`.

The generator starts a process for each of its 741 (1.0) batches, most of whose time is Python's start. Here a batch
is a forked child instead: it starts with everything imported, and, as the generator keeps state between tests,
nothing of one batch reaches the next. A selection is made batch by batch, between the listing of its tests and their writing.
Data depend on the seed and a test's name alone, so a test that is written by itself is the suite's own.

It runs in the environment that has the package (`environment.py`), as a program of its own, too:

    python generate.py --version 1.0 --output cts                            the whole suite
    python generate.py --version 1.0 --output cts --selection compact        the compact selection
    python generate.py --version 1.0 --output cts --list names.txt           names of all tests, no test written
"""
from __future__ import annotations

import argparse
import io
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

SEPARATOR = "\t"
SUITE_SEED = 42
"""The seed of the official suite."""

FAILURES = "generator_failures.txt"
"""In a folder of tests, the batches that the generator could not write: for some seeds it fails by itself."""

HEAVY = ("conv2d", "matmul_t", "avg_pool2d", "transpose_conv2d", "depthwise_conv2d", "conv3d", "avg_pool2d_adaptive", "rescale")
"""Operators with the most tests: they are begun first, so that the processes end at about the same time."""


Choose = Callable[[Sequence[str]], Sequence[str]]
"""The names that are chosen among those of a batch."""


class Selection(Protocol):
    """What is to be written (`selection.py`)."""
    def takes(self, operator: str, group: str) -> bool: ...
    def choose(self, operator: str, group: str, names: Sequence[str]) -> Sequence[str]: ...


def forked(command: Sequence[str], choose: Choose | None = None) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one batch, run in a forked child."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115  the child ends with them
            os._exit(batch(command, choose))
        _, status = os.waitpid(child, 0)
        out.seek(0), err.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), err.read()


def batch(command: Sequence[str], choose: Choose | None) -> int:
    """What the generator's own command does, with the tests that are chosen among the names of its lists; None means all."""
    from generator import tosa_verif_build_tests  # type: ignore[import-not-found]
    from generator.tosa_test_select import TosaTestSelectList, TosaTestSelectOpList  # type: ignore[import-not-found]
    if command[list(command).index("--seed") + 1] != str(SUITE_SEED):
        any_negative_tests(TosaTestSelectOpList)
    if choose is not None:
        every = TosaTestSelectList._get_tests

        def chosen(self: Any, *arguments: Any) -> list[Any]:
            tests = {str(test): test for test in every(self, *arguments)}
            return [tests[name] for name in choose(list(tests))]

        TosaTestSelectList._get_tests = chosen
    try:
        status = tosa_verif_build_tests.main(list(command[1:])) or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status)


def any_negative_tests(selector: Any) -> None:
    """For another seed than the suite's: the suite names its negative tests, with their random shapes; here any will do."""
    select = selector._init_select

    def unnamed(self: Any) -> None:
        self.errorIfs = {}
        select(self)

    selector._init_select = unnamed


def place(command: Sequence[str]) -> tuple[str, ...]:
    """The operator, extension and group that a batch is for: the last parts of its output folder."""
    return Path(command[list(command).index("-o") + 1]).parts[-3:]


def names_of(command: Sequence[str]) -> list[str]:
    """The names of a batch's tests."""
    status, out, err = forked([*command, "--list-tests"])
    if status:
        raise RuntimeError(f"the generator cannot list {' '.join(place(command))}: {err}")
    return out.split()


def note_failure(output: Path, what: str, reason: str) -> None:
    """Add a batch that the generator cannot write to the list beside the tests."""
    output.mkdir(parents=True, exist_ok=True)
    last = (reason.strip().splitlines() or [""])[-1]
    with (output / FAILURES).open("ab", buffering=0) as file:
        file.write(f"{what}{SEPARATOR}{last}\n".encode())


def generator_failures(output: Path) -> list[str]:
    """Return the batches that Arm's generator could not write, each with the last line that it said."""
    path = output / FAILURES
    return [" : ".join(line.split(SEPARATOR)) for line in path.read_text().splitlines()] if path.exists() else []


def generate(version: str, output: Path, seed: int, operators: Sequence[str] = (), selection: Selection | None = None,
             names: Path | None = None) -> int:
    """Runs the generator in this process, its batches in forked children; its exit status. With `names`, the tests' names are
    added to that file, and no test is written. The generator prints each name that it leaves out: stdout goes nowhere."""
    from conformance import tosa_verif_conformance_generator as suite  # type: ignore[import-not-found]
    from generator import tosa_verif_build_tests  # type: ignore[import-not-found]  # noqa: F401  so that children need not
    from schemavalidation import schemavalidation  # type: ignore[import-not-found]

    def run(_: Any, command: Sequence[str]) -> tuple[Sequence[str], int, str, str]:
        if names is not None:
            lines = [SEPARATOR.join((*place(command), name)) + "\n" for name in names_of(command)]
            with names.open("ab", buffering=0) as file:
                file.write("".join(lines).encode())
            return command, 0, "", ""
        operator, _, group = place(command)
        if selection is not None and not selection.takes(operator, group):
            return command, 0, "", ""
        status, out, err = forked(command, selection and partial(selection.choose, operator, group))
        if status:
            note_failure(output, " ".join(place(command)), err or f"status {status}")
        return command, 0, out, err

    convert, size, validate = suite.convert_tests, suite.check_op_tests_size, schemavalidation.validate
    suite._run_sh_command_mp = run
    # What the generator writes it checks by its schemas, and each schema by the schema of schemas: three quarters of its time.
    # Arm's runner and the verifier check what they read again.
    schemavalidation.validate = lambda *_, **__: None
    suite.convert_tests = lambda *a, **k: convert(*a, **k) if any(Path(a[4]).glob("*/*")) else None
    suite.check_op_tests_size = lambda *a, **k: size(*a, **k) if selection is None and names is None else None
    scratch = output.with_name(f"{output.name}_build{os.getpid()}")
    arguments = ["--tosa-version", version, "--extension", "all", "--output-type", "binary", "-j", "1", "--seed", str(seed),
                 "--output-directory", str(output), "--build-directory", str(scratch)]
    if operators:
        arguments += ["--operators", *operators]
    if names is not None:
        arguments += ["--list-tests-to-file", os.devnull]
    logging.disable(logging.WARNING)
    before = sys.argv, sys.stdout
    sys.argv, sys.stdout = ["tosa_verif_conformance_generator", *arguments], io.StringIO()
    try:
        return int(suite.main() or 0)
    finally:
        sys.argv, sys.stdout = before
        suite.convert_tests, suite.check_op_tests_size, schemavalidation.validate = convert, size, validate
        shutil.rmtree(scratch, ignore_errors=True)


def operators_of(version: str) -> list[str]:
    """The operators that the suite has tests for, those with many tests first."""
    import json

    from conformance import tosa_verif_conformance_generator as suite
    path = Path(suite.__file__).parent / "cts-config_v1.0.json"
    names = [name for name in json.loads(path.read_text()) if not name.startswith("$")]
    return [*(n for n in HEAVY if n in names), *(n for n in names if n not in HEAVY)]


def generate_in_processes(jobs: int, version: str, output: Path, seed: int, operators: Sequence[str] = (),
                          selection: Selection | None = None, names: Path | None = None) -> int:
    """`generate`, an operator at a time, in several processes; the number of batches that failed, or of operators."""
    chosen = list(operators) or operators_of(version)
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=8) as pool:
        waiting = [pool.apply_async(generate, (version, output, seed, [name], selection, names)) for name in chosen]
        failed = 0
        for name, result in zip(chosen, waiting):
            try:
                status = result.get()
            except Exception as error:  # of the generator, for a seed that it cannot take
                status = f"{type(error).__name__}: {error}"
            if status:
                failed += 1
                note_failure(output, name, str(status))
    return max(failed, len(generator_failures(output)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.0", help="of the specification: 1.0 or 1.1 (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="folder that the tests are written to")
    parser.add_argument("--operators", nargs="*", default=[], help="only these (default: all)")
    parser.add_argument("--seed", type=int, default=SUITE_SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", type=Path, help="add the names of the tests to this file, and write no test")
    parser.add_argument("--selection", choices=("all", "compact", "ci"), default="all")
    chosen = parser.parse_args()
    selection = None
    if chosen.selection != "all":
        import selection as selections
        selection = selections.Selection(chosen.version, chosen.selection == "ci")
    return generate_in_processes(chosen.jobs, chosen.version, chosen.output, chosen.seed, chosen.operators, selection,
                                 chosen.list)


if __name__ == "__main__":
    sys.exit(main())
