"""`python tests/array_api SUITE`: the consortium's test suite of the array API standard (a checkout of
data-apis/array-api-tests with its submodule, and the packages ndindex and hypothesis) on tosaic's namespace, each call a graph
of its own.

Prints how many tests passed, failed and were skipped, with the reasons that stand in reasons.txt; ends with 1 where a test
fails that has no reason there. `--max-examples` says how many examples hypothesis makes of each test,
`--compiled` that machine code runs and not the interpreter. What follows is for pytest.
"""
from __future__ import annotations

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ASSUMES_COMPLEX = "[(dt, dtype_nbits[dt]) for dt in complex_dtypes]"
"""What the suite takes the greatest of, also where a namespace has no complex numbers."""

PROFILE = "        max_examples=config.getoption(\"--hypothesis-max-examples\"),\n"
SHRINKING = "\nfrom hypothesis import Phase\nWITHOUT_SHRINKING = (Phase.explicit, Phase.generate)\n"
"""What fails need not be made small, which takes as long as all else."""


def reasons() -> dict[str, str]:
    """Why tests are expected to fail, or skipped, by their ids; a line without a test is the reason of those that follow."""
    found: dict[str, str] = {}
    reason = ""
    for line in (HERE / "reasons.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            found[line] = reason
    return found


def copied(suite: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The suite in a folder, where it can be loaded without complex numbers."""
    shutil.copytree(suite, folder, ignore=shutil.ignore_patterns(".git", "spec/_*"))
    for path in (folder / "array_api_tests").glob("*.py"):
        path.write_text(path.read_text().replace(ASSUMES_COMPLEX, f"{ASSUMES_COMPLEX} or [(None, 0)]"))
    options = folder / "conftest.py"
    options.write_text(options.read_text().replace(PROFILE, PROFILE + "        phases=WITHOUT_SHRINKING,\n") + SHRINKING)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--max-examples", type=int, default=20)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print what pytest prints")
    parser.add_argument("-n", type=int, default=1, help="processes")
    options, rest = parser.parse_known_args()
    known = reasons()
    with tempfile.TemporaryDirectory() as temporary:
        suite = copied(options.suite, pathlib.Path(temporary, "suite"))
        expected = pathlib.Path(temporary, "expected")
        expected.write_text("".join(f"{test}\n" for test in known))
        nothing = pathlib.Path(temporary, "nothing")
        nothing.touch()
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": "tosaic.tests.array_api.eager",
            "TOSAIC_ARRAY_API_ENGINE": "compiled" if options.compiled else "interpreted"}
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", "-p", "no:warnings",
                   "array_api_tests", "--derandomize", f"--max-examples={options.max_examples}", "--disable-deadline",
                   "--disable-data-dependent-shapes", f"--skips-file={nothing}", f"--xfails-file={expected}",
                   *(["-n", str(options.n)] if options.n > 1 else []), *rest]
        with subprocess.Popen(command, cwd=suite, env=environment, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            lines = []
            for line in running.stdout:
                lines.append(line)
                if options.verbose:
                    print(line, end="", flush=True)
    return report("".join(lines), known)


def report(output: str, known: dict[str, str]) -> int:
    """What pytest printed, counted, and the reasons with how many tests have each."""
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (.*?\]|[^\[]*?)(?: - .*)?$", output, re.MULTILINE)
    tests = {kind: [text for found, text in outcomes if found == kind] for kind, _ in outcomes}
    for test in (*tests.get("FAILED", ()), *tests.get("ERROR", ())):
        print("failed, with no reason:", test)
    for test in tests.get("XPASS", ()):
        print("passed, which has a reason to fail:", test)
    counts = collections.Counter(known.get(test) or known.get(test.split("[")[0]) or "?" for test in tests.get("XFAIL", ()))
    for reason, count in counts.most_common():
        print(f"{count:5} refused: {reason}")
    for text in tests.get("SKIPPED", ()):
        print("      skipped:", text)
    print(output.strip().splitlines()[-1] if output.strip() else "pytest printed nothing")
    wrong = len(tests.get("FAILED", ())) + len(tests.get("ERROR", ()))
    return 0 if tests.get("PASSED") and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
