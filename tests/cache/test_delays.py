"""The cache's folder while several threads write, read, shrink and clear it, each call of the file system delayed by a seed: a
read gives nothing or a whole entry of its key, and nothing fails or is left behind."""
from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tosaic.jit.cache import folder as folders
from tosaic.jit.cache.folder import PARTIAL, Folder

CALLS = "replace", "open", "unlink", "stat", "lstat", "fstat", "listdir", "utime", "mkdir"
SEEDS = range(8)
KEYS = [bytes([i]) * 32 for i in range(3)]
"""The first bytes are so small that each write may shrink the folder."""


def delayed_system(seed: int) -> Any:
    """The module `os`, whose calls of the file system come late."""
    lengths = random.Random(seed)

    def delayed(call: Any) -> Any:
        def later(*arguments: Any, **named: Any) -> Any:
            time.sleep(lengths.choice((0, 0, 0.0001, 0.001)))
            return call(*arguments, **named)
        return later

    return type("os", (), {**vars(os), **{name: staticmethod(delayed(getattr(os, name))) for name in CALLS}})


def entry(key: int, turn: int, nbytes: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    return {"key": key, "turn": turn}, [np.full(nbytes, key * 16 + turn, np.uint8)]


@pytest.mark.parametrize("limit", (20_000, 1 << 30), ids=("full", "large"))
@pytest.mark.parametrize("seed", SEEDS)
def test_threads_that_share_a_folder_read_whole_entries(seed: int, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                        ) -> None:
    monkeypatch.setattr(folders, "os", delayed_system(seed))
    where, wrong, read = Folder(str(tmp_path / "cache"), limit), list[str](), list[int]()

    def work(number: int) -> None:
        choose = random.Random(100 * seed + number)
        try:
            for turn in range(12):
                key = choose.randrange(len(KEYS))
                where.write("code", KEYS[key], *entry(key, turn, choose.choice((10, 5_000))))
                found = where.read("code", KEYS[choose.randrange(len(KEYS))])
                if found is not None:
                    fields, (array,) = found.fields, found.arrays
                    read.append(1)
                    if not (array == fields["key"] * 16 + fields["turn"]).all():
                        wrong.append(f"{fields} {array}")
                if choose.random() < 0.1:
                    where.clear()
        except BaseException as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads) and not wrong and read
    assert not [name for name in os.listdir(where.path) if name.startswith(PARTIAL)]
