"""Items that are rows of a Zarr array, or of a group with an array for each input; results that are Zarr arrays. An item is the
range of one chunk of the first array along its first axis, and its results are one chunk of each output, so that no two workers
write the same chunk. (The extra `zarr`.)
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...lowering.graph.shape_options import shape_option
from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ..descriptors import TensorDescriptor
from .call_shapes import call_shapes

MARKS = ("zarr.json", ".zarray", ".zgroup")
"""Files at the root of a Zarr store, by which it is recognized."""


def is_zarr(path: str) -> bool:
    return any(Path(path, mark).is_file() for mark in MARKS)


class ZarrItem(NamedTuple):
    """A range of rows of a store."""
    name: str
    path: str
    start: int
    stop: int

    def read(self, inputs: Sequence[str]) -> Mapping[str, Array]:
        return {name: np.asarray(array[self.start:self.stop]) for name, array in arrays_of(self.path, inputs).items()}

    @property
    def stamp(self) -> list[int]:
        return [self.start, self.stop]


class ZarrResults(NamedTuple):
    """A folder with a store `NAME.zarr` for each output; `rows` is the ratio of rows of the results to rows of the inputs, as
    numerator and denominator."""
    folder: str
    rows: tuple[int, int]

    def write(self, item: ZarrItem, outputs: Mapping[str, Array]) -> int:
        up, down = self.rows
        for number, (name, array) in enumerate(outputs.items()):
            store = opened(str(Path(self.folder, store_name(number, name))), "r+")
            store[item.start * up // down:item.stop * up // down] = array
        return sum(a.nbytes for a in outputs.values())


def store_name(number: int, name: str) -> str:
    """Return the folder of an output. A model's names may hold any character; a name that is no plain word gets its number as a
    prefix."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return f"{plain}.zarr" if plain == name and plain else f"{number}-{plain}.zarr"


def opened(path: str, mode: str) -> Any:
    """Open an array or a group; raise a Problem if it cannot be read."""
    try:
        import zarr
    except ImportError:
        raise Problem(f"{path} is a Zarr store, which needs the package zarr", kind="argument",
                      help='pip install "tosaic[zarr]"') from None
    try:
        return zarr.open(path, mode=mode)  # type: ignore[arg-type]
    except Exception as error:  # of whatever kind its readers raise
        raise Problem(f"{path} cannot be read: {error}", kind="file") from None


def arrays_of(path: str, inputs: Sequence[str]) -> dict[str, Any]:
    """Return the store's arrays for these inputs: the store itself if it is an array, or those of a group by name."""
    store = opened(path, "r")
    if hasattr(store, "shape"):
        if len(inputs) != 1:
            raise Problem(f"{path} is one array, the model has {len(inputs)} inputs", kind="argument",
                          help=f"a group has arrays by name: {', '.join(inputs)}")
        return {inputs[0]: store}
    known = dict(store.arrays())
    missing = next((name for name in inputs if name not in known), None)
    if missing is not None:
        raise Problem(f"{path} has no array for input {missing}", kind="argument", help=f"it has {', '.join(known) or 'none'}")
    return {name: known[name] for name in inputs}


def zarr_items(path: str, inputs: Sequence[str]) -> list[ZarrItem]:
    """Return the store's rows, split by the chunks of its first array."""
    arrays = arrays_of(path, inputs)
    counts = {name: a.shape[0] if a.shape else 0 for name, a in arrays.items()}
    if len(set(counts.values())) != 1 or not (count := next(iter(counts.values()))):
        raise Problem(f"{path} has no rows that its arrays share: {', '.join(f'{k} has {n}' for k, n in counts.items())}",
                      kind="argument")
    first = next(iter(arrays.values()))
    rows = int(first.chunks[0])
    return [ZarrItem(f"rows {start} to {min(start + rows, count) - 1}", str(Path(path).resolve()), start,
                     min(start + rows, count)) for start in range(0, count, rows)]


def create_results(folder: str, items: Sequence[ZarrItem], inputs: Sequence[TensorDescriptor],
                   outputs_of: Any) -> ZarrResults:
    """Create stores for the outputs that have none yet. `outputs_of` returns descriptors of the outputs for inputs of given
    shapes."""
    import zarr
    first, count = items[0], items[-1].stop
    shapes = [a.shape for a in arrays_of(first.path, [t.name for t in inputs]).values()]
    dummies = [np.broadcast_to(np.zeros((), np.int8), (first.stop - first.start, *shape[1:])) for shape in shapes]
    form = call_shapes(inputs, dummies)
    part = [form.part(a, t, 0) if form.form != "one" else a for a, t in zip(dummies, inputs)]
    rows = 0
    for number, tensor in enumerate(outputs_of([a.shape for a in part])):
        if tensor.shape is None or None in tensor.shape:
            raise Problem(f"output {tensor.name} has open extents, which a Zarr array cannot have", kind="argument",
                          help="give its inputs shapes: " + " ".join(shape_option(t.name, t.shape) for t in inputs))
        shape = (form.times, *tensor.shape) if form.form == "stacked" or not tensor.shape else (
            tensor.shape[0] * form.times, *tensor.shape[1:])
        if rows not in (0, shape[0]):
            raise Problem(f"outputs have {rows} and {shape[0]} rows for those of one chunk", kind="argument")
        rows = shape[0]
        path = Path(folder, store_name(number, tensor.name))
        if not is_zarr(str(path)):
            zarr.create_array(store=str(path), shape=(count * rows // len(dummies[0]), *shape[1:]), chunks=shape,
                              dtype=tensor.dtype)
    return ZarrResults(folder, (rows, len(dummies[0])))
