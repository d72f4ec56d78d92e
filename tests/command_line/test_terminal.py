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
from tosaic.jit.command_line.colour import coloured, is_coloured
from tosaic.jit.command_line.progress import Progress
from tosaic.runtime.progress import counted, report_progress

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


@pytest.mark.parametrize("arguments", [["show", "asm", "MODEL"], ["tune", "--help"], ["completion", "bash"]])
def test_a_reader_that_closes_the_pipe_is_no_error(model: str, arguments: list[str]) -> None:
    command = [*COMMAND, *(model if a == "MODEL" else a for a in arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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


def test_what_is_counted_has_a_bar_and_what_is_below_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, terminal = pty.openpty()
    stream = os.fdopen(terminal, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("compiling", delay=0.01):
        for number in counted("kernels", range(3)):
            report_progress("inner" if number else "first")
            for deepest in counted("deeper", "ab"):
                report_progress(f"not said {deepest}")
            time.sleep(0.4)
    report_progress("nobody listens")
    stream.close()
    shown = CONTROL.sub("", read_all(reader))
    os.close(reader)
    assert "compiling, kernels" in shown and "1/3" in shown and "2/3" in shown and "━" in shown
    assert "deeper" in shown and "not said" not in shown and "nobody" not in shown


def test_counting_costs_nothing_and_tells_nobody_without_a_listener() -> None:
    assert list(counted("kernels", "abc")) == ["a", "b", "c"]


BROKEN = LOOP.replace("tensor<1xi32>) -> tensor<1xi32>\n  return", "tensor<2xi32>) -> tensor<1xi32>\n  return")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("environment", "is_coloured"), [
    ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)])
def test_problems_have_colours_on_a_terminal(tmp_path: Path, environment: dict[str, str], is_coloured: bool) -> None:
    (tmp_path / "m").write_text(BROKEN)
    reader, terminal = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen([*COMMAND, "show", str(tmp_path / "m")], stdout=terminal, stderr=terminal,
                               env={**inherited, "TERM": "xterm", **environment})
    os.close(terminal)
    shown = read_all(reader)
    os.close(reader)
    assert process.wait() == 3 and "error[" in shown and "^" in shown
    assert ("\x1b[1;31merror[" in shown and "\x1b[1;31m^" in shown) is is_coloured is ("\x1b[1;31m" in shown)


def test_force_color_colours_a_pipe_and_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(BROKEN)
    for force, expected in (("1", True), ("0", False), ("", False)):
        said = subprocess.run([*COMMAND, "show", str(tmp_path / "m")], capture_output=True, text=True,
                              env={**os.environ, "FORCE_COLOR": force})
        assert ("\x1b[" in said.stderr) is expected and said.stdout == ""


def test_a_message_keeps_its_letters_when_it_is_coloured() -> None:
    text = ("m.mlir:2:8: error[shape]: no\n    2 |   %0 = tosa.add\n      |        ^^^^\n  m.mlir:1:1: why\n"
            "    1 | x\n      | ~\n  note: so\n  help: do that\nerror[file]: x\nplain")
    assert CONTROL.sub("", coloured(text)) == text and coloured("plain") == "plain"
    assert not is_coloured(None)


@pytest.mark.parametrize("command", ["doctor", "targets"])
def test_a_table_is_fitted_to_the_terminal_and_says_what_the_text_says(command: str) -> None:
    plain = subprocess.run([*COMMAND, command], capture_output=True, text=True, check=True).stdout
    reader, terminal = pty.openpty()
    process = subprocess.Popen([*COMMAND, command], stdout=terminal, stderr=subprocess.DEVNULL,
                               env={**os.environ, "TERM": "xterm", "COLUMNS": "90"})
    os.close(terminal)
    shown = CONTROL.sub("", read_all(reader))
    os.close(reader)
    assert process.wait() == 0 and max(map(len, shown.splitlines())) <= 90
    assert command == "doctor" or max(map(len, plain.splitlines())) > 90
    assert {line.split()[0] for line in plain.splitlines()[1:] if line} <= set(shown.split())
