"""The front door: loads a model from any source that holds one. `load` determines the kind of a source, reports it if there is
no reader for it, and otherwise passes it to its reader: `load_model` for formats that are read here, `foreign_files` for those
that TensorFlow and PyTorch read.
"""
from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ...runtime.limits import here
from .load_model import known_model, load_model
from .model import Model
from .read import is_text, read_bytes

if TYPE_CHECKING:
    from ...lowering.rewrite.tensorflow import Bindings
    from .file_kinds import Kind

MLIR = r"(?m)^\s*(?:module\b|func\b|tosa\.|\"?builtin\.module|\"?(?:tf|tf_executor|tosa|onnx)\.|[#!%]\w+\s*=)"
"""Pattern of the beginning of a line of MLIR text; a text without such a line is something else."""


def load(source: Any, name: str | None = None, bindings: Bindings | None = None) -> Model:
    """Load a model from a path of a file or folder, an open binary file, bytes, or MLIR text, and verify it. Raises a Problem
    that names the kind of the source if it is no model that can be read here."""
    if is_text(source):
        return load_model(source, name, bindings)
    if isinstance(source, str | os.PathLike):
        check_address(os.fspath(source))
        if is_there_twice(source):
            found = known_model(source, name) if bindings is None else None
            return found or load_path(source, name, bindings)
    from .file_kinds import kind_of_bytes
    data, place = read_bytes(source)
    shown = name or place
    return load_kind(kind_of_bytes(data, shown), data, shown, shown, bindings)


def load_path(path: str | os.PathLike[str], name: str | None, bindings: Bindings | None) -> Model:
    """Load the model of a file or folder that the cache does not know; its kind is determined only now."""
    from .file_kinds import kind_of_path
    shown = name or os.fspath(path)
    return load_kind(kind_of_path(path, shown), path, name, shown, bindings)


def load_kind(kind: Kind, source: str | os.PathLike[str] | bytes, name: str | None, shown: str, bindings: Bindings | None
              ) -> Model:
    """Load the model of a source of a known kind: a path that can be read again, or bytes. Messages call it `shown`."""
    if kind.reader != "module":
        return foreign(kind, source, shown)
    try:
        return load_model(source, name, bindings)
    except Problem as problem:
        raise advised(problem, shown) from None


def foreign(kind: Kind, source: str | os.PathLike[str] | bytes, shown: str) -> Model:
    """Load a model that another system reads; limits cannot be enforced on that system's work in this process."""
    if here.scope is not None:
        raise Problem(f"{shown} is {kind.words}, which {kind.reader} reads, and limits do not hold for that", kind="limit",
                      help="write it as TOSA where you trust its maker: tosaic convert MODEL model.mlir")
    from .foreign_files import load_foreign
    return load_foreign(kind, source, shown)


def is_there_twice(path: str | os.PathLike[str]) -> bool:
    """True if a path can be read again: that of a file or a folder, but not of a pipe."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def check_address(path: str | bytes) -> None:
    if isinstance(path, str) and re.match(r"(?i:https?|ftp|s3|gs|hf)://", path):
        raise Problem(f"{path} is an address, and tosaic reads files of this machine", kind="file",
                      help="download it first, and give the file")


def advised(problem: Problem, shown: str) -> Problem:
    """Return the problem, with a clearer message if the text is no MLIR at all."""
    place = problem.position
    if problem.kind == "syntax" and problem.help is None and place and place.source.text is not None and not re.search(
            MLIR, place.source.text[:1 << 16]):
        from .file_kinds import READ
        problem.message = f"{shown} is text, and no MLIR: {problem.message}"
        problem.args = (problem.message,)
        problem.help = f"tosaic reads {READ}"
    return problem
