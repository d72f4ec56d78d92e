"""Kept code that uses the tiles of a matrix unit runs only in a process that may use them."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.cache import code as code_module
from tosaic.jit.cache.code import image_fields, loaded_image
from tosaic.lowering.machine_code.codegen import compiled_image
from tosaic.lowering.machine_code.link import is_supported
from tosaic.lowering.target.presets import host, target
from tosaic.runtime.machine_code import MappedCode

PLAIN = 'define i32 @program.run(ptr %frame) {\n ret i32 0\n}'
SHAPES = '''@shape = private unnamed_addr constant [64 x i8] zeroinitializer, align 64
declare void @llvm.x86.ldtilecfg(ptr)
define i32 @program.run(ptr %frame) #0 {
 call void @llvm.x86.ldtilecfg(ptr @shape)
 ret i32 0
}
attributes #0 = { "target-features"="+amx-tile" }'''
on_x86_linux = pytest.mark.skipif(not is_supported(), reason="code is linked by tosaic on x86-64 Linux")


@on_x86_linux
def test_an_image_says_whether_it_uses_tiles() -> None:
    machine = target("host", features="+amx-tile")
    assert compiled_image(SHAPES, machine).tiles
    assert not compiled_image(PLAIN, host()).tiles


@on_x86_linux
@pytest.mark.parametrize("allowed", [True, False])
def test_code_with_tiles_is_loaded_only_where_they_are_allowed(allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_module, "may_use_tiles", lambda: allowed)
    image = compiled_image(SHAPES, target("host", features="+amx-tile"))
    data = np.frombuffer(image.code, np.uint8)
    if allowed:
        loaded = loaded_image(image_fields(image), data)
        assert isinstance(loaded, MappedCode) and loaded.address("program.run")
        loaded.close()
    else:
        with pytest.raises(OSError, match="tiles"):
            loaded_image(image_fields(image), data)
