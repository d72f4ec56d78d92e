"""The command as a process: a terminal or none, Ctrl-C, a pipe that closes, and how quickly it starts."""
from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tosaic.jit.command_line.progress import Progress

LOOP = """
func.func @main(%x: tensor<1xi32>) -> tensor<1xi32> {
  %0 = tosa.add %x, %x : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  return %0 : tensor<1xi32>
}
"""

COMMAND = [sys.executable, "-m", "tosaic.jit.command_line.cli"]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What moves a terminal's cursor."""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(LOOP)
    return str(path)


def heed_interrupts() -> None:
    """In the child: Ctrl-C ends it also where this process, as one in the background, ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read_until(descriptor: int, text: bytes) -> None:
    """Wait until it has been written to a terminal."""
    found = b""
    while text not in found:
        found += os.read(descriptor, 4096)


def read_all(descriptor: int) -> str:
    """Everything that is written to a terminal until its other end is closed."""
    found = b""
    while True:
        try:
            data = os.read(descriptor, 4096)
        except OSError:  # Linux reports the closed end so
            break
        if not data:
            break
        found += data
    return found.decode(errors="replace")


def test_ctrl_c_ends_it_with_130_and_one_word(model: str) -> None:
    reader, terminal = pty.openpty()
    process = subprocess.Popen([*COMMAND, "run", model, "--calls", "1000000000"], stdout=subprocess.PIPE, stderr=terminal,
                               env={**os.environ, "TERM": "xterm"}, preexec_fn=heed_interrupts)
    os.close(terminal)
    try:
        read_until(reader, b"running main")
        process.send_signal(signal.SIGINT)
        shown = read_all(reader)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(reader)
    assert (process.returncode, out) == (130, b"")
    assert "Traceback" not in shown and CONTROL.sub("", shown).endswith("interrupted\r\n")


def test_progress_is_shown_on_a_terminal(model: str) -> None:
    reader, terminal = pty.openpty()
    process = subprocess.Popen([*COMMAND, "run", model, "--calls", "600000"], stdout=subprocess.PIPE, stderr=terminal,
                               env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = read_all(reader)
    os.close(reader)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and b"600000 calls" in out and b"\x1b" not in out
    assert "running main" in shown


def test_progress_is_not_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("reading", delay=0.01):
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "")


def test_progress_appears_after_its_delay_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, terminal = pty.openpty()
    stream = os.fdopen(terminal, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("reading", delay=0.05) as progress:
        time.sleep(0.6)
        progress.update("compiling")
        time.sleep(0.3)
    with Progress("never", delay=30):
        pass
    stream.close()
    shown = read_all(reader)
    os.close(reader)
    assert "reading" in shown and "compiling" in shown and "never" not in shown


def test_a_reader_that_closes_the_pipe_is_no_error(model: str) -> None:
    process = subprocess.Popen([*COMMAND, "show", "asm", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(timeout=60) == 0


def test_the_installed_command_and_the_module_are_the_same(model: str) -> None:
    installed = Path(sys.executable).with_name("tosaic")
    if not installed.exists():
        pytest.skip("tosaic is not installed as a command here")
    both = [subprocess.run([*start, "show", "graph", model], capture_output=True, text=True, check=True).stdout
            for start in ([str(installed)], COMMAND)]
    assert both[0] == both[1]


def test_help_starts_without_the_compiler() -> None:
    code = "import sys; from tosaic.jit.command_line.cli import main; main(['--help']); " \
           "sys.exit(bool({'llvmlite', 'lark', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
