"""`--model-explorer FOLDER` of `tosaic report` and `tosaic profile`: the files that Google's Model Explorer opens. For a model
that it cannot show, or not by names that are known here, the folder also has the `.tosa`.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ..models.read import read_bytes
from ..tools.model_explorer import Measure, ShownFile

if TYPE_CHECKING:
    from ..stages import Lowered

SHOWN = {b"TFL3": "", b"TOSA": "--extensions=tosa_adapter_model_explorer "}
"""Formats that Model Explorer shows, by the bytes at offset 4, each with the extra arguments of its command (the adapter)."""

LowerEntry = Callable[[str, str | None], "Lowered"]
"""Reads the model at a path, and lowers one of its entries."""


@dataclass(frozen=True, slots=True)
class ShownModel:
    """A model that Model Explorer shows: a file with its bytes, and its function after lowering."""
    path: Path
    data: bytes
    lowered: Lowered

    def write(self, folder: str, measures: Sequence[Measure]) -> tuple[str, dict[str, Any]]:
        """Write node data of measures, one file each. Return the command to print, and the files for JSON."""
        from ..aot import write_files
        shown, where = ShownFile.of(self.data), Path(folder)
        found = {where / f"{m.name}.json": json.dumps(shown.data(m), indent=1).encode() for m in measures}
        write_files(where, found)
        more = SHOWN[self.data[4:8]]
        command = f"model-explorer {self.path} {more}--node_data_paths={','.join(map(str, found))}"
        return command, {"model": str(self.path), "data": list(map(str, found))}


def shown_model(model: str, folder: str, entry: str | None, lower: LowerEntry) -> ShownModel:
    """Return a model that Model Explorer shows: the file itself, or its `.tosa` form, written to the folder."""
    if model == "-":
        raise Problem("--model-explorer needs a model in a file", kind="option", help="Model Explorer opens it, too")
    data, path = read_bytes(model)[0], Path(model)
    if data[4:8] in SHOWN:
        return ShownModel(path, data, lower(model, entry))
    from ...lowering.flatbuffer.writer import write_module
    from ..aot import write_files
    module = lower(model, entry).traced.module
    written, path = write_module(module), Path(folder) / f"{path.stem}.tosa"
    write_files(path.parent, {path: written})
    is_alone = len([f for f in module.functions if not f.is_private]) == 1  # then it is called main
    return ShownModel(path, written, lower(str(path), None if is_alone else entry))
