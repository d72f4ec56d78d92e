"""Windows and macOS, as far as this system can show them (`other_system.py` says how far): models, functions, state, threads,
the cache of a second process, commands and files do what they do here."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from tosaic.lowering.machine_code import codegen
from tosaic.lowering.machine_code.elf import is_elf
from tosaic.lowering.target.target import Target

HERE = pathlib.Path(__file__).parent
EMPTY = 'source_filename = "m"\ntarget triple = "x86_64-pc-windows-msvc"\ndefine i32 @f() {\n  ret i32 7\n}\n'


def run(system: str, program: str, folder: pathlib.Path) -> str:
    environment = {**os.environ, "TOSAIC_CACHE": str(folder / "cache"), "TOSAIC_NUM_THREADS": "2"}
    result = subprocess.run([sys.executable, str(HERE / "other_system.py"), system, str(HERE / program)], cwd=folder,
                            env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_windows_computes_the_same_and_a_second_process_finds_its_code(tmp_path: pathlib.Path) -> None:
    first, second = run("windows", "tour.py", tmp_path), run("windows", "tour.py", tmp_path)
    assert first == second == "right False False\n"
    assert {p.suffix for p in (tmp_path / "cache").iterdir()} >= {".code"}


def test_macos_computes_the_same(tmp_path: pathlib.Path) -> None:
    assert run("macos", "tour.py", tmp_path) == "right True False\n"


def test_code_for_a_process_on_windows_is_in_the_format_that_llvm_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Target("x86_64-pc-windows-msvc", "x86-64", "")
    assert not is_elf(codegen.object_of(EMPTY, windows))
    monkeypatch.setattr(codegen.sys, "platform", "win32")
    assert is_elf(codegen.object_of(EMPTY, windows))


@pytest.mark.parametrize(("system", "environment", "expected"), [
    ("win32", {"LOCALAPPDATA": "/users/me/Local"}, "/users/me/Local/tosaic/Cache/code"),
    ("darwin", {}, "/home/me/Library/Caches/tosaic/code"),
    ("linux", {}, "/home/me/.cache/tosaic/code"),
    ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/tosaic/code"),
    ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "/home/me/.cache/tosaic/code"),
    *((system, {"TOSAIC_CACHE": "/mine"}, "/mine") for system in ("win32", "darwin", "linux"))])
def test_the_cache_is_where_the_system_keeps_caches(system: str, environment: dict[str, str], expected: str) -> None:
    code = ("import sys; from tosaic.jit.cache.folder import folder; sys.modules['ctypes'] = None\n"  # as where it is not built
            f"sys.platform = {system!r}; print(folder().path)")
    kept = {k: v for k, v in os.environ.items() if k not in ("TOSAIC_CACHE", "XDG_CACHE_HOME")} | {"HOME": "/home/me"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**kept, **environment})
    assert result.stdout.strip() == expected, result.stderr
