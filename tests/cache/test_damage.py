"""An entry that is damaged, cut off, someone else's or another key's is as if it were not there, and is written again."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.cache import folder as folder_module
from tosaic.jit.cache.entry_file import deserialised, serialised
from tosaic.jit.cache.folder import ABANDONED, Folder
from tosaic.jit.cache.keys import digest

from .conftest import files
from .models import ADD

KEY, OTHER = digest("key"), digest("other")
ARRAYS = [np.arange(100, dtype=np.uint8), np.zeros((0,), np.float32), np.arange(12, dtype=np.int16).reshape(3, 4)]
X = np.ones(4, np.float32)


@pytest.fixture
def code(cache: Folder) -> Path:
    """The file of a model's code, in a cache that has the rest of it, too."""
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    found = max(files(cache, "code"), key=lambda p: p.stat().st_size if b"main" in p.read_bytes() else 0)
    return found


def test_fields_and_arrays_come_back_at_aligned_places(cache: Folder) -> None:
    assert cache.write("code", KEY, {"a": [1, None, "\ud800é"]}, ARRAYS)
    found = cache.read("code", KEY)
    assert found is not None and found.fields == {"a": [1, None, "\ud800é"]}
    assert [a.tobytes() for a in found.arrays] == [a.tobytes() for a in ARRAYS]
    assert all(a.ctypes.data % 64 == 0 and not a.flags.writeable for a in found.arrays)


def test_every_damaged_byte_is_found() -> None:
    whole = b"".join(serialised(KEY, {"name": "x"}, ARRAYS))
    assert deserialised(whole, KEY) is not None and deserialised(whole, OTHER) is None
    for at in range(len(whole)):
        for flip in (1, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            assert deserialised(bytes(damaged), KEY) is None, at


def test_every_shorter_or_longer_file_is_found() -> None:
    whole = b"".join(serialised(KEY, {"name": "x"}, ARRAYS))
    assert all(deserialised(whole[:n], KEY) is None for n in range(len(whole)))
    assert deserialised(whole + b"\0", KEY) is None and deserialised(b"", KEY) is None


def test_a_damaged_entry_is_compiled_again_and_replaced(code: Path) -> None:
    whole = code.read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // 7)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        code.write_bytes(damaged)
        assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
        assert deserialised(code.read_bytes(), bytes.fromhex(code.name.split(".")[0])) is not None


@pytest.mark.parametrize("length", [0, 1, 95, 96, 500])
def test_a_cut_off_entry_is_compiled_again_and_replaced(code: Path, length: int) -> None:
    code.write_bytes(code.read_bytes()[:length])
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    assert code.stat().st_size > 500


@pytest.mark.parametrize("kind", ["entry", "model"])
def test_damage_in_the_other_kinds_of_entries(cache: Folder, code: Path, kind: str) -> None:
    path, = files(cache, kind)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"!")
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    assert path.read_bytes() == whole


def test_code_under_another_key_is_not_taken(cache: Folder, code: Path) -> None:
    other = code.with_name(f"{OTHER.hex()}.code")
    os.rename(code, other)
    assert cache.read("code", OTHER) is None


# ---- who may write ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_is_not_used(cache: Folder, code: Path, mode: int) -> None:
    os.chmod(cache.path, mode)
    with pytest.warns(RuntimeWarning, match="other users may write to it"):
        assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    key = bytes.fromhex(code.name.split(".")[0])
    assert cache.read("code", key) is None and not cache.write("code", OTHER, {})
    os.chmod(cache.path, 0o700)
    assert cache.read("code", key) is not None


def test_a_file_that_others_may_write_is_replaced(cache: Folder, code: Path) -> None:
    os.chmod(code, 0o666)
    with pytest.warns(RuntimeWarning, match="takes no machine code from"):
        assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    assert code.stat().st_mode & 0o777 == 0o600


def test_what_belongs_to_another_user_is_not_used(cache: Folder, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = bytes.fromhex(code.name.split(".")[0])
    monkeypatch.setattr(folder_module.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.read("code", key) is None


def test_links_are_not_followed(cache: Folder, code: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    os.rename(code, elsewhere)
    os.symlink(elsewhere, code)
    assert cache.read("code", bytes.fromhex(code.name.split(".")[0])) is None
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5] and not code.is_symlink()
    linked = Folder(str(tmp_path / "linked"))
    os.symlink(cache.path, linked.path)
    assert linked.read("code", bytes.fromhex(code.name.split(".")[0])) is None


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/none/cache"])
def test_a_folder_that_cannot_be_made_does_not_fail_a_compile(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("TOSAIC_CACHE", place)
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    assert not Folder(place).write("code", KEY, {}) and Folder(place).read("code", KEY) is None


def test_a_full_disk_does_not_fail_a_compile(cache: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*ignored: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module.os, "replace", full)
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    assert os.listdir(cache.path) == []


# ---- several processes -----------------------------------------------------------------------------------------------
WRITER = """
import sys
import numpy as np
from tosaic.jit.cache.folder import Folder
folder, key, size = Folder(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
folder.write("code", key, {"turn": 0}, [np.zeros(size, np.uint8)])
print("begins", flush=True)
for turn in range(int(sys.argv[4])):
    folder.write("code", key, {"turn": turn}, [np.full(size, turn % 251, np.uint8)])
"""


def writer(cache: Folder, size: int, turns: int) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, cache.path, KEY.hex(), str(size), str(turns)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


def test_a_reader_sees_only_whole_entries_while_two_write(cache: Folder) -> None:
    writers = [writer(cache, 200_000, 40) for _ in range(2)]
    seen = set()
    while any(w.poll() is None for w in writers):
        found = cache.read("code", KEY)
        if found is not None:
            assert np.all(found.arrays[0] == found.fields["turn"] % 251) and found.arrays[0].size == 200_000
            seen.add(found.fields["turn"])
    assert [w.wait() for w in writers] == [0, 0]
    last = cache.read("code", KEY)
    assert last is not None and last.fields["turn"] == 39 and len(os.listdir(cache.path)) == 1


def test_killed_writers_leave_nothing_that_is_read(cache: Folder) -> None:
    for attempt in range(3):
        process = writer(cache, 4_000_000, 1_000_000)
        while not os.path.isdir(cache.path):  # it has begun, but may not have come to write
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(0.01 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = cache.read("code", KEY)
        assert found is None or np.all(found.arrays[0] == found.fields["turn"] % 251)
    left = Path(cache.path) / ".new-1-00"
    left.write_bytes(b"half")
    os.utime(left, (time.time() - 2 * ABANDONED,) * 2)
    cache.shrink()
    assert not left.exists()


def test_a_mapped_entry_stays_when_its_file_is_replaced_or_removed(cache: Folder) -> None:
    cache.write("code", KEY, {}, [np.full(100_000, 1, np.uint8)])
    found = cache.read("code", KEY)
    cache.write("code", KEY, {}, [np.full(100_000, 2, np.uint8)])
    cache.clear()
    assert found is not None and np.all(found.arrays[0] == 1)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
        made.bind(path.name)  # whose whole path may be longer than a socket's


def make_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("make", [make_pipe, make_socket, make_link, Path.mkdir])
def test_what_is_no_file_is_not_waited_for(make: Callable[[Path], None], cache: Folder) -> None:
    """A pipe that somebody has put in the place of an entry would make every later call wait for ever."""
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
    for path in files(cache):
        path.unlink()
        make(path)
    called = threading.Thread(target=lambda: results.append(tosaic.load(ADD)(X).tolist()), daemon=True)
    results: list[list[float]] = []
    called.start()
    called.join(60)
    assert results == [[2, 3, 4, 5]]
    assert cache.usage().entries == len(files(cache))
    if make is not Path.mkdir:  # the others give way to entries
        assert all(path.is_file() and not path.is_symlink() for kind in ("entry", "model") for path in files(cache, kind))
    cache.clear()
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_cache_folder_that_is_a_pipe_is_gone_without(cache: Folder) -> None:
    os.mkfifo(cache.path)
    assert tosaic.load(ADD)(X).tolist() == [2, 3, 4, 5]
