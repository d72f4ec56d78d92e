"""The wheel and the source archive: what is in them, and that they are the same bytes wherever they are built. The second build
is made from the first one's source archive, as others with other modes, times, time zones and leftovers would make it."""
from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import pytest
import tosaic
import yaml

ROOT = pathlib.Path(__file__).parents[2]
ROOMS = ("jit", "lowering", "runtime")
MADE = {"PKG-INFO", "setup.cfg", *(f"tosaic.egg-info/{name}" for name in (
    "PKG-INFO", "SOURCES.txt", "dependency_links.txt", "entry_points.txt", "requires.txt", "top_level.txt"))}
"""What setuptools adds to a source archive."""
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "dist", "site",
                                  "*.egg-info")
PYTHON = "Programming Language :: Python :: "
BUILD = "import sys; from setuptools import build_meta as b; to = sys.argv[1]; print(b.build_wheel(to), b.build_sdist(to))"


class Archives(NamedTuple):
    wheel: pathlib.Path
    source: pathlib.Path


def setuptools_version() -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version("setuptools").split(".")[:2])
    except PackageNotFoundError:
        return ()


def built(folder: pathlib.Path, out: pathlib.Path, umask: int = 0o022, **environment: str) -> Archives:
    out.mkdir()
    result = subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=folder, capture_output=True, text=True, umask=umask,
                            env={**{k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}, **environment})
    assert result.returncode == 0, result.stdout + result.stderr
    wheel, source = result.stdout.splitlines()[-1].split()
    return Archives(out / wheel, out / source)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    if setuptools_version() < (77,):
        pytest.skip("setuptools 77 is not installed (the extra `test` has it)")
    folder = tmp_path_factory.mktemp("first")
    shutil.copytree(ROOT, folder / "checkout", ignore=LEFT_OUT)
    return built(folder / "checkout", folder / "out")


@pytest.fixture(scope="module")
def second(first: Archives, tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Archives that are built from the first source archive, by somebody else."""
    folder = tmp_path_factory.mktemp("second")
    with tarfile.open(first.source) as archive:
        archive.extractall(folder, filter="data")
    source, = folder.iterdir()
    for path in source.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
    (source / "build" / "lib" / "tosaic").mkdir(parents=True)
    (source / "build" / "lib" / "tosaic" / "left_behind.py").write_text("")
    return built(source, folder / "out", umask=0o077, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="1")


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def metadata(wheel: pathlib.Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name, = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_wheel_of_another_place_has_the_same_bytes(first: Archives, second: Archives) -> None:
    assert digest(first.wheel) == digest(second.wheel)


def test_the_source_archive_of_another_place_has_the_same_bytes(first: Archives, second: Archives) -> None:
    assert digest(first.source) == digest(second.source)


def test_the_wheel_holds_the_source_and_its_data_and_nothing_else(first: Archives) -> None:
    expected = {f"tosaic/{p.relative_to(ROOT).as_posix()}" for room in ROOMS for p in (ROOT / room).rglob("*")
                if p.is_file() and p.suffix != ".md" and "__pycache__" not in p.parts}
    with zipfile.ZipFile(first.wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    root = {f"tosaic/{p.name}" for p in ROOT.glob("*.py") if p.name != "setup.py"}
    assert found == expected | root | {"tosaic/py.typed"} and "tosaic/__init__.py" in root


def test_the_source_archive_is_the_repository(first: Archives) -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no checkout of git")
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\0")
    with tarfile.open(first.source) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert found - MADE == {name for name in listed if name and (ROOT / name).exists()}


def test_the_wheel_works_where_the_repository_is_not(first: Archives, tmp_path: pathlib.Path) -> None:
    with zipfile.ZipFile(first.wheel) as archive:
        archive.extractall(tmp_path)
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    code = (f"import tosaic; m = tosaic.load({text!r}); "
            "print(tosaic.__file__, tosaic.__version__, m.main.inputs[0].shape)")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/",
                            env={**os.environ, "PYTHONPATH": str(tmp_path), "TOSAIC_CACHE": "off"})
    place = tmp_path / "tosaic" / "__init__.py"
    assert result.stdout.splitlines() == [f"{place} {tosaic.__version__} (2,)"], result.stderr


def test_the_metadata_says_the_version_of_the_package(first: Archives) -> None:
    assert metadata(first.wheel)["Version"] == tosaic.__version__


def test_the_metadata_names_the_pythons_that_it_takes(first: Archives) -> None:
    found = metadata(first.wheel)
    named = [c.removeprefix(f"{PYTHON}3.") for c in found.get_all("Classifier", []) if c.startswith(f"{PYTHON}3.")]
    minors = sorted(map(int, named))
    assert minors == list(range(minors[0], minors[-1] + 1)) and found["Requires-Python"] == f">=3.{minors[0]}"
    assert found["Keywords"] and found["License-Expression"] == "Apache-2.0"


def test_the_matrix_of_the_tests_has_those_pythons(first: Archives) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["everywhere"]["strategy"]["matrix"]
    assert [f"{PYTHON}{version}" for version in matrix["python"]] == [
        c for c in metadata(first.wheel).get_all("Classifier", []) if c.startswith(f"{PYTHON}3.")]
    assert {system.partition("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}
    commands = [step.get("run", "") for step in workflow["jobs"]["everywhere"]["steps"]]
    folders = [word for command in commands for word in command.split() if word.startswith("tests/")]
    assert folders and all((ROOT / folder).is_dir() for folder in folders)
