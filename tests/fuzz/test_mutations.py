"""Texts with something changed end in a graph or in a Problem: when they are loaded, described, and lowered."""
from __future__ import annotations

import collections
import pathlib
from collections.abc import Iterator

import pytest
import tosaic
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module

from ..tensorflow.random_blocks import BlocksMaker
from .generators.mutations import mutated

DATA = pathlib.Path(__file__).parent.parent / "data" / "tensorflow"
STRUCTURED = """func.func @main(%p: i1, %n: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
  %one = arith.constant dense<1> : tensor<i32>
  %0:2 = scf.while (%a = %n, %b = %x) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %1 = tosa.greater %a, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = tensor.extract %1[] : tensor<i1>
    scf.condition(%2) %a, %b : tensor<i32>, tensor<2xf32>
  } do {
  ^bb0(%c: tensor<i32>, %d: tensor<2xf32>):
    %3 = tosa.sub %c, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %4 = func.call @half(%d) : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %3, %4 : tensor<i32>, tensor<2xf32>
  }
  %5 = scf.if %p -> (tensor<2xf32>) {
    %q = quant.qcast %0#1 : tensor<2xf32> to tensor<2x!quant.uniform<i8:f32, 0.5:3>>
    %r = quant.dcast %q : tensor<2x!quant.uniform<i8:f32, 0.5:3>> to tensor<2xf32>
    scf.yield %r : tensor<2xf32>
  } else {
    %s = tensor.cast %0#1 : tensor<2xf32> to tensor<?xf32>
    %t = tensor.cast %s : tensor<?xf32> to tensor<2xf32>
    scf.yield %t : tensor<2xf32>
  }
  return %0#0, %5 : tensor<i32>, tensor<2xf32>
}
func.func private @half(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Const"() {value = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "tf.Mul"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}"""
TOSA = """func.func @main(%x: tensor<1x4x6x2xf32>, %c: tensor<i1>, %n: tensor<i32>) -> tensor<1x2x3x2xf32> {
  %w = "tosa.const"() <{values = dense<0.5> : tensor<2x1x1x2xf32>}> : () -> tensor<2x1x1x2xf32>
  %b = "tosa.const"() <{values = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %s = tosa.const_shape {values = dense<[1, 2, 3, 2]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32,
    dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} :
    (tensor<1x4x6x2xf32>, tensor<2x1x1x2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x6x2xf32>
  %1 = tosa.max_pool2d %0 {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} :
    (tensor<1x4x6x2xf32>) -> tensor<1x2x3x2xf32>
  %2 = tosa.reshape %1, %s : (tensor<1x2x3x2xf32>, !tosa.shape<4>) -> tensor<1x2x3x2xf32>
  %3 = "tosa.cond_if"(%c) ({ "tosa.yield"(%2) : (tensor<1x2x3x2xf32>) -> () }, {
    %4 = tosa.reverse %2 {axis = 1 : i32} : (tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
    "tosa.yield"(%4) : (tensor<1x2x3x2xf32>) -> () }) : (tensor<i1>) -> tensor<1x2x3x2xf32>
  return %3 : tensor<1x2x3x2xf32>
}"""


def texts() -> Iterator[tuple[str, str]]:
    for name in ("f_cond", "f_switch_case", "v_assign_in_cond", "f_while"):
        for form in ("regions", "functional"):
            path = DATA / name / f"{form}.mlir"
            if path.exists():
                yield f"{name}/{form}", path.read_text("utf-8")
    for name in ("w_while_lib", "w_switchn", "w_seed_loop"):
        yield f"{name}/executor", (DATA / name / "executor.mlir").read_text("utf-8")
    yield "structured", STRUCTURED
    yield "tosa", TOSA
    yield from ((f"blocks {seed}", BlocksMaker(seed).text()) for seed in range(3))


TEXTS = {name: print_module(read_module(text)) for name, text in texts()}


def outcome(text: str) -> str:
    """Where a text ends; anything but a Problem is raised."""
    try:
        model = tosaic.load(text)
    except tosaic.Problem as problem:
        assert problem.kind != "internal"
        return "refused"
    str(model)
    repr(model)
    try:
        for entry in model:
            entry.lower()
    except tosaic.Problem as problem:
        assert problem.kind != "internal", text
        return "loaded"
    return "lowered"


def check_many(name: str, seeds: range) -> None:
    found = collections.Counter(outcome(mutated(TEXTS[name], f"{name} {seed}", 1 + seed % 3)) for seed in seeds)
    assert found.total() == len(seeds)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
def test_changed_texts_end_in_a_graph_or_a_problem(name: str) -> None:
    assert outcome(TEXTS[name]) in ("lowered", "loaded")
    check_many(name, range(25))


@pytest.mark.long
@pytest.mark.parametrize("name", TEXTS)
def test_many_more_changed_texts_end_in_a_graph_or_a_problem(name: str) -> None:
    check_many(name, range(1000, 3000))
