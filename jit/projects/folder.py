"""A project's folder on disk, written atomically: either all of its files are new, or all are as before. A list of the written
files (`LISTING`) records that tosaic made the folder, and which files are unchanged since: only those are overwritten.
"""
from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path

from ...runtime.errors import Problem, unwritten

LISTING = "tosaic.json"
"""Name of the file that lists all others, with a checksum of each."""


def write_project(folder: Path, files: Mapping[str, bytes], model: str) -> None:
    """Write the files of a model, by their paths with slashes, to a folder: a new one, an empty one, or one that this function
    has written before for a model of that name."""
    old = checked_listing(folder, model)
    for path in files:
        check_free(folder, path, old)
    checksums = {path: zlib.crc32(data) for path, data in sorted(files.items())}
    listing = {"written by": "tosaic", "model": model, "files": checksums}
    whole = {**files, LISTING: (json.dumps(listing, indent=1) + "\n").encode()}
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_files(folder, whole, [path for path in old if path not in files])
    except OSError as error:
        if not existed and folder.exists():
            folder.rmdir()
        raise unwritten(error, f"cannot write to {folder}") from error


def checked_listing(folder: Path, model: str) -> dict[str, int]:
    """Return the files that were written here before, with their checksums; raise a Problem if the folder is not tosaic's, or
    not this model's, as the files of another model would be removed."""
    if folder.exists() and not folder.is_dir():
        raise Problem(f"{folder} is no folder", kind="file", help="name another one with -o")
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return {}
        found = json.loads((folder / LISTING).read_bytes())
        listing = {str(path): int(checksum) for path, checksum in found["files"].items()}
        if found["written by"] != "tosaic" or not all(map(is_inside, listing)):
            raise ValueError("the list is another's")
        if found["model"] != model:
            raise Problem(f"{folder} is the project of {found['model']}, and this is {model}", kind="file",
                          help=f"name a folder of its own with -o, such as {folder / model}, or remove that one")
        return listing
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            raise unwritten(error, f"cannot read {folder}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise Problem(f"{folder} has files in it that tosaic has not written", kind="file",
                  help="name an empty folder, or one that is not there, with -o") from None


def is_inside(path: str) -> bool:
    """True if a path does not lead outside the folder that it is relative to."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def check_free(folder: Path, path: str, old: Mapping[str, int]) -> None:
    """Raise a Problem if a file exists that somebody else has written, or changed since."""
    place = folder / path
    if not os.path.lexists(place):
        return
    if not place.is_file() or path not in old or zlib.crc32(place.read_bytes()) != old[path]:
        raise Problem(f"{place} has been changed since tosaic wrote it" if path in old else f"{place} is there already",
                      kind="file", help="move it away, or name another folder with -o")


def replace_files(folder: Path, files: Mapping[str, bytes], stale: list[str]) -> None:
    """Put files into a folder, and remove stale ones: all of that, or nothing. New files are written to a temporary folder
    first; old ones are moved there and restored if anything fails."""
    aside = folder / f".tosaic.{os.getpid()}"
    moves: list[tuple[Path, Path]] = []

    def move(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)
        moves.append((source, target))

    try:
        for path, data in files.items():
            (aside / "new" / path).parent.mkdir(parents=True, exist_ok=True)
            (aside / "new" / path).write_bytes(data)
        for path in (*files, *stale):
            if os.path.lexists(folder / path):
                move(folder / path, aside / "old" / path)
        for path in files:
            move(aside / "new" / path, folder / path)
    except BaseException:
        for source, target in reversed(moves):
            os.replace(target, source)
        remove_empty(folder, files)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    remove_empty(folder, stale)


def remove_empty(folder: Path, paths: Mapping[str, bytes] | list[str]) -> None:
    """Remove the folders of removed files if they are empty."""
    for path in paths:
        for parent in Path(path).parents:
            if parent != Path(".") and (folder / parent).is_dir() and not any((folder / parent).iterdir()):
                (folder / parent).rmdir()
