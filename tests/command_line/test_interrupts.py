"""Ctrl-C at moments when Python would lose it, or give something else for it: the command ends with 130 and one word."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = """
import importlib, signal, sys, threading, weakref
cli = importlib.import_module("tosaic.jit.command_line.cli")
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt(*ignored):
    signal.raise_signal(signal.SIGINT)

class Dropped:
    def __del__(self):
        interrupt()

class Field:
    def __set_name__(self, owner, name):
        interrupt()

def compile(*ignored):
    WHAT_IT_DOES
    threading.Event().wait(60)
    raise AssertionError("nobody interrupted it")

cli.WHERE = compile
sys.exit(cli.main(["show", "model.mlir"]))
"""


def ended(where: str, what: str, folder: Path) -> tuple[int, str, str]:
    """The exit code and the two outputs of a command, a function of which does this."""
    (folder / "command.py").write_text(COMMAND.replace("WHERE", where).replace("WHAT_IT_DOES", what))
    result = subprocess.run([sys.executable, "-m", "command"], capture_output=True, text=True, cwd=folder, timeout=120)
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize("what", [
    pytest.param("interrupt()", id="anywhere"),
    pytest.param("Dropped()", id="an object that goes"),
    pytest.param("kept = Dropped(), Dropped(); del kept", id="two objects that go"),
    pytest.param("reference = weakref.ref(threading.Event(), interrupt)", id="a weak reference"),
    pytest.param("type('Made', (), {'field': Field()})", id="a class that is made"),
    pytest.param("exec('interrupt()', globals())", id="a text that is run")])
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_is_never_lost(what: str, tmp_path: Path) -> None:
    assert ended("answer", what, tmp_path) == (130, "", "interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_before_the_options_are_read(tmp_path: Path) -> None:
    assert ended("parser", "interrupt()", tmp_path) == (130, "", "interrupted\n")


def test_what_else_goes_wrong_in_a_callback_is_reported_as_ever(tmp_path: Path) -> None:
    code, _, said = ended("answer", "Dropped.__del__ = lambda self: 1 / 0; Dropped(); interrupt()", tmp_path)
    assert code == 130 and "ZeroDivisionError" in said and said.endswith("interrupted\n")
