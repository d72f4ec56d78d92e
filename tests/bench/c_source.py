"""C source of models beside their objects and beside the JIT.

    python tests/bench/c_source.py [MODEL ...] [--no-host | --no-board]

On a Cortex-M4 (qemu, one instruction a nanosecond of its clock): bytes of code and of constants, and instructions of a call, of
the object that LLVM writes and of the same model's C source as arm-none-eabi-gcc compiles it; the outputs of all must be equal
bytes. On this machine: microseconds of a call of the JIT's code and of C source as gcc and clang compile it, on one thread, in
an order drawn for each round; the least and the median. MODEL is a file that tosaic loads; okay_nabu without any.
"""
from __future__ import annotations

import argparse
import ctypes
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.tests.bench.microcontrollers.boards import BOARDS
from tosaic.tests.bench.microcontrollers.compiled import counted
from tosaic.tests.models.sources import wake_word_model

BOARD = "cortex-m4"
ON_BOARD = ("-O2", "-Os")
HOST_COMPILERS = (("gcc", "any"), ("gcc", "host"), ("clang", "any"), ("clang", "host"))
"""With what processor the source is written for: `any` has loops for whatever vectors the compiler finds."""
ROUNDS, LEAST_SECONDS = 9, 0.05


# ---- on a board ----------------------------------------------------------------------------------------------------------
def sizes(compiled: Path) -> tuple[int, int]:
    """Bytes of code and of constants of an object file."""
    listed = subprocess.run(["arm-none-eabi-size", "-A", str(compiled)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines() if line.startswith(".")]
    code, constants = (sum(int(r[1]) for r in rows if r[0].startswith(kind)) for kind in (".text", ".rodata"))
    return code, constants


def on_board(name: str, model: Any, folder: Path) -> None:
    """Rows of the object, and of the C source as gcc compiles it; the outputs of all must be the same bytes."""
    board = BOARDS[BOARD].calibrated(folder)
    lowered = model.main.lower(tosaic.CompileOptions(tosaic.target(BOARD)))
    arrays = inputs_of(model.main)
    found = {"object": save([lowered], folder, "m")}
    source = save([lowered], folder, "m", ArtifactForm(emit="c"))
    for flag in ON_BOARD:
        compiled = folder / f"source{flag}.o"
        subprocess.run([*board.machine.compiler[:4], "-ffreestanding", "-std=c99", flag, f"-I{folder}", "-c",
                        str(source.object), "-o", str(compiled)], check=True)
        found[f"C source, gcc {flag}"] = replace(source, object=compiled)
    outputs = set()
    for how, artifact in found.items():
        code, constants = sizes(artifact.object)
        try:
            (count,) = counted([lowered], artifact, [(0, arrays)], board, folder)
            outputs.add(count.data)
            instructions = f"{count.instructions:,}"
        except AssertionError as error:  # what the linker says of a model that is too large for the board
            instructions = f"- | {str(error).strip().splitlines()[-1][:100]}"
        print(f"| {name} | {BOARD} | {how} | {code:,} | {constants:,} | {instructions} |", flush=True)
    assert len(outputs) <= 1, "outputs differ"


# ---- on this machine -----------------------------------------------------------------------------------------------------
def inputs_of(entry: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(v.shape).astype(np.float32) if np.dtype(v.dtype) == np.float32
            else rng.integers(0, 100, v.shape).astype(v.dtype) for v in entry.inputs]


def callers(model: Any, folder: Path) -> Iterator[tuple[str, Callable[[], Any], list[np.ndarray]]]:
    """What runs the model, and the outputs of its first call."""
    arrays = inputs_of(model.main)
    jit = model.main.compile(tosaic.CompileOptions(threads=1))
    tosaic.default_context.reset()
    outputs = [np.array(o) for o in (lambda r: r if isinstance(r, (tuple, list)) else [r])(jit(*arrays))]
    yield "JIT", lambda: jit(*arrays), outputs
    for compiler, target in HOST_COMPILERS:
        if shutil.which(compiler) is None:
            continue
        place = folder / f"{compiler}-{target}"
        model.save(place, "m", tosaic.CompileOptions(tosaic.target(target)), self_contained=True, emit="c")
        subprocess.run([compiler, "-std=c99", "-O3", "-march=native", "-shared", "-fPIC", f"-I{place}", str(place / "m.c"),
                        "-lm", "-o", str(place / "m.so")], check=True)
        run = ctypes.CDLL(str(place / "m.so")).tosaic_m_run
        own = [np.empty_like(o) for o in outputs]
        given, taken = ((ctypes.c_void_p * (2 * len(side)))(*(x for a in side for x in (a.ctypes.data, a.nbytes)))
                        for side in (arrays, own))
        assert run(given, taken) == 0
        yield (f"C source for {target}, {compiler} -O3",
               lambda run=run, given=given, taken=taken, own=own: run(given, taken), own)


def on_host(name: str, model: Any, folder: Path) -> None:
    found = list(callers(model, folder))
    for how, _, outputs in found:
        for a, b in zip(outputs, found[0][2], strict=True):
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * float(np.abs(b).max(initial=0)), err_msg=how)
            else:
                np.testing.assert_array_equal(a, b, err_msg=how)
    times: dict[str, list[float]] = {how: [] for how, _, _ in found}
    for _ in range(ROUNDS):
        for how, run, _ in random.sample(found, len(found)):
            begin, calls = time.perf_counter(), 0
            while (spent := time.perf_counter() - begin) < LEAST_SECONDS or calls < 3:
                run()
                calls += 1
            times[how].append(1e6 * spent / calls)
    first = min(times["JIT"])
    for how, each in times.items():
        print(f"| {name} | {how} | {min(each):,.1f} | {statistics.median(each):,.1f} | {first / min(each):.2f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--no-host", action="store_true")
    parser.add_argument("--no-board", action="store_true")
    options = parser.parse_args(arguments)
    models: dict[str, Any] = {Path(p).stem: p for p in options.models} or {"okay_nabu": wake_word_model("okay_nabu")}
    if not options.no_board:
        print("| model | processor | form | code, bytes | constants, bytes | instructions a call |\n|---|---|---|---|---|---|")
        for name, file in models.items():
            with tempfile.TemporaryDirectory() as folder:
                on_board(name, tosaic.load(file), Path(folder))
    if not options.no_host:
        print("\n| model | code | least µs | median µs | JIT's time over its |\n|---|---|---|---|---|")
        for name, file in models.items():
            with tempfile.TemporaryDirectory() as folder:
                on_host(name, tosaic.load(file), Path(folder))


if __name__ == "__main__":
    main()
