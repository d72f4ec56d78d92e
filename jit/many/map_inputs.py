"""A model over many inputs: files, the rows of a Zarr store, or those of Parquet files, on workers. Workers read the inputs and
write the results themselves, so that only names go through this process; on a cluster, all machines must see the same files.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ..cache.keys import NotKept
from ..descriptors import TensorDescriptor
from ..tools.array_files import remove_partial
from .files import FileResults, file_items
from .journal import HEAD, Journal
from .model_calls import ModelCalls
from .parquet_rows import ParquetResults, parquet_files, parquet_items
from .workers import Workers
from .zarr_rows import create_results, is_zarr, zarr_items

if TYPE_CHECKING:
    from ..models.entry import Entry
    from ..models.model import Model


@dataclass(frozen=True, slots=True)
class DataSet:
    """The inputs of a run: the items, and the destination of their results. The items of files are sequences of calls
    (`in_order`), rows of a data set are not."""
    kind: str
    items: Sequence[Any]
    results: Callable[[], Any]
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class MapResult:
    """The summary of a run: items done now, and in earlier runs; calls; bytes of the results; errors by the items' names."""
    items: int
    before: int
    calls: int
    nbytes: int
    errors: Mapping[str, str]
    seconds: float
    workers: str

    def __str__(self) -> str:
        lines = [f"{name}: {error}" for name, error in self.errors.items()]
        before = f", {self.before:,} were done before" if self.before else ""
        failed = f", {len(self.errors):,} failed" if self.errors else ""
        lines.append(f"{counted(self.items, 'item')} with {counted(self.calls, 'call')} on {self.workers} in "
                     f"{self.seconds:.1f} s, {self.nbytes:,} bytes of results{before}{failed}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"items": self.items, "before": self.before, "calls": self.calls, "bytes": self.nbytes,
                "errors": dict(self.errors), "seconds": self.seconds, "workers": self.workers}


def map_inputs(model: Model, entry: Entry, paths: Sequence[str], output: str, workers: Workers,
               on_progress: Callable[[int, int], None] = lambda done, total: None) -> MapResult:
    """Run an entry of a model over all inputs, and write the results to a folder. A wrong input is reported as an error under
    its name, and the others continue. Items that an earlier run has finished, with this model and unchanged inputs, are
    skipped. `on_progress` is called with the number of finished items and the total."""
    began, output, entry = time.perf_counter(), os.path.abspath(output), entry.for_any_shape
    data = data_set_of(entry, paths, output)
    journal = Journal(output, {"model": digest_of(model), "entry": entry.name, "kind": data.kind,
                               "inputs": [str(t) for t in entry.inputs]})
    calls = ModelCalls(entry, data.results(), data.in_order)
    if not entry.is_dynamic:
        calls.prepare()
    todo = [(item, item.stamp) for item in data.items if journal.done.get(item.name) != item.stamp]
    count, nbytes, errors, finished = 0, 0, {}, 0
    try:
        for outcome in workers.run(SharedFolder(calls, output), (item for item, _ in todo)):
            item, stamp = todo[outcome.number]
            finished += 1
            if outcome.error is None:
                journal.note(item.name, stamp)
                count, nbytes = count + outcome.value.calls, nbytes + outcome.value.nbytes
            else:
                errors[item.name] = outcome.error
            on_progress(finished, len(todo))
        remove_partial(output)
    finally:
        journal.close()
    return MapResult(finished - len(errors), len(data.items) - len(todo), count, nbytes, dict(sorted(errors.items())),
                     time.perf_counter() - began, workers.description)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """The calls, on a worker that must see the folder of the results: a worker with another file system would leave the results
    there."""
    calls: ModelCalls
    folder: str

    def __call__(self, item: Any) -> Any:
        if not Path(self.folder, HEAD).is_file():
            import platform
            raise Problem(f"{platform.node()} does not see {self.folder}", kind="file",
                          help="inputs and results are on a file system that all workers have, under the same path")
        return self.calls(item)


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def data_set_of(entry: Entry, paths: Sequence[str], output: str) -> DataSet:
    """Return the data set of the paths: one Zarr store, Parquet files, or NumPy's files."""
    inputs = entry.inputs
    if not inputs:
        raise Problem(f"{entry.name} has no inputs", kind="argument", help="tosaic run calls it")
    names = [t.name for t in inputs]
    if any(map(is_zarr, paths)):
        if len(paths) != 1:
            raise Problem("a Zarr store is a data set by itself", kind="argument", help="give it alone")
        rows = zarr_items(paths[0], names)
        return DataSet("zarr", rows, lambda: create_results(output, rows, inputs, lambda shapes: outputs_for(entry, shapes)))
    if files := parquet_files(paths):
        return DataSet("parquet", parquet_items(files, inputs), lambda: ParquetResults(output))
    items = file_items(paths)
    if not items:
        raise Problem(f"there is no .npy or .npz file in {', '.join(paths)}", kind="argument")
    return DataSet("files", items, lambda: FileResults(output), in_order=True)


def outputs_for(entry: Entry, shapes: Sequence[Sequence[int]]) -> tuple[TensorDescriptor, ...]:
    """Return the outputs of a call with inputs of these shapes."""
    return (entry.specialize(dict(zip(entry.input_names, shapes))) if entry.is_dynamic else entry).outputs


def digest_of(model: Model) -> str:
    """Return the model's identification in the journal."""
    from ..cache.graph_digest import graph_digest
    try:
        return graph_digest(model.module)
    except NotKept:
        return f"a model with operators that are not tosaic's: {', '.join(model.entries)}"
