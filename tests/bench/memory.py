"""Bytes of working memory beside the peers', in one run: `python tests/bench/memory.py [MODEL...]`.

A MODEL is a .tflite file, or the name of a model of `python tests/bench/peers`, whose environments and models these are. Each
peer is asked in a process of its own; one that is not there, or refuses the model, says so in its column.

What is counted: inputs, outputs and everything between them, without weights and without the state of variables. TFLite
Micro's figure is the head of its arena (activations and scratch), LiteRT's the span of its arena without delegates, IREE's
the transient memory of its stream and the new copies of variables that a call makes (inputs and outputs lie outside), Vela's
the SRAM that it reports.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from peers.environment import ensure, python
from peers.tosa_text import generic_text

GAP = 1 << 16
"""Bytes between tensors that are not in one arena, at least."""


# ---- the peers: run in their own environment, where tosaic need not be --------------------------------------------------
def tflite_micro(path: str) -> int:
    from tflite_micro.python.tflite_micro import runtime  # type: ignore[import-not-found]
    data = pathlib.Path(path).read_bytes()
    with printed() as text:
        interpreter = runtime.Interpreter.from_bytes(data, arena_size=32 << 20)
        interpreter.print_allocations()
    found = re.search(r"Arena allocation head (\d+) bytes", text[0])
    if not found:
        raise RuntimeError(" ".join(text[0].split())[-80:] or "no figures printed")
    return int(found[1])


def litert(path: str) -> int:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    used = {int(i) for o in interpreter._get_ops_details() for i in (*o["inputs"], *o["outputs"]) if i >= 0}
    computed = {int(i) for o in interpreter._get_ops_details() for i in o["outputs"]}
    computed |= {d["index"] for d in interpreter.get_input_details()}
    variables = {d["index"] for d in interpreter.get_tensor_details() if d["dtype"].__name__ == "void"}
    spans = []
    for index in sorted((used & computed) - variables):
        with contextlib.suppress(ValueError, RuntimeError):
            array = interpreter.tensor(index)()
            if array is not None and array.dtype != object and array.nbytes:
                start = array.__array_interface__["data"][0]
                spans.append((start, start + array.nbytes))
    inputs = interpreter.tensor(interpreter.get_input_details()[0]["index"])().__array_interface__["data"][0]
    return arena(sorted(spans), inputs)


def arena(spans: list[tuple[int, int]], inside: int) -> int:
    """Bytes from the first to the last of the spans that lie in one piece with the one at `inside`: others are weights in half
    precision that were widened once."""
    low = high = 0
    for start, end in spans:
        if start > high + GAP:
            if low <= inside < high:
                break
            low = start
        high = max(high, end)
    return high - low


def iree(path: str) -> int:
    text = generic_text(pathlib.Path(path).with_suffix(".mlir").read_text()).encode()
    command = [str(pathlib.Path(sys.executable).with_name("iree-compile")), "-", "--iree-hal-target-device=local",
               "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O2",
               "--compile-to=stream", "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip().splitlines()[0][-80:])
    stream = done.stdout.decode(errors="replace")
    constants = {name: int(value) for name, value in re.findall(r"(%\w+) = arith\.constant (\d+) : index", stream)}
    calls = "".join(part for part in re.split(r"(?m)^  (?=util\.)", stream) if part.startswith("util.func"))
    taken = re.findall(r"stream\.resource\.alloca .*?!stream\.resource<(?:transient|variable)>\{(%\w+)\}", calls)
    sizes = [constants[name] for name in taken if name in constants]
    if not sizes:
        raise RuntimeError("no transient memory of a known size")
    return sum(sizes)


def vela(path: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(pathlib.Path(sys.executable).with_name("vela")), path, "--accelerator-config", "ethos-u55-128",
                   "--output-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        (summary,) = pathlib.Path(folder).glob("*_summary_*.csv") or [None]
        if done.returncode or summary is None:
            raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1][-80:])
        head, values = (line.split(",") for line in summary.read_text().splitlines()[:2])
        used = int(float(dict(zip(head, values))["sram_memory_used"]) * 1024)
    if not used:
        raise RuntimeError("no operator of the model runs on the accelerator")
    return used


PEERS: dict[str, Callable[[str], int]] = {"tflite-micro": tflite_micro, "litert": litert, "iree": iree, "vela": vela}


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """What native code prints meanwhile."""
    text: list[str] = []
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            yield text
        finally:
            for number, old in zip((1, 2), kept):
                os.dup2(old, number)
                os.close(old)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))


def peer(name: str, model: pathlib.Path) -> int | str:
    """A peer's bytes, or why there are none."""
    command = [str(python("peers")), __file__, "--peer", name, str(model)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    try:
        answer = json.loads(lines[-1])
    except (IndexError, ValueError):
        return f"ended with status {done.returncode}"
    return answer if isinstance(answer, int) else str(answer)


def asked(name: str, model: str) -> int | str:
    try:
        return PEERS[name](model)
    except ImportError as error:
        return f"not installed: {error.name}"
    except Exception as error:  # a peer may fail in any way
        return f"{type(error).__name__}: {str(error).splitlines()[0][:60] if str(error) else ''}"


# ---- tosaic ----------------------------------------------------------------------------------------------------------
def own(model: pathlib.Path, rows: str, target: str | None) -> tuple[int, int, float]:
    """Bytes with inputs and outputs in the workspace, those live at once, seconds of planning."""
    import tosaic
    from tosaic import CompileOptions, Memory
    from tosaic.lowering.target.presets import target as named
    entry = next(iter(tosaic.load(model.with_suffix(".mlir")).entries.values()))
    open_ = {v.name: v.tensor for v in entry.trace().function.arguments if not v.tensor.is_static}
    if open_:  # an open extent is the batch
        entry = entry.specialize({name: tuple(n or 1 for n in type.shape) for name, type in open_.items()})
    options = CompileOptions(named(target) if target else None, rows=rows,  # type: ignore[arg-type]
                             memory=Memory(workspace_io=True))
    lowered = entry.trace().lower(options)
    return lowered.plan.size_bytes, lowered.plan.live_bytes, lowered.seconds["plan"]


DEFAULT = ("okay_nabu", "hey_jarvis", "face_detection_front", "face_landmark", "mobilenet_v2_f32", "mobilenet_v2_i8")


def models(given: list[str], folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The models' files, each with its TOSA text beside it."""
    from peers.models import converted, file, make
    named = [name for name in given or DEFAULT if not name.endswith(".tflite")]
    make(named)
    for name in given or DEFAULT:
        if name in named:
            yield file(name, "tflite")
            continue
        path = folder / pathlib.Path(name).name
        path.write_bytes(pathlib.Path(name).read_bytes())
        path.with_suffix(".mlir").write_text(converted(path))
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="files, or names of the comparison's models")
    parser.add_argument("--target", help="of tosaic (default: this machine)")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(asked(options.peer, options.models[0])))
        return
    missing = ensure("peers", PEERS)
    with tempfile.TemporaryDirectory() as folder:
        for model in models(options.models, pathlib.Path(folder)):
            print(model.stem, flush=True)
            best: int | None = None
            for name in PEERS:
                start = time.perf_counter()
                found = missing.get(name) or peer(name, model)
                best = min(best or found, found) if isinstance(found, int) and found else best
                print(f"  {name:<22}{found if isinstance(found, str) else f'{found:>12,}'}"
                      f"  ({time.perf_counter() - start:.1f} s)", flush=True)
            for rows in ("cache", "memory"):
                size, bound, seconds = own(model, rows, options.target)
                ratio = f", {size / best:.2f} of the best peer's" if best else ""
                print(f"  tosaic, rows: {rows:<8}{size:>12,}  live at once {bound:,}{ratio}; planned in {seconds * 1e3:.0f} ms",
                      flush=True)


if __name__ == "__main__":
    main()
