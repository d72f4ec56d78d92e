"""Buffers that lie on each other in the arena are no separate memory to LLVM, wherever the arena is: given by the caller, or a
symbol of a self-contained object."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import tosaic
from tosaic.lowering.native.c_object.data_symbols import ObjectConstants
from tosaic.lowering.native.c_object.interface import CInterface
from tosaic.lowering.native.c_object.object_module import object_text
from tosaic.lowering.options import CompileOptions

ROOT = Path(__file__).parents[2]
KERNEL = re.compile(r'^define internal void @\S*kernel_\d+\S*\((.*)\) #0 section "\S*" \{$', re.MULTILINE)

def parameters(path: Path, self_contained: bool, memory: tosaic.Memory = tosaic.Memory()) -> list[str]:
    """The parameters of each kernel of an object, with what LLVM is told of them."""
    lowered = tosaic.load(path).main.lower(CompileOptions(target=tosaic.target("cortex-m7"), memory=memory))
    interface = CInterface("m", [(lowered.program, lowered.plan)], lowered.target, self_contained=self_contained)
    with ObjectConstants(interface.prefix, lowered.target) as constants:
        return KERNEL.findall(object_text(interface, constants, 0))


@pytest.mark.parametrize("name", ["detector", "classifier"])
def test_a_self_contained_object_says_as_much_of_its_buffers_as_one_that_is_given_its_pools(name: str) -> None:
    path = ROOT / "samples" / "models" / f"{name}.mlir"
    given, own = parameters(path, False), parameters(path, True)
    assert given == own and any("noalias" in p for p in own)


def test_there_are_buffers_on_each_other() -> None:
    """Else the test above would hold for nothing."""
    path = ROOT / "samples" / "models" / "classifier.mlir"
    apart = parameters(path, True, tosaic.Memory(overlap=False))
    assert str(parameters(path, True)).count("noalias") < str(apart).count("noalias")
