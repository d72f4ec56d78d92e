"""`tosaic doctor`: a summary of this installation, for questions and for bug reports. Nothing is compiled."""
from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import Any

from .answer import NO, YES, Answer, Table

EXTRAS = {"tflite": ("tosa_converter_for_tflite",), "onnx": ("onnx",), "tensorflow": ("tensorflow",),
          "torch": ("torch", "torch_mlir")}
"""The packages that each extra's importers need."""
DISTRIBUTIONS = {"tensorflow": ("tensorflow", "tensorflow-cpu"), "torch_mlir": ("torch-mlir",),
                 "tosa_converter_for_tflite": ("tosa-converter-for-tflite",)}
"""Names in pip of the packages whose distribution and import names differ."""


def doctor(options: argparse.Namespace) -> Answer:
    """Return versions, the machine, threads, the cache and the extras; exit code 1 if something is wrong that has a remedy."""
    found, wrong = facts()
    width = max(map(len, found))
    lines = [f"{key.ljust(width)}  {value}" for key, value in found.items()]
    faults = [f"wrong: {each}" for each in wrong]
    return Answer(NO if wrong else YES, "\n".join([*lines, *faults]), found | {"wrong": wrong},
                  Table(("what", "is"), [(key, str(value)) for key, value in found.items()], "\n".join(faults)))


def facts() -> tuple[dict[str, Any], list[str]]:
    """Return the facts by name, and the faults."""
    from llvmlite import binding

    from ... import __version__
    from ...lowering.target.presets import host
    from ...runtime.threads import get_num_threads
    here = host()
    found = {"tosaic": __version__, "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
             "llvmlite": f"{version('llvmlite')}, LLVM {'.'.join(map(str, binding.llvm_version_info))}",
             "NumPy": version("numpy"), "machine": f"{here.triple}, {here.cpu}, vectors of {here.vector_bytes} bytes",
             "threads": f"{get_num_threads()} of {os.cpu_count() or 1}"}
    found["cache"], wrong = cache_state()
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        found[f"extra {extra}"] = f'pip install "tosaic[{extra}]"' if missing else ", ".join(map(version_of, packages))
    return found, wrong + outdated()


def cache_state() -> tuple[str, list[str]]:
    """Return the cache's folder with its size, and the reasons why it cannot be used."""
    from ..cache.folder import folder
    where = folder()
    if where is None:
        return "off", []
    usage = where.usage()
    text = f"{where.path}: {usage.entries} files, {usage.nbytes:,} bytes of at most {where.limit:,}"
    if os.path.isdir(where.path) and not where.is_trusted():
        return text, [f"{where.path} belongs to somebody else, or others may write it, so it is not used: "
                      "chmod go-w it, or name another one in TOSAIC_CACHE"]
    return text, []


def version_of(package: str) -> str:
    for name in DISTRIBUTIONS.get(package, (package,)):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return package


def outdated() -> list[str]:
    """Return the dependencies of the installed package that are missing."""
    try:
        named = requires("tosaic") or []
    except PackageNotFoundError:
        return []
    plain = [r for r in named if "extra ==" not in r]
    missing = []
    for requirement in plain:
        name = requirement.split(";")[0].strip().rstrip("0123456789.,<>=!~ ")
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(f"{name} is missing: pip install {requirement}")
    return missing
