"""The loops of every kernel as one hash each, so that a change of the schedules can be held against what was before: equal, or
it is known what differs.

    python tests/bench/loop_texts.py write BEFORE.json                      models of the tests and samples, single contractions
    python tests/bench/loop_texts.py write AFTER.json FILE|FOLDER...        of other models, too: .mlir, .tflite, .tosa, .onnx
    python tests/bench/loop_texts.py write AFTER.json --targets host cortex-m4 --texts FOLDER      some machines; whole texts
    python tests/bench/loop_texts.py compare BEFORE.json AFTER.json         names what differs; ends with 1 if something does

A hash is of a function of the loop IR and of its buffers, the data of constants included. Targets are names of `tosaic
targets`, features after a colon; ways of compiling are in WAYS. A few minutes for all of it on one processor.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
import tosaic
from tosaic import CompileOptions
from tosaic.jit.models.entry import Entry
from tosaic.lowering import pipeline
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.loops.text import print_function
from tosaic.tests.bench.arenas import FOLDERS, closed, files
from tosaic.tests.bench.contraction_cases import contractions

TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4", "host", "x86-64-v4:+avx512vnni", "x86-64-v3:+avxvnni", "aarch64", "cortex-m4",
           "cortex-m55", "rv64gcv", "rv32imc")
WAYS = {"plain": CompileOptions(threads=1), "rows": CompileOptions(threads=1, rows="memory"),
        "threads": CompileOptions(threads=8), "bf16x6": CompileOptions(threads=1, precision="bf16x6"),
        "bf16x3 threads": CompileOptions(threads=8, precision="bf16x3")}
"""Ways of compiling."""
ONLY_PLAIN = ("x86-64", "x86-64-v3", "x86-64-v3:+avxvnni", "cortex-m4", "cortex-m55", "rv32imc")
"""Targets that are compiled for one thread and the default tiling only."""
WITH_LIMBS = ("host",)
"""Targets for which float32 may be split into limbs."""
PASSES = pipeline.passes_until("schedule")
Digests = dict[tuple[int, ...], str]


def machine(text: str) -> tosaic.Target:
    name, _, features = text.partition(":")
    return tosaic.target(name, features=features)


def ways_of(target: str) -> Iterator[str]:
    """The ways that a target is compiled in."""
    for way, options in WAYS.items():
        has_limbs, is_plain = options.precision != "f32", way == "plain"
        if target in WITH_LIMBS or not (has_limbs or (target in ONLY_PLAIN and not is_plain)):
            yield way


def modules(paths: Sequence[pathlib.Path]) -> Iterator[tuple[str, Module, str]]:
    """Single contractions, then each function of each model: a name, the module, and the function's name in it."""
    for name, module in contractions():
        yield f"contraction {name}", module, "main"
    for path in files([*FOLDERS, *paths]):
        try:
            entries: list[Entry] = [closed(e) for e in tosaic.load(path).entries.values()]
            traced = [e.trace() for e in entries]
        except tosaic.Problem:
            continue
        for each in traced:
            yield f"{path.parent.name}/{path.name} {each.name}", each.module, each.name


def described(b: Buffer, digests: dict[int, str]) -> str:
    """A buffer, with a digest of its data if it has some."""
    data = ""
    if b.data is not None:
        if id(b.data) not in digests:
            digests[id(b.data)] = hashlib.sha256(np.ascontiguousarray(b.data).tobytes()).hexdigest()
        data = digests[id(b.data)]
    return f"{b.name} {b.dtype} {list(b.shape)} {b.role} {b.copies} {data}"


def text_of(function: Function, digests: dict[int, str]) -> str:
    return print_function(function) + "\n".join(described(b, digests) for b in (*function.params, *function.scratch)) + "\n"


def kernels(module: Module, function: str, options: CompileOptions) -> Iterator[tuple[str, str]]:
    """Each kernel of every candidate program, with its text."""
    programs = pipeline.run(pipeline.start(module, function, options), PASSES).programs
    digests: dict[int, str] = {}
    for number, program in enumerate(programs):
        for position, each in enumerate(program.functions):
            yield f"{number} {position} {each.name}", text_of(each, digests)


def write(out: pathlib.Path, paths: Sequence[pathlib.Path], targets: Sequence[str], texts: pathlib.Path | None,
          matching: str) -> None:
    found: dict[str, str] = {}
    chosen = [m for m in modules(paths) if matching in m[0]]
    for target in targets:
        started = time.perf_counter()
        for way in ways_of(target):
            options = CompileOptions(machine(target), WAYS[way].threads, WAYS[way].precision, WAYS[way].rows)
            for name, module, function in chosen:
                key = f"{target} | {way} | {name}"
                try:
                    for kernel, text in kernels(module, function, options):
                        found[f"{key} | {kernel}"] = hashlib.sha256(text.encode()).hexdigest()
                        if texts:
                            place = texts / target / way / name.replace("/", " ")
                            place.mkdir(parents=True, exist_ok=True)
                            (place / kernel.replace("/", " ")[:200]).write_text(text)
                except tosaic.Problem as problem:
                    found[f"{key} | problem"] = problem.message.splitlines()[0]
        print(f"{target}: {len(found)} kernels so far, {time.perf_counter() - started:.0f} s", flush=True)
    out.write_text(json.dumps(found, indent=0))


def compare(before: pathlib.Path, after: pathlib.Path) -> int:
    """Print what differs in what both have, and what only one has of the targets of both; how many that is."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    targets = {key.split(" | ")[0] for key in old} & {key.split(" | ")[0] for key in new}
    count = 0
    for key in sorted({*old, *new}):
        if key.split(" | ")[0] in targets and old.get(key) != new.get(key):
            print("missing " if key not in new else "new     " if key not in old else "differs ", key)
            count += 1
    print(f"{count} differ of {len(old)}; targets: {', '.join(sorted(targets))}")
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["write", "compare"])
    parser.add_argument("file", type=pathlib.Path, help="where hashes go, or are")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="FILE|FOLDER")
    parser.add_argument("--targets", nargs="*", default=TARGETS)
    parser.add_argument("--matching", default="", help="only models and contractions with this in their name")
    parser.add_argument("--texts", type=pathlib.Path, metavar="FOLDER", help="write the texts there, too")
    options = parser.parse_args()
    if options.mode == "compare":
        sys.exit(int(compare(options.file, options.paths[0]) > 0))
    write(options.file, options.paths, options.targets, options.texts, options.matching)


if __name__ == "__main__":
    main()
