"""`python tests/limits`: a table of bombs, each in a process of its own with `bombs.LIMITS`: what it comes to, its seconds
(imports apart) and its memory."""
from __future__ import annotations

import json
import os
import subprocess
import sys

from tosaic.tests.limits.bombs import BOMBS, LIMITS


def row(name: str) -> str:
    command = [sys.executable, "-m", "tosaic.tests.limits.child", str(LIMITS.seconds), name]
    said = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "TOSAIC_CACHE": "off"})
    found = json.loads(said.stdout.splitlines()[-1])
    return (f"| {name} | {found['bytes']:,} | {found['kind']}: {found['message']} | {found['seconds']:.1f} "
            f"| {found['more_memory'] / 2**20:.0f} |")


if __name__ == "__main__":
    print(f"{LIMITS}\n\n| bomb | bytes of the file | comes to | seconds | MiB |\n|---|---|---|---|---|")
    for name in sys.argv[1:] or BOMBS:
        print(row(name), flush=True)
