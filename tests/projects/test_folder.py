"""A project's folder is written whole or stays as it was, and what others have put there or changed is never touched."""
from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.projects.folder import LISTING, write_project

OLD = {"a.txt": b"one", "folder/b.txt": b"two", "gone/c.txt": b"three"}
NEW = {"a.txt": b"other", "folder/b.txt": b"two", "deep/in/d.txt": b"four"}


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def written(folder: Path) -> dict[str, bytes]:
    found = files_in(folder)
    assert json.loads(found.pop(LISTING))["written by"] == "tosaic"
    return found


@pytest.mark.parametrize("is_there", [False, True])
def test_files_are_written_to_a_folder_that_is_new_or_empty(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "in" / "project"
    if is_there:
        folder.mkdir(parents=True)
    write_project(folder, OLD, "tosaic_m")
    assert written(folder) == OLD and sorted(p.name for p in folder.parent.iterdir()) == ["project"]


def test_a_project_is_written_again_beside_what_others_have_added(tmp_path: Path) -> None:
    write_project(tmp_path, OLD, "tosaic_m")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "mine.o").write_bytes(b"mine")
    write_project(tmp_path, NEW, "tosaic_m")
    assert written(tmp_path) == {**NEW, "build/mine.o": b"mine"} and not (tmp_path / "gone").exists()


def test_a_folder_with_files_of_others_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(tosaic.Problem, match="has files in it that tosaic has not written\n  help: name an empty folder"):
        write_project(tmp_path, NEW, "tosaic_m")
    assert files_in(tmp_path) == {"mine.txt": b"mine"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": {}}', '{"written by": "you", "files": {}}',
                                  '{"written by": "tosaic", "files": {"../mine.txt": 1}}',
                                  '{"written by": "tosaic", "files": 3}', '{"written by": "tosaic", "files": {}}',
                                  '{"written by": "tosaic", "files": {"/etc/passwd": 1}}'])
def test_a_list_that_is_not_tosaics_does_not_make_a_folder_tosaics(tmp_path: Path, text: str) -> None:
    (tmp_path / LISTING).write_text(text)
    with pytest.raises(tosaic.Problem, match="has files in it that tosaic has not written"):
        write_project(tmp_path, NEW, "tosaic_m")
    assert files_in(tmp_path) == {LISTING: text.encode()}


def test_a_file_that_somebody_has_changed_is_a_problem(tmp_path: Path) -> None:
    write_project(tmp_path, OLD, "tosaic_m")
    (tmp_path / "a.txt").write_text("mine")
    before = files_in(tmp_path)
    with pytest.raises(tosaic.Problem, match=r"a.txt has been changed since tosaic wrote it\n  help: move it away"):
        write_project(tmp_path, NEW, "tosaic_m")
    assert files_in(tmp_path) == before


def test_a_new_file_in_the_place_of_anothers_is_a_problem(tmp_path: Path) -> None:
    write_project(tmp_path, OLD, "tosaic_m")
    (tmp_path / "deep" / "in" / "d.txt").mkdir(parents=True)
    with pytest.raises(tosaic.Problem, match=r"d.txt is there already"):
        write_project(tmp_path, NEW, "tosaic_m")
    assert written(tmp_path) == OLD


def test_a_folder_of_another_model_is_a_problem_that_names_both(tmp_path: Path) -> None:
    write_project(tmp_path / "p", OLD, "tosaic_a")
    told = r"p is the project of tosaic_a, and this is tosaic_b\n  help: name a folder of its own with -o, such as .*p/tosaic_b"
    with pytest.raises(tosaic.Problem, match=told):
        write_project(tmp_path / "p", NEW, "tosaic_b")
    assert written(tmp_path / "p") == OLD


def test_a_file_in_the_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "project").write_text("mine")
    with pytest.raises(tosaic.Problem, match="project is no folder"):
        write_project(tmp_path / "project", NEW, "tosaic_m")


@pytest.mark.parametrize("operation", ["replace", "write_bytes"])
@pytest.mark.parametrize("old", [None, {}, OLD], ids=["no folder", "empty", "written before"])
def test_an_error_anywhere_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str,
                                                       old: dict[str, bytes] | None) -> None:
    """The disk is full at the first, the second, ... file that is written or moved."""
    for number in range(50):
        folder = tmp_path / str(number)
        if old is not None:
            folder.mkdir()
        if old:
            write_project(folder, old, "tosaic_m")
        before = files_in(folder)
        if succeeded(folder, monkeypatch, operation, number):
            assert written(folder) == NEW and number > 3
            return
        assert files_in(folder) == before and folder.exists() == (old is not None)
        assert sorted(p for p in folder.rglob("*") if p.is_dir() and not any(p.iterdir())) == []
    raise AssertionError("it never succeeds")


def succeeded(folder: Path, monkeypatch: pytest.MonkeyPatch, operation: str, number: int) -> bool:
    """True if writing works where one operation fails, after `number` that do not; what is undone afterwards does not fail."""
    owner: Any = os if operation == "replace" else Path
    real, counted = getattr(owner, operation), [0]

    def failing(*arguments: Any) -> Any:
        counted[0] += 1
        if counted[0] == number + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, operation, failing)
        try:
            write_project(folder, NEW, "tosaic_m")
        except tosaic.Problem as problem:
            assert "No space left on device" in str(problem) and "the disk is full" in str(problem)
            return False
    return True


def test_a_stopped_write_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, OLD, "tosaic_m")
    before, real = files_in(tmp_path), os.replace

    def stopping(source: Path, target: Path) -> None:
        if Path(target).name == "d.txt":
            monkeypatch.undo()
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_project(tmp_path, NEW, "tosaic_m")
    assert files_in(tmp_path) == before
