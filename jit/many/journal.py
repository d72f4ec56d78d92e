"""The journal of a run of `map`, in its folder: what the run is of, and a line for each finished item. A run that ends early
can be continued; a run of another model in the same folder is refused.
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
    """The journal of a folder, created or continued. `run` identifies everything but the items that the results depend on.
    Raises a Problem if the folder has other contents."""

    def __init__(self, folder: str, run: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._file: TextIO | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.done = self._begun({"format": FORMAT, **run})
        except OSError as error:
            raise unwritten(error, f"results cannot be written to {folder}", "argument") from None

    def _begun(self, head: dict[str, Any]) -> dict[str, Any]:
        """Return the stamps of the finished items, by name."""
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
        """Return the stamps in the lines, by name, and skip a line that was not written completely."""
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
        """Record that an item is done."""
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
