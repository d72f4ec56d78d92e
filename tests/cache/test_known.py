"""Large entries and tosaic's own sources are not read whole at every start; what has changed still shows."""
from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.cache import entry_file as entry_module
from tosaic.jit.cache import folder as folder_module
from tosaic.jit.cache import models, versions
from tosaic.jit.cache.folder import LARGE_ENTRY_BYTES, Folder
from tosaic.jit.cache.keys import digest

from .conftest import files
from .models import SEVERAL

KEY = digest("key")
CODE, WEIGHTS = np.arange(1000, dtype=np.uint8), np.full(LARGE_ENTRY_BYTES, 3, np.uint8)
pytestmark = pytest.mark.skipif(not folder_module.boot(), reason="this system does not say when it was started")


@pytest.fixture
def path(cache: Folder) -> Path:
    assert cache.write("code", KEY, {}, [CODE, WEIGHTS])
    return files(cache, "code")[0]


def hashed(cache: Folder, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are hashed in order to read the entry."""
    found: list[int] = []
    plain = entry_module.digest_of
    with monkeypatch.context() as patched:
        patched.setattr(entry_module, "digest_of", lambda parts: found.append(sum(map(len, parts))) or plain(parts))
        entry = cache.read("code", KEY)
    assert entry is not None and np.array_equal(entry.arrays[1], WEIGHTS)
    return sum(found)


def change(path: Path, at: int) -> None:
    """Another byte, as any program writes it."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def test_constants_are_read_once_for_each_file_and_start_of_the_system(cache: Folder, path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    assert hashed(cache, monkeypatch) < 10_000
    monkeypatch.setattr(folder_module, "boot", lambda: "another start")
    assert hashed(cache, monkeypatch) > LARGE_ENTRY_BYTES
    assert hashed(cache, monkeypatch) < 10_000


def test_where_the_start_is_not_known_they_are_read_every_time(cache: Folder, path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "boot", lambda: "")
    assert [hashed(cache, monkeypatch) > LARGE_ENTRY_BYTES for _ in range(2)] == [True, True]


@pytest.mark.parametrize("at", [-1, -LARGE_ENTRY_BYTES // 2, 500])
def test_a_changed_byte_is_found(cache: Folder, path: Path, at: int) -> None:
    change(path, at % path.stat().st_size)
    assert cache.read("code", KEY) is None


def test_the_code_itself_is_looked_at_every_time(cache: Folder, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Folder, "knows", lambda *ignored: True)
    change(path, path.stat().st_size - LARGE_ENTRY_BYTES - 100)
    assert cache.read("code", KEY) is None


def test_a_file_in_its_place_is_looked_at(cache: Folder, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1] + b"!")
    os.chmod(path, 0o600)
    assert cache.read("code", KEY) is None


def test_an_entry_that_is_used_again_after_a_long_time_stays_known(cache: Folder, path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(path, (1000, 1000))
    assert hashed(cache, monkeypatch) > LARGE_ENTRY_BYTES and path.stat().st_mtime > 1000
    assert hashed(cache, monkeypatch) < 10_000


def test_small_entries_are_read_whole(cache: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("code", KEY, {}, [CODE, CODE])
    assert not files(cache, "known")
    change(files(cache, "code")[0], files(cache, "code")[0].stat().st_size - 30)
    assert cache.read("code", KEY) is None


# ---- sources ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One source in place of tosaic's, which rests at once."""
    for name in versions.FOLDERS:
        (tmp_path / name).mkdir()
    path = tmp_path / "lowering" / "a.py"
    path.write_text("x = 1\n")
    monkeypatch.setattr(versions, "ROOT", str(tmp_path))
    monkeypatch.setattr(versions, "RESTED_NS", -1)
    monkeypatch.setattr(versions.import_time, "IMPORTED", path.stat().st_mtime + 1000)
    return path


def test_sources_are_read_once(cache: Folder, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = versions.source_digest()
    monkeypatch.setattr(versions, "digest_of", None)
    assert versions.source_digest() == first is not None


def test_a_changed_source_is_read_again(cache: Folder, sources: Path) -> None:
    first, times = versions.source_digest(), sources.stat()
    sources.write_text("x = 2\n")
    os.utime(sources, ns=(times.st_atime_ns, times.st_mtime_ns))  # of the same size, and as if it had not changed
    assert versions.source_digest() not in (first, None)


def test_a_source_that_has_not_rested_is_read_every_time(cache: Folder, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "RESTED_NS", 1 << 62)
    assert versions.source_digest() is not None and not files(cache, "file")


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a file is known by its bytes alone")
def test_an_error_is_told_where_the_model_s_file_has_gone(cache: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                          ) -> None:
    path, x = tmp_path / "several.mlir", np.ones(2, np.float32)
    path.write_text(f"{SEVERAL}// {'a line that makes it large ' * 2000}")
    monkeypatch.setattr(models, "RESTED_NS", -1)
    for _ in range(2):  # the second is from the cache
        model = tosaic.load(path, context=tosaic.Context("gone"))
        with pytest.raises(tosaic.Problem) as found:
            model.fails(x)
    path.unlink()
    for problem in (found.value, pickle.loads(pickle.dumps(found.value))):
        assert "variable @cache.unset is read before it was written" in str(problem) and "<model>" in str(problem)
