"""Damaged files of arrays: every truncation and drawn mutations of `.npy` and `.npz` end in an array or a Problem; sizes that
are lies, and bombs of zeros, are refused before anything is unpacked."""
from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.tools.array_files import array_names, read_arrays

MUTATIONS = 100
"""Of each file, in this test; `MUTATIONS = 20_000` is a sweep of minutes."""
ARRAYS = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "big": np.arange(3, dtype=">i4"),
          "order": np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)), "none": np.zeros((0, 4), np.float16),
          "scalar": np.array(True)}


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version, allow_pickle=False)
    return file.getvalue()


def npz(pack: Any, **arrays: Any) -> bytes:
    file = io.BytesIO()
    pack(file, **arrays)
    return file.getvalue()


FILES = {
    **{name: npy(array) for name, array in ARRAYS.items()}, "version 2": npy(ARRAYS["x"], (2, 0)),
    "version 3": npy(ARRAYS["x"], (3, 0)),
    "stored": npz(np.savez, **ARRAYS), "deflated": npz(np.savez_compressed, **ARRAYS),
}
WORDS = (b"(", b"\\", b"'", b"{", b"L", b"-1", b"9999999999", b"O8", b"<i,", b"True", b"\x00", b"\xff", b"[]", b"V", b"1e9",
         b"0o", b"**")


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield every truncation, then drawn edits: bytes set, bits turned, spans dropped, doubled or overwritten."""
    yield from (data[:n] for n in range(len(data)))
    draw = random.Random(seed)
    for _ in range(count):
        made = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 8))):
            at, n = draw.randrange(len(made) or 1), draw.choice((1, 2, 4, 16))
            match draw.randrange(6):
                case 0:
                    made[at:at + 1] = bytes([draw.randrange(256)])
                case 1:
                    made[at:at + 1] = bytes([(made[at] if made else 0) ^ 1 << draw.randrange(8)])
                case 2:
                    del made[at:at + n]
                case 3:
                    made[at:at] = made[at:at + n]
                case 4:
                    made[at:at + n] = draw.choice((b"\xff", b"\x00")) * n
                case _:
                    word = draw.choice(WORDS)
                    made[at:at + len(word)] = word
        yield bytes(made)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_give_an_array_or_a_problem(name: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    for number, data in enumerate(mutations(FILES[name], MUTATIONS, 1)):
        path.write_bytes(data)
        try:
            found = read_arrays(str(path))
        except tosaic.Problem as problem:
            assert problem.message.startswith(str(path)), (number, problem.message)
        else:
            arrays = found.values() if isinstance(found, dict) else [found]
            assert all(isinstance(a, np.ndarray) and a.dtype.kind != "O" for a in arrays), number


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_as_numpy_reads_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_bytes(FILES[name])
    found, right = read_arrays(str(path)), np.load(path)
    pairs = [(found[n], right[n]) for n in right.files] if isinstance(found, dict) else [(found, right)]
    for a, b in pairs:
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        assert a.flags.f_contiguous == b.flags.f_contiguous and a.flags.writeable


# ---- sizes -----------------------------------------------------------------------------------------------------------------
def header(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zeros(nbytes: int) -> bytes:
    """A deflate stream of that many zeros behind a `.npy` header, made without them."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    piece, parts = bytes(1 << 20), [packer.compress(header(f"({nbytes // 4},)"))]
    parts += [packer.compress(piece) for _ in range(nbytes >> 20)]
    return b"".join((*parts, packer.flush()))


def zipped(entries: dict[str, bytes], sizes: dict[str, int] | None = None, packed: dict[str, bytes] | None = None) -> bytes:
    """A zip file; entries in `packed` are deflate streams whose directory states `sizes`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    data = bytearray(file.getvalue())
    for name, stream in (packed or {}).items():
        data = bytearray(one_entry(name, stream, (sizes or {})[name]))
    return bytes(data)


def one_entry(name: str, stream: bytes, size: int, crc: int = 0) -> bytes:
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(stream), size, len(name), 0)
    local = b"PK\x03\x04" + fields + name.encode() + stream
    central = b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name.encode()
    return local + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)


BOMB = 64 << 20
MODEL = 'func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> { %y = tosa.abs %x : (tensor<2x4xf32>) -> tensor<2x4xf32>\n' \
        '  return %y : tensor<2x4xf32> }\n'
LIES = {
    "a giant shape": header("(99999999999, 4)"),
    "a product beyond 64 bits": header("(4294967296, 4294967296, 4294967296)"),
    "a shape of more axes than NumPy has": header("(" + "1, " * 70 + ")") + bytes(4),
    "a negative extent": header("(-1,)"),
    "a boolean extent": header("(True,)") + bytes(4),
    "more bytes than the header states": header("(2, 4)") + bytes(33),
    "fewer bytes than the header states": header("(2, 4)") + bytes(31),
    "an entry that states more than it holds": one_entry("x.npy", b"\x03\x00", 1 << 30),
    "an entry whose sum is wrong": one_entry("x.npy", zlib.compress(header("(1,)") + bytes(4), 9)[2:-4],
                                             len(header("(1,)")) + 4, crc=1),
    "an entry that states less than it holds": one_entry("x.npy", zeros(1 << 20), 100),
    "an entry that is no array": zipped({"x.txt": b"hello"}),
    "a header of a megabyte": b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 20) + b" " * (1 << 20),
    "a header that nests": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
    "objects": npy(np.array(["a"])).replace(b"<U1", b"|O8"),
    "records": npy(np.zeros(1, [("a", "<f4")])),
    "a file of another kind": b"GIF89a",
    "nothing": b"",
}


@pytest.mark.parametrize("what", LIES)
def test_lies_are_refused_in_little_memory(what: str, tmp_path: Path) -> None:
    path = tmp_path / "lie"
    path.write_bytes(LIES[what])
    tracemalloc.start()
    try:
        with pytest.raises(tosaic.Problem, match=r"states|cannot be read"):
            read_arrays(str(path))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("given", ["x={}", "{}"])
def test_a_bomb_is_refused_before_it_is_unpacked(given: str, tmp_path: Path) -> None:
    from tosaic.jit.command_line.inputs import gather_inputs
    path = tmp_path / "bomb.npz"
    path.write_bytes(one_entry("x.npy", zeros(BOMB), len(header(f"({BOMB // 4},)")) + BOMB))
    assert path.stat().st_size < BOMB // 900
    function = tosaic.load(MODEL).main.trace().function
    tracemalloc.start()
    try:
        with pytest.raises(tosaic.Problem, match="states 67,10"):
            gather_inputs(function, [given.format(path)], 0)
        with pytest.raises(tosaic.Problem, match="the most"), tosaic.Limits(bytes=1 << 20):
            read_arrays(str(path))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_arrays_that_are_no_input_stay_packed(tmp_path: Path) -> None:
    path = tmp_path / "more.npz"
    np.savez_compressed(path, x=np.ones((2, 4), np.float32), other=np.zeros(1 << 22, np.float32))
    assert array_names(str(path)) == ["x", "other"]
    tracemalloc.start()
    try:
        found = read_arrays(str(path), {"x": 32})
        assert isinstance(found, dict) and list(found) == ["x"] and tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
