"""What a user does in a day, in one process: fails, or says that all is right, and whether the system has signals and lets
tosaic link. Run by `test_other_systems.py` on a system that is changed."""
from __future__ import annotations

import os
import pathlib

import numpy as np
import tosaic
from tosaic import ops
from tosaic.jit.command_line.cli import main
from tosaic.lowering.machine_code import link
from tosaic.lowering.native.process import interrupt_flag

MODELS = pathlib.Path(__file__).parents[2] / "samples" / "models"
TEXT = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = tosa.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32> }
"""


def functions() -> None:
    """State, loops that Ctrl-C ends, branches, a failing check, threads."""
    total = tosaic.Variable("total", initial=np.zeros(4, np.float32))

    @tosaic.jit
    def accumulate(x):  # type: ignore[no-untyped-def]
        total.write(total.read() + x)
        return tosaic.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (np.int32(0), total.read()))[1]

    x = np.arange(4, dtype=np.float32)
    for count in (1, 2, 3):
        assert np.array_equal(accumulate(x), x * count * 32)

    @tosaic.jit
    def checked(x):  # type: ignore[no-untyped-def]
        total.write(total.read() * 0)
        tosaic.check(ops.all(x > 0), "only positive numbers")
        return x

    try:
        checked(-x)
    except tosaic.Problem as problem:
        assert "only positive numbers" in str(problem)
    assert np.array_equal(tosaic.default_context.read("total"), x * 3)

    big = np.random.default_rng(0).random((300, 300), np.float32)
    product = tosaic.jit(lambda a, b: a @ b)
    assert np.allclose(product(big, big), big @ big, rtol=1e-4)


def models(folder: pathlib.Path) -> None:
    """A file, a signature of a `.tflite` file, an ONNX file that is mapped."""
    path = folder / "m ä.mlir"
    path.write_text(TEXT, "utf-8")
    x = np.arange(4, dtype=np.float32)
    assert np.array_equal(tosaic.load(path).main(x, x), x + x)
    assert tosaic.load(MODELS / "lstm.mlir").main.compile().report().arena == 160
    path.unlink()


def commands(folder: pathlib.Path) -> None:
    """Objects, C source, runs, and the cache; files are written twice."""
    model, out = str(MODELS / "lstm.mlir"), str(folder / "build")
    for arguments in (["compile", model, "-o", out, "--target", "x86-64"], ["compile", model, "-o", out, "--emit", "c"],
                      ["compile", model, "-o", out + "p", "--project", "cmake"],
                      ["run", model, "--save", str(folder / "y.npz")], ["cache"]) * 2:
        assert main([*arguments, "--json"]) == 0, arguments
    assert {"lstm.o", "tosaic_lstm.h", "lstm.c"} <= set(os.listdir(out))


if __name__ == "__main__":
    import contextlib
    import io
    here = pathlib.Path.cwd()
    functions()
    models(here)
    with contextlib.redirect_stdout(io.StringIO()):
        commands(here)
    print("right", interrupt_flag.is_supported(), link.is_supported())
