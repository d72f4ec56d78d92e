"""MLPerf Tiny's four networks on emulated Cortex-M boards: memory, flash, stack, and instructions of a call, in one table.

    python tests/bench/microcontrollers                         the table, Cortex-M4 and Cortex-M55
    python tests/bench/microcontrollers keyword --layers        one network, and its layers beside CMSIS-NN's kernels
    python tests/bench/microcontrollers --processors cortex-m7 cortex-m4-int16 rv32imc      int16: weights are kept as pairs
    python tests/bench/microcontrollers --rates                 multiply-adds an instruction, 64-bit Arm and RISC-V (rates.py)

The networks are as the benchmark's rules describe them, with weights by lot (peers/tiny_networks.py), converted by TensorFlow
in the environment of `python tests/bench/peers`. It takes two minutes, and needs arm-none-eabi-gcc, qemu-system-arm and the
packages of the extra `test`.

`arena`, with inputs and outputs, is held against the head of TFLite Micro's (activations and scratch memory, without its
tables); `flash` is code and constants, `stack` a bound. Instructions are those of one whole call, and of CMSIS-NN's kernels for
the same layers, one after the other, compiled with -O3; `ratio` is CMSIS-NN's over tosaic's: above 1 tosaic takes fewer.
CMSIS-NN's sources are looked for in `--cmsis-nn` (default: the folder CMSIS-NN where the models are); without them its columns
have dashes.

Outputs must be equal to the bit to the interpreter's and to those of LiteRT's reference kernels, whole and by layer, and
CMSIS-NN's, too; the exit status is 1 where they are not, and each difference is printed.
"""
from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..peers import models
from ..peers.environment import ensure
from . import cmsis_nn
from .boards import BOARDS, HERE, Board
from .compiled import figures, layer_counts
from .layers import Network, network
from .rates import PROCESSORS, rate_table, rates
from .table import Row, differences, layer_table, network_table

TITLES = {"keyword_spotting": "keyword spotting, DS-CNN", "visual_wake_words": "visual wake words, MobileNetV1 0.25",
          "image_classification": "image classification, ResNet-8", "anomaly_detection": "anomaly detection, autoencoder"}
PEER = "tflite-micro"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/bench/microcontrollers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"names or how they begin: {', '.join(TITLES)}")
    parser.add_argument("--processors", nargs="*", choices=BOARDS)
    parser.add_argument("--layers", action="store_true", help="a table of each network's layers, too")
    parser.add_argument("--rates", action="store_true", help="only multiply-adds an instruction")
    parser.add_argument("--cmsis-nn", type=Path, metavar="FOLDER", default=cmsis_nn.default_folder(), help="its sources")
    options = parser.parse_args(given)
    options.networks = [n for n in TITLES if not options.networks or n.startswith(tuple(options.networks))]
    options.processors = options.processors or (PROCESSORS if options.rates else ["cortex-m4", "cortex-m55"])
    if not options.networks:
        parser.error(f"there are {', '.join(TITLES)}")
    return options


def peer_arena(name: str) -> int | str:
    """TFLite Micro's arena for a model, as memory.py asks for it."""
    from memory import peer  # type: ignore[import-not-found]
    missing = ensure("peers", ["numpy", PEER])
    return missing.get(PEER) or peer(PEER, models.file(name, "tflite"))


def rows(board: Board, networks: Mapping[str, Network], arenas: Mapping[str, int | str], options: argparse.Namespace
         ) -> Iterator[Row]:
    """Each network on a board."""
    with tempfile.TemporaryDirectory(prefix="tosaic-bench-") as made_here:
        folder = Path(made_here)
        board = board.calibrated(folder)
        has_kernels = board.is_cortex_m and not cmsis_nn.missing(options.cmsis_nn)
        archive = cmsis_nn.library(options.cmsis_nn, board, folder) if has_kernels else None
        for name, made in networks.items():
            layers = layer_counts(made, board, folder) if options.layers else []
            kernels = cmsis_nn.counts(options.cmsis_nn, archive, board, made.layers, folder) if archive else []
            yield Row(TITLES[name], board.processor, made, figures(made, board, folder), layers, kernels, arenas[name])


def versions(boards: Sequence[Board]) -> str:
    """The compiler and the emulator."""
    commands = dict.fromkeys(command for board in boards for command in (board.machine.compiler[0], board.machine.runner[0]))
    return ", ".join(subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
                     for command in commands)


def print_rates(boards: Sequence[Board], networks: Mapping[str, Network]) -> int:
    wrong: list[str] = []
    titled = {TITLES[name]: made for name, made in networks.items()}
    found = {board.processor: rates(board, titled, wrong) for board in boards}
    print(f"{datetime.date.today()}, {versions(boards)}\n\n{rate_table(found)}\n")
    print(*(wrong or ["All outputs are equal to the bit."]), sep="\n")
    return 1 if wrong else 0


def main() -> int:
    sys.path.append(str(HERE.parent))  # where memory.py is, a command that its peers run, too
    options = arguments()
    boards = [BOARDS[name] for name in options.processors]
    if missing := sorted({command for board in boards for command in board.machine.missing}):
        print(f"not installed: {', '.join(missing)}")
        return 2
    names = {name: f"{name}_i8" for name in options.networks}
    try:
        models.make(names.values())
    except models.Missing as error:
        print(f"a model cannot be had: {error}")
        return 2
    networks = {name: network(models.file(file, "tflite").read_bytes()) for name, file in names.items()}
    if options.rates:
        return print_rates(boards, networks)
    arenas = {name: peer_arena(file) for name, file in names.items()}
    found = [row for board in boards for row in rows(board, networks, arenas, options)]
    found.sort(key=lambda row: list(TITLES.values()).index(row.title))
    print(f"{datetime.date.today()}, {versions(boards)}\n\n{network_table(found)}")
    if options.layers:
        print("", *map(layer_table, found), sep="\n\n")
    reasons = {f"TFLite Micro: {arena}" for arena in arenas.values() if isinstance(arena, str)}
    reasons |= {f"CMSIS-NN: {reason}" for reason in [cmsis_nn.missing(options.cmsis_nn)] if reason}
    print("", *sorted(reasons), sep="\n")
    wrong = [line for row in found for line in differences(row)]
    print(*(wrong or ["All outputs are equal to the bit."]), sep="\n")
    return 1 if wrong else 0
