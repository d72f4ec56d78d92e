"""Worker processes as the driver sees them: started, stopped while others run, asked for batches, ended.

A worker that has answered is stopped by a signal and continued before its next batch, so that no thread of it spins, and
only one runs at a time.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import tosaic

from .installed import with_bytecode
from .roster import Peer
from .task import Refused, Task

LOAD_SECONDS = 240.0
"""Until a peer is given up that loads a model."""

BATCH_SECONDS = 60.0

PROGRAM = Path(__file__).parent, "--worker"


def variables(threads: int, kept: str, is_own: bool) -> dict[str, str]:
    """The environment of a worker: one number of threads for every library, and the cache that tosaic keeps. Our own worker
    imports the tosaic that this process has."""
    names = ("OMP", "OPENBLAS", "MKL", "TOSAIC")
    count = {f"{name}_NUM_THREADS": str(threads) for name in names}
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "TOSAIC_", "PYTHONPATH"))}
    if is_own:
        ours["PYTHONPATH"] = str(Path(tosaic.__file__).parents[1])
    return {**ours, **count, "NPROC": str(threads), "TOSAIC_CACHE": f"{kept}/tosaic",
            "TF_CPP_MIN_LOG_LEVEL": "3"}


LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1


def begin(processors: list[int]) -> None:
    """Runs in the new process: its processors, and its end when the driver ends, also where it is stopped."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, processors)


class Worker:
    """A process for one task. It runs on the first `threads` processors, but compiles on all of them where the task is cold."""

    def __init__(self, peer: Peer, task: Task) -> None:
        self.peer, self.task, self.pending = peer, task, b""
        processors = sorted(os.sched_getaffinity(0))[:None if task.is_cold else task.threads]
        environment = variables(task.threads, task.kept, not peer.part)
        environment = environment if peer.part else with_bytecode(environment)
        self.process = subprocess.Popen([peer.interpreter, *PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=environment,
                                        preexec_fn=lambda: begin(processors))

    def load(self) -> dict[str, Any]:
        """Load the model; what the worker says of it. Raises Refused with the peer's reason."""
        answer = self.ask(self.task.text(), LOAD_SECONDS)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def batch(self, seconds: float) -> dict[str, float]:
        """Calls for about so long."""
        self.process.send_signal(signal.SIGCONT)
        return self.ask(str(seconds), BATCH_SECONDS)

    def ask(self, line: str, limit: float) -> dict[str, Any]:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.line(limit))
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)  # the signal alone does not wait
        return answer

    def line(self, limit: float) -> bytes:
        """The next line of its answers. Raises Refused where the process ends or takes too long."""
        assert self.process.stdout
        deadline = time.monotonic() + limit
        while b"\n" not in self.pending:
            if not select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Refused(f"took longer than {limit:g} s")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise Refused(ended(self.process.wait()))
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if stream:
                    stream.close()


def ended(status: int) -> str:
    return f"ended by signal {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
