"""How much the cache holds, what goes first, and the command that shows and clears it."""
from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tosaic.jit.cache.folder import LIMIT, Folder, Usage, folder
from tosaic.jit.cache.keys import digest
from tosaic.jit.command_line.cli import main

from .conftest import files

ONE = np.zeros(10_000, np.uint8)


def used(cache: Folder, key: bytes, seconds: float) -> None:
    os.utime(cache.file("code", key), (seconds, seconds))


def test_what_was_not_used_for_longest_goes(cache: Folder) -> None:
    small = cache._replace(limit=50_000)
    keys = [digest(n) for n in range(6)]
    for n, key in enumerate(keys[:4]):
        assert small.write("code", key, {}, [ONE])
        used(small, key, 1000 + n)
    assert small.read("code", keys[0]) is not None  # counts as used now
    assert small.write("code", keys[4], {}, [ONE])
    assert [small.read("code", k) is not None for k in keys[:5]] == [True, False, True, True, True]
    assert small.usage().nbytes <= 50_000


def test_room_is_not_looked_for_at_every_small_entry(cache: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(Folder, "shrink", lambda self: looked.append(self.path))
    for n in range(256):
        cache.write("entry", bytes([n]) * 32, {})
    assert len(looked) == 4
    cache.write("code", digest(0), {}, [np.zeros(2 << 20, np.uint8)])
    assert len(looked) == 5


def test_what_is_larger_than_the_cache_is_not_written(cache: Folder) -> None:
    small = cache._replace(limit=20_000)
    assert small.write("code", digest(0), {}, [ONE]) and not small.write("code", digest(1), {}, [ONE, ONE])
    assert small.read("code", digest(0)) is not None
    assert not cache._replace(limit=0).write("code", digest(2), {})


@pytest.mark.parametrize(("text", "nbytes"), [("", LIMIT), ("5", 5), ("20k", 20 << 10), ("3 MiB", 3 << 20), ("2GB", 2 << 30),
                                              ("much", LIMIT), ("-1", LIMIT)])
def test_the_limit_is_the_environment_s(cache: Folder, monkeypatch: pytest.MonkeyPatch, text: str, nbytes: int) -> None:
    monkeypatch.setenv("TOSAIC_CACHE_LIMIT", text)
    found = folder()
    assert found is not None and found.limit == nbytes


def test_only_entries_are_counted_and_removed(cache: Folder) -> None:
    cache.write("code", digest(0), {}, [ONE])
    own = Path(cache.path) / "notes.txt"
    own.write_text("mine")
    assert cache.usage().entries == 1
    assert cache.clear().entries == 1 and cache.usage() == Usage(0, 0) and own.read_text() == "mine"


def test_the_command_prints_and_clears(cache: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0 and capsys.readouterr().out == f"{cache.path}: 0 files, 0 bytes of at most 1,073,741,824\n"
    cache.write("code", digest(0), {}, [ONE])
    nbytes = 12288  # three blocks
    assert 8192 < files(cache)[0].stat().st_size < nbytes
    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": cache.path, "entries": 1, "bytes": nbytes, "limit": LIMIT}
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{cache.path}: removed 1 file, {nbytes:,} bytes\n" and not files(cache)


def test_the_command_says_that_the_cache_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear"]) == 0 and capsys.readouterr().out == "the cache is off\n"
