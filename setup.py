"""What pyproject.toml cannot say of the packaging: the root of the repository is the package `tosaic`, its packages are the
folders of the source that have an `__init__.py`, and archives are the same bytes wherever and whenever they are built.

An archive depends on the sources and on the version of setuptools alone: its files have one date (SOURCE_DATE_EPOCH, or 1980,
the first that a wheel can have), one owner, the modes 644 and 755, and the order of their names. What an earlier build left
behind is not in it, because each builds in a folder of its own.
"""
from __future__ import annotations

import atexit
import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
ROOMS = ("jit", "lowering", "runtime")
NOT_DATA = (".py", ".pyc", ".pyo", ".md")
"""Files of a package that are no data of it: its modules, what Python makes of them, its page."""
FIRST_DATE = 315532800
"""1980-01-01 in seconds since 1970: zip archives know no earlier one."""


def packages() -> dict[str, Path]:
    """Every package, and its folder."""
    folders = [ROOT, *sorted(file.parent for room in ROOMS for file in (ROOT / room).rglob("__init__.py"))]
    return {".".join(("tosaic", *folder.relative_to(ROOT).parts)): folder for folder in folders}


def data_of(folder: Path) -> list[str]:
    """The data of a package: files in its folder that are not its modules. At the root the marker for type checkers alone."""
    if folder == ROOT:
        return ["py.typed"]
    return sorted(p.name for p in folder.iterdir() if p.is_file() and p.suffix not in NOT_DATA and not p.name.startswith("."))


def date() -> int:
    """The date of every file of an archive."""
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_DATE)), FIRST_DATE)


def mode(is_executable: bool) -> int:
    return 0o755 if is_executable else 0o644


class FreshBuild(build):
    """Builds in a new folder."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="tosaic-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class ReproducibleWheel(bdist_wheel):
    """A wheel whose bytes follow from its contents."""

    def run(self) -> None:
        super().run()
        for kind, _, path in self.distribution.dist_files:
            if kind == "bdist_wheel":
                rewrite_zip(Path(path))


class ReproducibleSdist(sdist):
    """A source archive whose bytes follow from its contents."""

    def make_archive(self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, owner: Any = None,
                     group: Any = None) -> str:
        if format != "gztar":
            return str(super().make_archive(base_name, format, root_dir, base_dir, owner, group))
        target = f"{base_name}.tar.gz"
        write_tar(Path(target), Path(root_dir or "."), str(base_dir))
        return target


def rewrite_zip(path: Path) -> None:
    """The same archive with one date and plain modes. What is said of its contents stays true."""
    whole = path.with_name(f".{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            info = zipfile.ZipInfo(entry.filename, time.gmtime(date())[:6])
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3  # Unix, whose modes these are
            info.external_attr = (stat.S_IFREG | mode(False)) << 16
            new.writestr(info, old.read(entry))
    os.replace(whole, path)


def write_tar(target: Path, root: Path, base: str) -> None:
    """A folder as a compressed archive."""
    with target.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=date()) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted((root / base).rglob("*"), key=lambda p: p.as_posix()):
            if path.is_file():
                info = archive.gettarinfo(path, path.relative_to(root).as_posix())
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime, info.mode = date(), mode(bool(info.mode & 0o100))
                with path.open("rb") as contents:
                    archive.addfile(info, contents)


setup(script_name="setup.py", packages=list(packages()), package_dir={"tosaic": "."},
      package_data={name: data_of(folder) for name, folder in packages().items()},
      cmdclass={"build": FreshBuild, "bdist_wheel": ReproducibleWheel, "sdist": ReproducibleSdist})
