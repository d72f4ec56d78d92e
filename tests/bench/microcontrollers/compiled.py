"""What tosaic makes of a network for a processor: its figures, and programs that call it on a board, whole and layer by
layer."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tosaic
from tosaic.jit.aot import Artifact, save
from tosaic.jit.stages import Lowered
from tosaic.jit.tools.report.fit import read_only
from tosaic.lowering.graph.types import Array
from tosaic.lowering.memory.planner import Memory
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

from ...aot.callers import Caller
from .boards import Board, Count
from .layers import Network


@dataclass(frozen=True, slots=True)
class Figures:
    """Bytes of a network's object, and one call of it: instructions, and what its outputs are, in the interpreter, too. The
    arena has inputs and outputs in it; flash is code and constants."""
    arena: int
    state: int
    flash: int
    stack: int
    instructions: int
    outputs: tuple[bytes, ...]
    interpreted: tuple[bytes, ...]


def figures(network: Network, board: Board, folder: Path) -> Figures:
    """A whole network, with inputs and outputs in its arena."""
    (entry,) = tosaic.load(network.data)
    traced = entry.trace()
    options = board.options(Memory(workspace_io=True))
    lowered = traced.lower(options)
    artifact = save([lowered], folder, "network")
    (count,) = counted([lowered], artifact, [(0, network.inputs)], board, folder)
    expected = Interpreter(traced.module, traced.name, InterpreterVariables())(*network.inputs)
    assert artifact.stack is not None and not artifact.stack.unknown, artifact.stack
    return Figures(lowered.plan.size_bytes, artifact.variable_bytes, sum(n.nbytes for n in read_only(
        lowered.report(code=True), set())), artifact.stack.whole.nbytes, count.instructions, (count.data,),
        tuple(y.tobytes() for y in expected))


def layer_counts(network: Network, board: Board, folder: Path) -> list[Count]:
    """Each layer alone, all in one program."""
    options = board.options()
    lowered = [entry.lower(options) for entry in tosaic.load(network.cut)]
    calls = [(number, layer.arrays) for number, layer in enumerate(network.layers)]
    return counted(lowered, save(lowered, folder, "layers"), calls, board, folder)


def counted(entries: Sequence[Lowered], artifact: Artifact, calls: Sequence[tuple[int, Sequence[Array]]], board: Board,
            folder: Path) -> list[Count]:
    """Calls of entry functions on a board."""
    source = Caller(entries, artifact).source(calls)
    source = source.replace('#include "console.h"', '#include "console.h"\n#include "counting.h"', 1)
    source = re.sub(r"if \((\w+_run\(.*\)) != TOSAIC_OK\) return 2;", r"if (COUNTED(\1) != TOSAIC_OK) return 2;", source)
    source = source.replace("    hex(outputs.", "    print_bytes(outputs.")
    (folder / "main.c").write_text(source)
    return board.counts(folder, [folder / "main.c", artifact.object])
