"""Sample 4: where the memory of a model lies, in four ways, each with a C program in samples/use_cases.

    1 self contained      the object has its own workspace and constants
    2 shared workspace    two models work in the same memory
    3 placed memories     buffers and constants in memories of the user's choice, with section attributes
    4 workspace io        inputs and outputs lie in the workspace, too

Compiles the models as a shell would, builds the programs with the system's C compiler, runs them, and compares with Python.
With `board` it does so for a Cortex-M4 without an operating system (arm-none-eabi-gcc), emulated by QEMU.

    python samples/4_use_cases.py [host | board] [FOLDER]
"""
from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tosaic
from tosaic.jit.command_line.cli import main as command

HERE = pathlib.Path(__file__).parent
POOLS = ["--workspace-pools", "dtcm,sram", "--workspace-pool-dtcm", "size=2K,access=c:rw",
         "--parameter-pools", "itcm,flash", "--parameter-pool-itcm", "size=1000"]
CASES = {"1_self_contained": {"classifier": ["--self-contained"]},
         "2_shared_workspace": {"classifier": ["--workspace-pools", "sram"], "detector": ["--workspace-pools", "sram"]},
         "3_placed_memories": {"classifier": POOLS},
         "4_workspace_io": {"classifier": ["--workspace-pools", "sram", "--workspace-io"]}}
"""The models of each case, with the options that they are compiled with."""

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
BOARD = HERE / "board"
SYSTEMS = {
    "host": ("host", ["cc", "-O1", *WARNINGS, str(HERE / "use_cases" / "host.c")], []),
    "board": ("thumbv7em", ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-O1", *WARNINGS,
                            "-nostdlib", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-Wl,-z,noexecstack",
                            "-T", str(BOARD / "cortex_m4.ld"), str(BOARD / "cortex_m.c")],
              ["qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none", "-chardev",
               "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console", "-kernel"])}
"""The target of each system, how its compiler is called, and what runs the program."""


def build(case: str, system: str, folder: pathlib.Path) -> list[str]:
    """The command that runs the program of a case."""
    target, compiler, runner = SYSTEMS[system]
    for model, options in CASES[case].items():
        source = str(HERE / "models" / f"{model}.mlir")
        assert command(["compile", source, "-o", str(folder), "--target", target, *options]) == 0
    files = [HERE / "use_cases" / f"{case}.c", *sorted(folder.glob("*.o")), *sorted(folder.glob("*_flash.S"))]
    program = folder / case
    placed = "-DTOSAIC_CLASSIFIER_FLASH_CONSTANT_POOL_SECTION=FLASH"
    includes = [f"-I{folder}", f"-I{HERE / 'use_cases'}"]
    subprocess.run([*compiler, placed, *includes, *map(str, files), "-o", str(program)], check=True)
    return [*runner, str(program)]


def expected(model: str) -> list[np.ndarray]:
    """What Python gets for the picture that the programs make up."""
    entry = tosaic.load(HERE / "models" / f"{model}.mlir").main.compile()
    (x,) = entry.executable.signature.inputs
    picture = ((np.arange(x.nbytes) * 37 + 11) % 251 - 125).astype(np.int8)
    return [np.ravel(a) for a in entry.executable(picture.reshape(x.shape))]


def main() -> None:
    system = sys.argv[1] if len(sys.argv) > 1 else "host"
    top = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    for case, models in CASES.items():
        print(f"{case} ({system})")
        done = subprocess.run(build(case, system, top / system / case), capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            print(line if len(line) < 80 else f"{line[:76]} ...")
        printed = [line.split(":")[1].split() for line in done.stdout.splitlines()]
        right = [a for model in models for a in expected(model)]
        print("equals Python:", printed == [list(map(str, a.tolist())) for a in right])


if __name__ == "__main__":
    main()
