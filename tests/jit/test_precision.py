"""The precision of products of f32 as an option: of `jit`, `compile`, memory options, the command line and files."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.command_line.memory_options import compile_options
from tosaic.jit.decorator import Jit
from tosaic.lowering.target.presets import host

ZERO = np.zeros(1, np.float32)
X, W = (np.random.default_rng(i).standard_normal((1, 128, 128)).astype(np.float32) for i in range(2))
MODEL = """func.func @main(%x: tensor<1x64x128xf32>, %y: tensor<1x128x64xf32>) -> tensor<1x64x64xf32> {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = "tosa.matmul"(%x, %y, %z, %z)
    : (tensor<1x64x128xf32>, tensor<1x128x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x64x64xf32>
  return %0 : tensor<1x64x64xf32>
}
"""
has_tiles = "bfloat16" in host().matrix_unit
needs_tiles = pytest.mark.skipif(not has_tiles, reason="this machine has no tiles of bfloat16, or does not let us use them")


def product(precision: str | None) -> Jit:
    options = tosaic.CompileOptions(precision=precision or "f32")  # type: ignore[arg-type]
    return tosaic.jit(options=options)(lambda x: tosaic.tosa.matmul(x, W, ZERO, ZERO))


def test_the_schedule_says_what_takes_it() -> None:
    shown = {p: product(p).lower(X).show("schedule") for p in (None, "f32", "bf16x6", "bf16x3")}
    assert shown[None] == shown["f32"] and "fma" in shown["f32"] and "float32:" not in shown["f32"]
    for precision in ("bf16x6", "bf16x3"):
        expected = f"contraction: {precision}" if has_tiles else "float32: this machine has no tiles of bfloat16"
        assert expected in shown[precision]


def test_a_machine_without_tiles_computes_in_f32() -> None:
    plain, six = (tosaic.jit(options=tosaic.CompileOptions(tosaic.target(features="-amx-bf16"), precision=p))(
        lambda x: tosaic.tosa.matmul(x, W, ZERO, ZERO)) for p in ("f32", "bf16x6"))
    np.testing.assert_array_equal(plain(X), six(X))
    assert "float32: this machine has no tiles of bfloat16" in six.lower(X).show("schedule")


@pytest.mark.parametrize(("precision", "units"), [("f32", 128), ("bf16x6", 17 + 6.2 * 4), ("bf16x3", 528 + 3.1 * 4)])
def test_errors_are_those_that_are_promised(precision: str, units: float) -> None:
    x, w = X.astype(np.float64), W.astype(np.float64)
    assert (np.abs(product(precision)(X) - x @ w) <= units * 2.0**-24 * (np.abs(x) @ np.abs(w))).all()


@needs_tiles
def test_six_products_are_inside_the_specification_s_bounds() -> None:
    """The cross-check holds each operator against the reference by TOSA's rules for sums of products."""
    traced = product("bf16x6").trace(X)
    found = traced.check([[X], [X * np.float32(1e-20)], [np.abs(X)]], tosaic.CompileOptions(precision="bf16x6"))
    assert found.agrees


@needs_tiles
@pytest.mark.parametrize("number", [2, 3])
def test_bits_do_not_depend_on_threads(number: int) -> None:
    x = np.random.default_rng(0).standard_normal((1, 700, 128)).astype(np.float32)
    x[0, 5, 7], x[0, 600, 1] = np.inf, 1e-41
    options = [tosaic.CompileOptions(precision="bf16x6", threads=n) for n in (1, number)]
    one, several = (tosaic.jit(options=o)(lambda x: tosaic.tosa.matmul(x, W, ZERO, ZERO))(x) for o in options)
    np.testing.assert_array_equal(one.view(np.uint32), several.view(np.uint32))


def test_compile_takes_it() -> None:
    compiled = tosaic.compile(MODEL, options=tosaic.CompileOptions(precision="bf16x6"))
    assert compiled(X[:, :64], np.ascontiguousarray(W[:, :, :64])).shape == (1, 64, 64)


@pytest.mark.parametrize("make", [lambda: tosaic.CompileOptions(precision="x"),
                                  lambda: compile_options({"precision": "f16"})])
def test_another_precision_is_a_problem(make: object) -> None:
    with pytest.raises(tosaic.Problem, match=r"precision is '.*'"):
        make()  # type: ignore[operator]


def test_the_command_line_and_files_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, options = tmp_path / "m.mlir", tmp_path / "options.json"
    model.write_text(MODEL)
    options.write_text(json.dumps({"precision": "bf16x6"}))
    shown = []
    for arguments in (["--precision", "bf16x6"], ["--memory", str(options)], []):
        assert main(["show", str(model), "schedule", *arguments]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != shown[2]
    assert main(["compile", str(model), "-o", str(tmp_path / "out"), "--precision", "bf16x6"]) == 0
    assert main(["show", str(model), "schedule", "--precision", "f64"]) == 2
    assert "it may be f32, bf16x6, bf16x3" in capsys.readouterr().err
