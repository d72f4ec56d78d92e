"""What a run of `map` has done, in its folder: what it is a run of, and a line for each item that is done. A run that ends
early goes on from there; one of another model does not begin.
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TextIO

from ...runtime.errors import Problem, unwritten

HEAD, LINES = ".tosaic-map.json", ".tosaic-map.done"
FORMAT = "tosaic map 1"


class Journal:
    """The journal of a folder, which is made, or gone on with. `run` is what the results depend on besides the items. A Problem
    where the folder has something else in it."""

    def __init__(self, folder: str, run: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._file: TextIO | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.done = self._begun({"format": FORMAT, **run})
        except OSError as error:
            raise unwritten(error, f"results cannot be written to {folder}", "argument") from None

    def _begun(self, head: dict[str, Any]) -> dict[str, Any]:
        """The items that are done, by name, with what they were."""
        place = self.folder / HEAD
        if not place.exists():
            if any(self.folder.iterdir()):
                raise Problem(f"{self.folder} is not empty, and no run of map has begun there", kind="argument",
                              help="name a new folder")
            place.write_text(json.dumps(head, indent=1))
            return {}
        known = self._head()
        differs = next((key for key in head if known.get(key) != head[key]), None)
        if differs is not None:
            raise Problem(f"{self.folder} has results of another run: its {differs} is another", kind="argument",
                          help="name a new folder, or remove that one")
        return self._lines()

    def _head(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / HEAD).read_text())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Problem(f"{self.folder / HEAD} is damaged", kind="file", help="name a new folder")
        return found

    def _lines(self) -> dict[str, Any]:
        """A line that was not written whole is none."""
        found = {}
        place = self.folder / LINES
        for line in place.read_text().splitlines() if place.exists() else ():
            try:
                name, stamp = json.loads(line)
            except ValueError:
                continue
            found[name] = stamp
        return found

    def note(self, name: str, stamp: Any) -> None:
        """That an item is done."""
        if self._file is None:
            self._file = open(self.folder / LINES, "a")  # noqa: SIM115  kept open for the next line
            if self._file.tell() and not (self.folder / LINES).read_bytes().endswith(b"\n"):
                self._file.write("\n")
        self._file.write(json.dumps([name, stamp]) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
