"""The driver that runs others in parts: every part runs once, and one that fails is told."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SPREAD = Path(__file__).parents[1] / "spread.py"


def test_each_part_runs_once_and_one_that_fails_is_told() -> None:
    command = ["python", "-c", "import sys; print('did', '{part}/{parts}', '{item}'); sys.exit('{item}' == 'b')"]
    found = subprocess.run([sys.executable, str(SPREAD), "--workers", "1", "--items", "a", "b", "c", "--", *command],
                           capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stderr
    for line in ("did 1/3 a", "did 2/3 b", "did 3/3 c", "part 2 of 3: exit status 1", "2 of 3 parts have succeeded"):
        assert found.stdout.count(f"{line}") >= 1
