"""torch-mlir, imported once: a process that forks for each conversion, so that a test does not wait for the import. A
conversion is still the program of `torch_mlir_process`, in a process of its own, with an answer on its standard output.
"""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tosaic.jit.models.torch_mlir import process as torch_mlir_process

SERVER = r"""
import contextlib, os, runpy, select, socket, sys
program, place = sys.argv[1:3]
sys.path[:] = sys.argv[3:]
IMPORTS
with socket.socket(socket.AF_UNIX) as server:
    server.bind(place)
    server.listen()
    print("ready", flush=True)
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
        connection, _ = server.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        with connection:
            if not os.fork():
                sys.argv[:] = [program, connection.makefile().readline()]
                os.dup2(connection.fileno(), 1)
                runpy.run_path(program, run_name="__main__")
                sys.stdout.flush()
                os._exit(0)
"""
"""Takes one request a connection, on which the answer goes back; ends with its standard input."""

CLIENT = r"""
import socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(sys.argv[2].encode() + b"\n")
    while data := connection.recv(65536):
        sys.stdout.buffer.write(data)
"""
IMPORTS = """
from torch_mlir import ir, passmanager
from torch_mlir.dialects import torch
"""


@contextmanager
def warm_converter(folder: Path) -> Iterator[Sequence[str]]:
    """The command that takes a request as its last argument. The process ends with the block, or with this process."""
    place = str(folder / "converter")
    command = [sys.executable, "-S", "-c", SERVER.replace("IMPORTS", IMPORTS), torch_mlir_process.__file__, place,
               *map(os.path.abspath, sys.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            yield [sys.executable, "-S", "-c", CLIENT, place]
        finally:
            process.stdin.close()
