"""A machine can run code if it has the features that the code uses, whatever the processor is called. Code for another machine
is refused before an instruction that is not there ends the process."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.elements.affine import Affine
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, Type
from tosaic.lowering.target.presets import check_runs_here, host, target

from .machines import DOT_PRODUCTS, missing, runs_here, used, with_dot_products

MODEL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32> }"""
X = np.array([-1, 2, -3, 4], np.float32)
FOREIGN = [name for name in ("aarch64", "x86-64", "cortex-m7", "riscv64", "riscv32") if target(name).architecture
           != host().architecture]
WAYS: dict[str, Callable[[Any], object]] = {
    "an entry": lambda t: tosaic.load(MODEL).main.compile(tosaic.CompileOptions(t)),
    "a trace": lambda t: tosaic.load(MODEL).main.trace().compile(tosaic.CompileOptions(t)),
    "a lowered entry": lambda t: tosaic.load(MODEL).main.lower(tosaic.CompileOptions(t)).compile(),
    "a model": lambda t: tosaic.compile(MODEL, options=tosaic.CompileOptions(t)),
    "a function": lambda t: tosaic.jit(lambda x: abs(x), options=tosaic.CompileOptions(t))(X),
    "a check": lambda t: tosaic.load(MODEL).main.check([[X]], tosaic.CompileOptions(t))}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("name", FOREIGN)
def test_code_for_another_machine_is_refused_before_it_runs(name: str, way: Callable[[Any], object]) -> None:
    with pytest.raises(tosaic.Problem, match="cannot run in this process: this is") as caught:
        way(target(name))
    assert caught.value.kind == "option" and "save it for that machine" in str(caught.value)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_feature_that_the_processor_lacks_is_named(way: Callable[[Any], object]) -> None:
    lacking = next((f[1:] for f in host().features.split(",") if f.startswith("-")), None)
    if lacking is None:
        pytest.skip("this processor lacks no feature that LLVM knows")
    with pytest.raises(tosaic.Problem, match=f"this processor has no .*{lacking}"):
        way(replace(host(), features=f"{host().features},+{lacking}".replace(f"-{lacking},", "")))


def test_a_machine_is_not_told_by_its_name() -> None:
    """Code for any processor whose features are all here may run."""
    strange = replace(target("x86-64"), cpu="znver5") if host().architecture == "x86" else replace(host(), cpu="another")
    check_runs_here(strange)
    check_runs_here(None)
    check_runs_here(host())
    assert runs_here(strange) and not missing(host())


def function(op: str) -> Function:
    """Products of bytes, or sums."""
    b, lanes = Builder(op), 8
    out = Buffer("out", "int32", (lanes,), "result")
    x, total = Buffer("x", "int8" if op == "dot4" else "int32", (32,), "argument"), Buffer("t", "int32", (8,), "argument")
    y = Buffer("y", "uint8", (32,), "argument")
    first = b.load(total, Affine(), lanes)
    more = (b.load(y, Affine(), 32), b.load(x, Affine(), 32)) if op == "dot4" else (b.load(x, Affine(), lanes),)
    b.store(out, Affine(), b.op(op, first, *more, type=Type("int32", lanes)))
    return b.finish()


def test_a_feature_that_no_operation_uses_is_not_needed() -> None:
    plain = target("x86-64-v3")
    with_products = replace(plain, features=f"{plain.features},+avxvnni", dot_product="u8s8")
    assert used([function("add")], with_products) == plain
    assert used([function("add"), function("dot4")], with_products) == with_products


@pytest.mark.skipif(host().architecture != "x86", reason="asks for features of x86")
def test_products_of_bytes_run_wherever_a_processor_has_them_in_some_encoding() -> None:
    found = with_dot_products(target("x86-64-v3"))
    assert found.dot_product and not found.has_masked and found.vector_bytes == 32
    assert runs_here(found) == (bool(host().enabled & set(DOT_PRODUCTS)) and runs_here(target("x86-64-v3")))
