"""f64 in an object: `double` in the header, no library of mathematics, and the same numbers on other machines."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import save
from tosaic.lowering.machine_code.elf import undefined_symbols
from tosaic.lowering.target.presets import target

from .callers import printed, random_calls
from .machines import MACHINES, PROCESSORS, Machine, needs
from .test_machines import prints

SMALLEST = next(m for m in PROCESSORS if m.name == "cortex-m0plus")

MODEL = """
func.func @main(%x: tensor<3x5xf64>, %y: tensor<3x5xf64>) -> (tensor<3x5xf64>, tensor<3x1xf64>) {
  %zero = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %sum = tosa.add %x, %y : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  %product = tosa.mul %sum, %x, %zero : (tensor<3x5xf64>, tensor<3x5xf64>, tensor<1xi8>) -> tensor<3x5xf64>
  %exp = tosa.exp %product : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %power = tosa.pow %exp, %y : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  %sine = tosa.sin %power : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %tanh = tosa.tanh %sum : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %erf = tosa.erf %sum : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %both = tosa.sub %tanh, %erf : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  %floor = tosa.floor %both : (tensor<3x5xf64>) -> tensor<3x5xf64>
  %result = tosa.add %sine, %floor : (tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  %total = tosa.reduce_sum %both {axis = 1 : i32} : (tensor<3x5xf64>) -> tensor<3x1xf64>
  return %result, %total : tensor<3x5xf64>, tensor<3x1xf64>
}
"""
ARM, GNU = r"mem\w+|__aeabi_(d(add|sub|mul|div|2iz|2uiz)|u?i2d)", r"mem\w+|__\w+(df[23]|dfsi|sidf)"
SOFT = {"cortex-m0plus": ARM, "thumbv7em": ARM, "riscv32": GNU}
"""Without instructions for f64: what their compiler's library is asked for."""


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v4", "aarch64", "cortex-m7", "riscv64", *sorted(SOFT)])
def test_an_object_needs_no_library_of_mathematics(name: str, tmp_path: Path) -> None:
    """What has no instructions for f64 needs the arithmetic of the compiler's own library, which the header says."""
    artifact = save([e.lower(tosaic.CompileOptions(target(name))) for e in tosaic.load(MODEL)], tmp_path, "model")
    symbols = set(undefined_symbols(artifact.object.read_bytes())) - {"memcpy", "memset", "memmove"}
    text = artifact.header.read_text()
    assert "const double *x; /* tensor<3x5xf64> */" in text
    assert all(re.fullmatch(SOFT[name], s) and s in text for s in symbols)
    assert bool(symbols) == (name in SOFT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in (*MACHINES, SMALLEST)])
def test_other_machines_give_nearly_the_same_numbers(machine: Machine, tmp_path: Path) -> None:
    """What has fused instructions rounds less often."""
    model = tosaic.load(MODEL)
    here = [e.lower() for e in model]
    calls = random_calls(here, 3)
    lines = prints(machine, tmp_path, model, calls, SOFT.get(machine.target, GNU)).split(), printed(here, calls).split()
    found, right = (np.frombuffer(bytes.fromhex("".join(text)), "<f8") for text in lines)
    np.testing.assert_allclose(found, right, rtol=1e-13, atol=1e-14)
