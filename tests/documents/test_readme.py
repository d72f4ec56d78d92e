"""The README is true: its code runs and prints what it says, its commands exist, its links lead somewhere."""
from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def block_with(text: str) -> str:
    """The one block of Python that holds this."""
    found, = (block for block in blocks("python") if text in block)
    return found


def run(code: str, folder: pathlib.Path) -> str:
    """What a block prints, run in a process of its own, in a folder that has the samples."""
    (folder / "samples").symlink_to(ROOT / "samples")
    (folder / "block.py").write_text(code)
    result = subprocess.run([sys.executable, "block.py"], capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_function_prints_what_the_readme_says(tmp_path: pathlib.Path) -> None:
    printed = run(blocks("python")[0], tmp_path).splitlines()
    expected = re.findall(r"^prints\n\n```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[0].splitlines()
    assert printed[:len(expected)] == expected


def test_the_model_is_run_reported_and_saved(tmp_path: pathlib.Path) -> None:
    arena, bound = map(int, run(blocks("python")[1], tmp_path).split())
    assert arena >= bound > 0
    assert {p.name for p in (tmp_path / "build").iterdir()} == {"lstm.o", "tosaic_lstm.h"}


def test_an_operator_of_ones_own_runs(tmp_path: pathlib.Path) -> None:
    code = block_with("tosaic.custom")
    comment = re.findall(r"# (\[.*\])$", code, re.MULTILINE)
    assert len(comment) == 1 and run(code, tmp_path).splitlines() == comment


@pytest.mark.skipif(any(importlib.util.find_spec(package) is None for package in ("torch", "torch_mlir")),
                    reason="the extra `torch` is not installed")
def test_a_module_of_pytorch_gives_what_pytorch_gives(tmp_path: pathlib.Path) -> None:
    code = block_with("from_torch")
    comment, = re.findall(r"# (\[\[.*\]\])$", code, re.MULTILINE)
    printed, = run(code, tmp_path).splitlines()
    numbers = [[float(n) for n in re.findall(r"[0-9.]+", text)] for text in (printed, comment)]
    assert len(numbers[0]) == 4 and numbers[0] == pytest.approx(numbers[1], abs=1e-5)


COMMANDS = [line.split("#")[0] for block in blocks("sh") for line in block.splitlines() if line.startswith("tosaic ")]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_works(line: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    from tosaic.jit.cli import main
    model = ROOT / "tests" / "data" / ("corpus/v_lstm.tflite" if ".tflite" in line else "corpus/v_lstm.mlir")
    np.save(tmp_path / "image.npy", np.zeros((1, 6), np.float32))
    words = shlex.split(line)[1:]
    name = "x" if ".tflite" in line else "arg0"
    here = {"x=image.npy": f"{name}={tmp_path / 'image.npy'}", "build": str(tmp_path / "build"),
            "model.tosa": str(tmp_path / "model.tosa"), "report.html": str(tmp_path / "report.html"),
            "trace.json": str(tmp_path / "trace.json")}
    words = [here.get(w, str(model) if w.startswith("model.") else w) for w in words]
    monkeypatch.chdir(tmp_path)  # whatever is written is written there
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(words) == 0
    assert output.getvalue().strip()


def test_the_two_commands_name_things_that_exist() -> None:
    commands = [block for block in blocks("sh") if ".venv/bin/pip" in block]
    assert len(commands) == 2
    assert (ROOT / "samples" / "1_wake_word.py").exists()
    project = (ROOT / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in project for extra in re.findall(r"\.\[(\w+)\]", "".join(commands)))


def test_every_link_leads_to_a_file() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if not link.startswith("http")]
    assert links and all((ROOT / link).exists() for link in links)


def test_no_figure_is_left_out() -> None:
    assert "FIGURES" not in TEXT
