"""Items that are row groups of Parquet files, with a column for each input; results that are Parquet files with a column for
each output, one file for each item, whose names are in the order of the rows. A tensor of a row is a list of its elements, or
a tensor of Arrow's. (The extra `parquet`.)
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...lowering.graph.shape_options import shape_option
from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..descriptors import TensorDescriptor
from ..tools.array_files import whole

ENDING = ".parquet"


class ParquetItem(NamedTuple):
    """A row group of a file. `shapes` are the shapes of one row of each input."""
    name: str
    path: str
    group: int
    shapes: tuple[tuple[int, ...], ...]

    def read(self, inputs: Sequence[str]) -> Mapping[str, Array]:
        table = opened(self.path).read_row_group(self.group)
        columns = columns_for(self.path, table.schema.names, inputs)
        return {name: rows_of(table.column(columns[name]), name, shape) for name, shape in zip(inputs, self.shapes)}

    @property
    def stamp(self) -> list[int]:
        status = os.stat(self.path)
        return [status.st_size, status.st_mtime_ns]


class ParquetResults(NamedTuple):
    """A folder with a file for each item."""
    folder: str

    def write(self, item: ParquetItem, outputs: Mapping[str, Array]) -> int:
        import pyarrow
        from pyarrow import parquet
        table = pyarrow.table({name: column_of(array) for name, array in outputs.items()})
        with whole(str(Path(self.folder, f"{item.name}{ENDING}"))) as partial:
            parquet.write_table(table, partial)
        return sum(a.nbytes for a in outputs.values())


def opened(path: str) -> Any:
    """Open a file; raise a Problem if it cannot be read."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise Problem(f"{path} is a Parquet file, which needs the package pyarrow", kind="argument",
                      help='pip install "tosaic[parquet]"') from None
    try:
        return parquet.ParquetFile(path)
    except Exception as error:  # of whatever kind its readers raise
        raise Problem(f"{path} cannot be read: {error}", kind="file") from None


def columns_for(path: str, names: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Return the column of each input: the one of its name, or the only one for the only input."""
    if len(inputs) == len(names) == 1:
        return {inputs[0]: names[0]}
    missing = next((name for name in inputs if name not in names), None)
    if missing is not None:
        raise Problem(f"{path} has no column for input {missing}", kind="argument", help=f"it has {', '.join(names) or 'none'}")
    return {name: name for name in inputs}


def rows_of(column: Any, name: str, shape: Sequence[int]) -> Array:
    """Return a column as one array, with a tensor of this shape for each row."""
    if column.null_count:
        raise Problem(f"column {name} has rows without a value", kind="argument")
    array, tensor = column.combine_chunks(), column.type
    own = tuple(getattr(tensor, "shape", None) or shape)  # the shape of Arrow's tensors
    in_order = list(getattr(tensor, "permutation", None) or range(len(own))) == list(range(len(own)))
    array = getattr(array, "storage", array)
    while hasattr(array, "flatten") and hasattr(array.type, "value_type"):
        array = array.flatten()
    values = array.to_numpy(zero_copy_only=False)
    fits = own == tuple(shape) and in_order and values.size == len(column) * int(np.prod(shape))
    if values.dtype.kind not in "biuf" or not fits:
        raise Problem(f"column {name} is {column.type}, which is no {list(shape)} numbers in each row", kind="argument")
    return values.reshape(len(column), *shape)


def column_of(array: Array) -> Any:
    """Return an array as a column: numbers, or a list of the elements of each row."""
    import pyarrow
    flat = pyarrow.array(np.ascontiguousarray(array).reshape(-1))
    size = int(np.prod(array.shape[1:]))
    return flat if array.ndim == 1 else pyarrow.FixedSizeListArray.from_arrays(flat, size)


def parquet_files(paths: Sequence[str]) -> list[Path]:
    """Return the Parquet files, and those in the folders; none unless every path is or contains one."""
    found: list[Path] = []
    for path in map(Path, paths):
        files = sorted(path.rglob(f"*{ENDING}")) if path.is_dir() else [path] if path.suffix == ENDING else []
        if not files:
            return []
        found += files
    return found


def parquet_items(files: Sequence[Path], inputs: Sequence[TensorDescriptor]) -> list[ParquetItem]:
    """Return the row groups of all files, in order."""
    shapes = []
    for tensor in inputs:
        if tensor.shape is None or None in tensor.shape:
            raise Problem(f"input {tensor.name} has open extents, and a column does not say them", kind="argument",
                          help=f"give it a shape: {shape_option(tensor.name, tensor.shape)}")
        shapes.append(tuple(n for n in tensor.shape if n is not None))
    groups = [(file, group) for file in files for group in range(opened(str(file)).num_row_groups)]
    return [ParquetItem(f"part-{number:06}", str(file.resolve()), group, tuple(shapes))
            for number, (file, group) in enumerate(groups)]
