"""Machine code without LLVM's loader: what the linker makes of objects, what it leaves alone, when the memory is given back."""
from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
import tosaic
from tosaic.jit.cache.folder import Folder
from tosaic.lowering.machine_code import link
from tosaic.lowering.machine_code.codegen import Engine, object_file
from tosaic.lowering.machine_code.link import is_supported, linked
from tosaic.lowering.target.presets import PRESETS, host, target
from tosaic.runtime.machine_code import MappedCode

from .models import ADD, product

X86 = pytest.mark.skipif(not is_supported(), reason="tosaic links for x86-64 and Linux only")

COPY = """target triple = "x86_64-unknown-linux-gnu"
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
@twelve = internal constant [3 x i32] [i32 12, i32 13, i32 14]
define internal i32 @inner(i32 %x) noinline {
  %y = mul i32 %x, 3
  ret i32 %y
}
define i32 @run(ptr %p) {
  call ptr @memset(ptr %p, i32 7, i64 16)
  call ptr @memcpy(ptr %p, ptr @twelve, i64 12)
  %x = load i32, ptr %p
  %y = call i32 @inner(i32 %x)
  ret i32 %y
}
define i32 @other(ptr %p) {
  ret i32 5
}
"""


@pytest.fixture(params=["linked", "object"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which code comes into a process: mapped, and by LLVM's loader."""
    if request.param == "object":
        monkeypatch.setattr(link, "is_supported", lambda: False)
    elif not is_supported():
        pytest.skip("tosaic links for x86-64 and Linux only")
    return str(request.param)


@X86
def test_calls_constants_and_c_functions_are_linked(form: str) -> None:
    engine = Engine(COPY, host())
    room = np.zeros(4, np.int32)
    assert engine.image.form == form
    assert engine.function("run")(room.ctypes.data) == 36 and room.tolist() == [12, 13, 14, 0x07070707]
    assert engine.function("other")(0) == 5
    with pytest.raises(AssertionError, match="no function none"):
        engine.function("none")
    engine.close()


@X86
def test_an_image_names_the_functions_and_what_it_calls() -> None:
    image = linked([object_file(COPY, host())])
    assert image is not None and set(image.symbols) == {"run", "other"}
    assert {name for name, _ in image.imports} == {"memcpy", "memset"}
    assert linked([object_file(COPY, host())]) == image  # the same in every process
    assert all(offset % 8 == 0 for _, offset in image.imports)


@X86
def test_mapped_code_cannot_be_written() -> None:
    image = linked([object_file(COPY, host())])
    assert image is not None
    code = MappedCode(image)
    with open("/proc/self/maps") as maps:
        ranges = [(int(low, 16), int(high, 16), line.split()[1]) for line in maps for low, high in [line.split()[0].split("-")]]
    modes = [mode for low, high, mode in ranges if low <= code.address("run") < high]
    assert modes == ["r-xp"] and code.address("none") == 0


def test_what_the_linker_does_not_know_is_left_alone() -> None:
    writable = '@x = global i32 1\ndefine i32 @f(ptr %p) {\n  %v = load i32, ptr @x\n  ret i32 %v\n}\n'
    pointer = '@f.at = constant ptr @f\ndefine i32 @f(ptr %p) {\n  ret i32 1\n}\n'
    host_text = f'target triple = "{PRESETS["x86-64"].triple}"\n'
    for text in (writable, pointer):
        assert linked([object_file(host_text + text, PRESETS["x86-64"])]) is None
    for name in ("thumbv7em", "aarch64", "riscv64"):
        assert linked([object_file(f'target triple = "{target(name).triple}"\n{pointer}', target(name))]) is None
    assert linked([b""]) is None and linked([b"MZ" + bytes(200)]) is None


def test_code_from_the_cache_goes_as_soon_as_its_function_is_dropped(cache: Folder, form: str) -> None:
    x = np.ones((1, 5, 64), np.float32)
    expected = tosaic.load(product(5))(x)
    gc.collect()
    gc.disable()
    try:
        compiled = tosaic.load(product(5)).main.compile()
        assert np.array_equal(compiled(x), expected) and not compiled._lowered._made
        loaded = weakref.ref(compiled.executable.code.release.__self__)  # type: ignore[attr-defined]
        del compiled
        assert loaded() is None
    finally:
        gc.enable()


def test_close_gives_the_code_of_the_cache_back(cache: Folder) -> None:
    tosaic.load(ADD).main.compile()
    compiled = tosaic.load(ADD).main.compile()
    compiled.close()
    with pytest.raises(tosaic.Problem, match="has been closed"):
        compiled(np.zeros(4, np.float32))


def test_calls_from_the_cache_are_quick_ones(cache: Folder) -> None:
    x = np.zeros(4, np.float32)
    tosaic.load(ADD)(x)
    entry = tosaic.load(ADD).main
    entry(x)
    assert type(entry.__call__) is type(len) and entry(x).tolist() == [1, 2, 3, 4]
    assert ctypes.c_size_t.from_address(id(entry.__call__)).value >= 1
