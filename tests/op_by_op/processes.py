"""Plain Python processes, without pytest's hooks, that a watchdog ends with all stacks where they hang."""
from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
PROLOGUE = """
import faulthandler
faulthandler.dump_traceback_later({limit}, exit=True)
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in a shell's background
import numpy as np, tosaic
from tosaic import Problem, TensorHandle
X = np.ones(3, np.float32)
"""


def script(text: str, limit: int = 30, prologue: str = PROLOGUE) -> subprocess.CompletedProcess[str]:
    """Run a program; it is ended after `limit` seconds."""
    program = prologue.format(limit=limit) + textwrap.dedent(text)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=limit + 60)


def stress(seed: int, graphs: int) -> subprocess.CompletedProcess[str]:
    """Run `error_stress.py`."""
    command = [sys.executable, str(HERE / "error_stress.py"), str(seed), str(graphs)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def good(found: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The process, which has ended as it should."""
    assert found.returncode == 0, found.stdout + found.stderr
    return found
