"""Items that are NumPy's files, and results that are such files: one for each item, with its name, in the same structure of
folders."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..tools.array_files import read_arrays, save_array, save_arrays

ENDINGS = (".npy", ".npz")


class FileItem(NamedTuple):
    """A `.npy` file with the only input, or a `.npz` file with all inputs by name. `name` is its path relative to the common
    folder of all files, without the suffix."""
    name: str
    path: str

    def read(self, inputs: Sequence[str]) -> Mapping[str, Array]:
        found = read_arrays(self.path)
        if isinstance(found, dict):
            only = len(inputs) == len(found) == 1
            return {inputs[0]: next(iter(found.values()))} if only else {k: v for k, v in found.items() if k in inputs}
        if len(inputs) != 1:
            raise Problem(f"{self.path} is one array, the model has {len(inputs)} inputs", kind="argument",
                          help=f"a .npz file has them by name: {', '.join(inputs)}")
        return {inputs[0]: found}

    @property
    def stamp(self) -> list[int]:
        """A stamp that changes when the file does: its size in bytes and modification time in nanoseconds."""
        status = os.stat(self.path)
        return [status.st_size, status.st_mtime_ns]


class FileResults(NamedTuple):
    """A folder with a `.npy` file for each item or, for several outputs, a `.npz` file."""
    folder: str

    def write(self, item: FileItem, outputs: Mapping[str, Array]) -> int:
        target = Path(self.folder, item.name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Problem(f"{target.parent} cannot be made: {error.strerror or error}", kind="file") from None
        if len(outputs) == 1:
            save_array(f"{target}.npy", next(iter(outputs.values())))
        else:
            save_arrays(f"{target}.npz", outputs)
        return sum(a.nbytes for a in outputs.values())


def file_items(paths: Sequence[str]) -> list[FileItem]:
    """Return the files, and those in the folders, in the order of their names. Raise a Problem if two would have the same
    result file."""
    found = sorted({str(file) for path in paths for file in files_of(Path(path))})
    common = os.path.commonpath([os.path.dirname(os.path.abspath(p)) for p in found]) if found else ""
    items: dict[str, FileItem] = {}
    for path in found:
        name = os.path.splitext(os.path.relpath(os.path.abspath(path), common))[0]
        if name in items:
            raise Problem(f"{path} and {items[name].path} would have one result, {name}", kind="argument",
                          help="give one of them another name")
        items[name] = FileItem(name, os.path.abspath(path))
    return list(items.values())


def files_of(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for ending in ENDINGS for file in path.rglob(f"*{ending}")]
    if not path.exists():
        raise Problem(f"{path} is not there", kind="argument", help="inputs are files, folders of files, or a data set")
    return [path]
