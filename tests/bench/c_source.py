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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tosaic

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "models")]

BOARD = "cortex-m4"
ON_BOARD = ("-O2", "-Os")
HOST_COMPILERS = (("gcc", "any"), ("gcc", "host"), ("clang", "any"), ("clang", "host"))
"""With what processor the source is written for: `any` has loops for whatever vectors the compiler finds."""
ROUNDS, LEAST_SECONDS = 9, 0.05
NANOSECONDS_A_TICK = 40
"""Of SysTick on mps2-an386, whose clock has 25 MHz; with `-icount shift=0` an instruction takes one nanosecond."""
KINDS = {"float32": "float", "int8": "signed char", "uint8": "unsigned char", "int32": "int", "int64": "long long",
         "bool": "unsigned char", "int16": "short", "uint16": "unsigned short"}

MAIN = """#include "console.h"
#include "tosaic_m.h"
#define SYSTICK ((volatile unsigned *)0xE000E010u)
{buffers}
static volatile unsigned begin, end;
static void print(unsigned number) {{
    char text[12];
    int at = 11;
    text[at] = 0;
    text[--at] = '\\n';
    do text[--at] = (char)('0' + number % 10); while (number /= 10);
    console_write(text + at);
}}
int main(void) {{
    const struct tosaic_m_inputs inputs = {{{inputs}}};
    const struct tosaic_m_outputs outputs = {{{outputs}}};
    unsigned seed = 1, sum = 2166136261u, i, code;
{fills}
    SYSTICK[1] = 0xFFFFFFu;
    SYSTICK[0] = 5;
    code = (unsigned)tosaic_m_run(&inputs, &outputs);
    SYSTICK[2] = 0;
    begin = SYSTICK[2];
    code |= (unsigned)tosaic_m_run(&inputs, &outputs);
    end = SYSTICK[2];
{sums}
    print((begin - end) & 0xFFFFFFu);
    print(sum);
    return (int)code;
}}
"""


# ---- on a board ----------------------------------------------------------------------------------------------------------
def program(entry: Any) -> str:
    """A program that counts its second call, and prints that and a hash of the outputs of it."""
    buffers, fills, sums = [], [], []
    for side, values in (("in", entry.inputs), ("out", entry.outputs)):
        for i, value in enumerate(values):
            count = int(np.prod(value.shape))
            kind = KINDS[str(np.dtype(value.dtype))]
            buffers.append(f"static {kind} {side}{i}[{max(count, 1)}];")
            step = "seed = seed * 1664525u + 1013904223u"
            drawn = "(float)(int)(seed >> 24) / 64.0f - 2.0f" if kind == "float" else f"({kind})(seed >> 24)"
            fills.append(f"    for (i = 0; i < {count}; ++i) {step}, in{i}[i] = {drawn};" if side == "in" else "")
            sums.append(f"    for (i = 0; i < sizeof out{i}; ++i) sum = (sum ^ ((unsigned char *)out{i})[i]) * 16777619u;"
                        if side == "out" else "")
    arguments = {side: ", ".join(f"{side}{i}, sizeof {side}{i}" for i in range(len(values)))
                 for side, values in (("in", entry.inputs), ("out", entry.outputs))}
    return MAIN.format(buffers="\n".join(buffers), inputs=arguments["in"], outputs=arguments["out"],
                       fills="\n".join(filter(None, fills)), sums="\n".join(filter(None, sums)))


def sizes(compiled: Path) -> tuple[int, int]:
    """Bytes of code and of constants of an object file."""
    listed = subprocess.run(["arm-none-eabi-size", "-A", str(compiled)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines() if line.startswith(".")]
    return tuple(sum(int(r[1]) for r in rows if r[0].startswith(kind)) for kind in (".text", ".rodata"))  # type: ignore[return-value]


def counted(machine: Any, folder: Path, file: Path) -> tuple[int, int]:
    """Instructions of a call, and a hash of its outputs. SysTick has 24 bits, 671 million instructions."""
    built = machine.build(folder, [folder / "main.c", file], ["-O2"])
    runner = [machine.runner[0], "-icount", "shift=0", *machine.runner[1:]]
    done = subprocess.run([*runner, str(built)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    if done.returncode:
        raise RuntimeError(f"the program ended with {done.returncode}: {done.stdout}")
    ticks, outputs = map(int, done.stdout.split())
    return ticks * NANOSECONDS_A_TICK, outputs


def on_board(name: str, model: Any, folder: Path) -> None:
    from aot.machines import MACHINES
    machine = next(m for m in MACHINES if m.name == BOARD)
    options = tosaic.CompileOptions(tosaic.target(BOARD))
    (folder / "main.c").write_text(program(model.main))
    compiled = {"object": model.save(folder, "m", options, self_contained=True).object}
    source = model.save(folder, "m", options, self_contained=True, emit="c").object
    for flag in ON_BOARD:
        compiled[f"C source, gcc {flag}"] = folder / f"source{flag}.o"
        subprocess.run([*machine.compiler[:4], "-ffreestanding", "-std=c99", flag, f"-I{folder}", "-c", str(source), "-o",
                        str(compiled[f"C source, gcc {flag}"])], check=True)
    results = set()
    for how, file in compiled.items():
        code, constants = sizes(file)
        try:
            instructions, outputs = counted(machine, folder, file)
            results.add(outputs)
            print(f"| {name} | {BOARD} | {how} | {code:,} | {constants:,} | {instructions:,} |", flush=True)
        except (AssertionError, RuntimeError) as error:
            print(f"| {name} | {BOARD} | {how} | {code:,} | {constants:,} | - | {str(error).strip().splitlines()[-1][:100]}")
    assert len(results) <= 1, "outputs differ"


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
    from sources import wake_word_model
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
