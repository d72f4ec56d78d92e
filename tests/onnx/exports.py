"""`python tests/onnx/exports.py [NAME ...]`: networks that PyTorch exports, by both of its exporters at several opsets, and as
`onnxruntime.quantization` makes integers of them. Compiled and interpreted, beside ONNX Runtime: right, wrong or refused, and
what loading, compiling and a call take.

A network is exported, and a file is run, in a process of its own. Right is within a ten-thousandth of the range of each
output; of a network with scales that are known before, within a step of it; integers are equal. What is compiled is held
against ONNX Runtime with its rewrites, which multiply integers; what is interpreted, and weights by block in pairs, against
that without, which does what the file says. Those two are steps apart where roundings add up: a network that is farther from
one of them is judged by its groups between integers, each on what ONNX Runtime gives for those before it, and called `grouped`
where each is within a step. PyTorch is the judge of a file that ONNX Runtime refuses.

An exporter that cannot write the opset writes the one that the table shows; what is the same file twice is run once.
`--quantized` runs the quantized files alone, `--floats` the others. The exit status is 1 where something is wrong.
"""
from __future__ import annotations

import argparse
import functools
import json
import logging
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

MOST = 1e-4
"""Of the range of an output."""
STEP = 1.01
"""A step of a scale, and what float32 adds to it."""
CALLS = 5
OPSETS = {"torchscript": (11, 13, 17, 20, 23), "dynamo": (11, 17, 23, 26)}
"""What each exporter is asked for. The older one is frozen at 20, and lets 23 pass."""
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Export:
    """A file of a network: the exporter, the opset that was asked for, the one in the file, and the way of quantizing; or why
    there is none."""
    network: str
    way: str
    asked: int
    opset: int = 0
    path: str = ""
    failed: str = ""
    quantized: str = ""


# ---- exports -------------------------------------------------------------------------------------------------------------
def written(network: Any, way: str, opset: int, path: Path) -> int:
    """Write a network as a file, by one of PyTorch's exporters; the opset of the file."""
    import onnx
    import torch
    names = list(network.calls[0])
    given = tuple(torch.from_numpy(a) for a in network.calls[0].values())
    names_of = {"input_names": names, "output_names": list(network.outputs)}
    if way == "torchscript":
        torch.onnx.export(network.drawn(), given, path, opset_version=opset, dynamo=False, **names_of,
                          dynamic_axes={n: dict(d) for n, d in network.open.items()})
    else:
        torch.onnx.export(program_of(network), (), path, opset_version=opset, dynamo=True, **names_of, external_data=False,
                          verbose=False)
    return next(int(o.version) for o in onnx.load(path).opset_import if not o.domain)


@functools.cache
def program_of(network: Any) -> Any:
    """A network as `torch.export` sees it, with the extents open that are."""
    import torch
    axes = [network.open.get(n, {}) for n in network.calls[0]]
    extents = {e: torch.export.Dim.DYNAMIC if e == "batch" else torch.export.Dim.AUTO for d in axes for e in d.values()}
    given = tuple(torch.from_numpy(a) for a in network.calls[0].values())
    shapes = tuple({a: extents[e] for a, e in d.items()} for d in axes)
    return torch.export.export(network.drawn(), given, dynamic_shapes=shapes, strict=False)


def exporting(name: str, folder: Path) -> Iterator[Export]:
    """The files of a network. An exporter that cannot write an opset writes another one, which is listed once."""
    from exported_networks import NETWORKS
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    known: set[tuple[str, int]] = set()
    for way in NETWORKS[name].exporters:
        for opset in OPSETS[way]:
            path = folder / f"{name}-{way}-{opset}.onnx"
            try:
                found = Export(name, way, opset, written(NETWORKS[name], way, opset, path), str(path))
            except Exception as error:  # whatever an exporter ends in
                found = Export(name, way, opset, failed=first_line(error))
            if (way, found.opset or opset) not in known:
                yield found
            known.add((way, found.opset or opset))


def quantizing(name: str, folder: Path) -> Iterator[Export]:
    """The files of a network in all ways of quantizing."""
    from exported_networks import NETWORKS
    from quantized_exports import LEAST_OPSET, WAYS, quantized
    network = NETWORKS[name]
    for each in exports_of(name, folder, ""):
        for way in WAYS:
            if each.failed or each.opset < LEAST_OPSET.get(way, 0) or not network.is_quantized(each.way, each.opset):
                continue
            path = Path(each.path).with_name(f"{Path(each.path).stem}-{way.replace(' ', '-')}.onnx")
            try:
                quantized(Path(each.path), path, way, network.calls)
                yield replace(each, quantized=way, path=str(path))
            except Exception as error:  # whatever the tools end in
                yield replace(each, quantized=way, path="", failed=first_line(error))


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def exports_of(name: str, folder: Path, kind: str) -> list[Export]:
    """The files of a network in a folder, exported there once; of kind `-quantized` those of integers."""
    index = folder / f"{name}{kind}.json"
    if not index.exists():
        lines = child("--quantizing" if kind else "--exporting", name, str(folder))
        made = [line if "ended" not in line else {"network": name, "way": "?", "asked": 0, "failed": line["ended"]}
                for line in lines]
        index.write_text(json.dumps(made))
    return [Export(**line) for line in json.loads(index.read_text())]


# ---- engines -------------------------------------------------------------------------------------------------------------
def runtime_session(path: str, rewrites: bool = True) -> Any:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    if not rewrites:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def results(run: Any, calls: Sequence[Arrays], names: Sequence[str], state: Mapping[str, str]) -> list[list[np.ndarray]]:
    """Of all calls, with what one hands on to the next."""
    handed: Arrays = {}
    found = []
    for inputs in calls:
        found.append([np.asarray(r) for r in run(inputs | handed)])
        handed = {state[n]: r for n, r in zip(names, found[-1]) if n in state}
    return found


def timed(run: Any, inputs: Arrays) -> float:
    """The quickest of a few calls, in milliseconds."""
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def padded_form(path: str) -> str:
    """The file with NonMaxSuppression of the domain `tosaic`, and its count as an output."""
    import onnx
    from onnx import helper
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "NonMaxSuppression":
            node.domain = "tosaic"
            node.output.append("count")
    model.opset_import.append(helper.make_opsetid("tosaic", 1))
    model.graph.output.append(helper.make_tensor_value_info("count", onnx.TensorProto.INT64, None))
    for output in list(model.graph.output)[:1]:
        output.type.tensor_type.ClearField("shape")
    for info in list(model.graph.value_info):
        model.graph.value_info.remove(info)
    found = path.replace(".onnx", "-padded.onnx")
    onnx.save(model, found)
    return found


def apart(found: Sequence[Sequence[np.ndarray]], right: Sequence[Sequence[np.ndarray]], padded: bool = False,
          steps: Sequence[float | None] = ()) -> float:
    """The largest difference of floats over all calls, as a part of their output's range, or in steps: the output's own, or a
    255th of its range; infinite where something else differs."""
    worst = 0.0
    for column, wanted, step in zip_longest(zip(*found, strict=True), zip(*right, strict=True), steps):
        if padded:
            column = tuple(c[:len(w)] if (c[len(w):] == -1).all() else c for c, w in zip(column, wanted))
        if any((c.shape, c.dtype) != (w.shape, w.dtype) for c, w in zip(column, wanted)):
            return float("inf")
        flat, truth = (np.concatenate([np.reshape(a, -1) for a in side]) for side in (column, wanted))
        if truth.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(flat, truth) else float("inf"))
        elif truth.size and not np.array_equal(flat, truth):
            span = step or (float(np.ptp(truth)) or float(np.abs(truth).max()) or 1e-30) / (255 if steps else 1)
            worst = max(worst, float(np.abs(flat.astype(np.float64) - truth).max()) / span)
    return worst if worst == worst else float("inf")


def running(each: Export) -> dict[str, Any]:
    """One file on ONNX Runtime and on both engines."""
    from exported_networks import NETWORKS
    from quantized_exports import PAIRS, STATIC, last_step
    from quantized_groups import worst_group
    network, found, path = NETWORKS[each.network], {}, each.path
    import tosaic
    from tosaic.lowering.dialects.onnx.interpret import interpret
    count = network.judged if each.quantized else len(network.outputs)
    steps = [last_step(path, n) for n in network.outputs[:count]] if each.quantized in STATIC else []

    def called(run: Any) -> list[list[np.ndarray]]:
        return results(run, network.calls, network.outputs, network.state)

    def difference(found: list[list[np.ndarray]], right: list[list[np.ndarray]]) -> float:
        return apart([call[:count] for call in found], [call[:count] for call in right], network.padded, steps)

    try:
        session, plain = runtime_session(path), runtime_session(path, rewrites=not each.quantized)
        right, truth = (called(lambda i: s.run(None, taken(s, i))) for s in (session, plain))
        found["runtime_call"] = timed(lambda i: session.run(None, taken(session, i)), network.calls[-1])
    except Exception as error:  # ONNX Runtime's own
        found["runtime_failed"] = first_line(error)
        if each.quantized:
            return found
        right = truth = torch_results(network)
    found["runtime_itself"] = difference(right, truth)
    own_path = padded_form(path) if network.padded else path
    try:
        begin = time.perf_counter()
        own = tosaic.onnx.InferenceSession(own_path)
        found["load"] = 1e3 * (time.perf_counter() - begin)
        begin = time.perf_counter()
        own.run(None, taken(own, network.calls[0]))
        found["compile"] = time.perf_counter() - begin
        compiled = called(lambda i: own.run(None, taken(own, i)))
        found["call"] = timed(lambda i: own.run(None, taken(own, i)), network.calls[-1])
        module = tosaic.from_onnx(own_path).module
        names = [v.name for v in module.function("main").arguments]
        interpreted = called(lambda i: interpret(module, "main", [i[n] for n in names]))
    except tosaic.Problem as problem:
        return found | {"refused": str(problem).strip()}
    found |= {"compiled": difference(compiled, truth if each.quantized == "block pairs" else right),
              "interpreted": difference(interpreted, truth)}
    if each.quantized in PAIRS and max(found["compiled"], found["interpreted"]) > STEP:
        with tempfile.TemporaryDirectory() as folder:
            found["groups"] = worst_group(path, network.calls, Path(folder))
    return found


def torch_results(network: Any) -> list[list[np.ndarray]]:
    """What PyTorch gives for the calls."""
    import torch
    model, names = network.drawn(), list(network.calls[0])

    def run(inputs: Arrays) -> list[np.ndarray]:
        with torch.no_grad():
            found = model(*(torch.from_numpy(np.asarray(inputs[n])) for n in names))
        return [t.numpy() for t in (found if isinstance(found, tuple) else (found,))]
    return results(run, network.calls, network.outputs, network.state)


def taken(session: Any, inputs: Arrays) -> Arrays:
    """The inputs that the file has: an exporter drops what the network does not look at."""
    names = [i.name for i in session.get_inputs()]
    return {n: inputs[n] for n in names}


# ---- processes and the table ---------------------------------------------------------------------------------------------
def child(*arguments: str) -> list[dict[str, Any]]:
    """What this program prints as another process, a line of JSON each."""
    with tempfile.TemporaryDirectory() as folder:  # onnxruntime.quantization leaves files where it is called
        result = subprocess.run([sys.executable, str(Path(__file__).resolve()), *arguments], capture_output=True, text=True,
                                cwd=folder)
    lines = [json.loads(line[5:]) for line in result.stdout.splitlines() if line.startswith("json ")]
    if result.returncode:
        errors = [line for line in result.stderr.strip().splitlines() if "rror" in line] or ["it ends its process"]
        lines.append({"ended": errors[-1][:300]})
    return lines


def verdict_of(each: Export, found: Mapping[str, Any]) -> str:
    from quantized_exports import STATIC
    most = STEP if each.quantized in STATIC else MOST
    worst = max(found.get("compiled", float("inf")), found.get("interpreted", float("inf")))
    if worst <= most:
        return "right"
    if "runtime_failed" in found:
        return "no judge"
    if "refused" in found:
        return "refused"
    return "grouped" if found.get("groups", STEP) < STEP else "wrong"


def row_of(each: Export, found: Mapping[str, Any]) -> str:
    head = f"{each.network:18}{each.opset or each.asked:>4}  {each.way:13}{each.quantized:13}"
    if each.failed:
        return f"{head}not exported: {each.failed[:110]}"
    verdict = verdict_of(each, found)
    if "compiled" not in found or verdict == "no judge":
        reason = found.get("runtime_failed") or found.get("refused") or found.get("ended", "")
        return f"{head}{verdict}: {' '.join(str(reason).split())[:400]}"
    itself = f"{found['runtime_itself']:10.1e}" if each.quantized else f"{'':10}"
    return (f"{head}{verdict:8}{found['compiled']:9.1e}{found['interpreted']:10.1e}{itself}{found['load']:8.0f}"
            f"{found['compile']:9.2f}{found['call']:9.2f}{found.get('runtime_call', math.nan):9.2f}")


def shown(name: str, folder: Path, kinds: Sequence[str]) -> list[str]:
    """Prints the rows of a network; their verdicts."""
    verdicts = []
    for each in [each for kind in kinds for each in exports_of(name, folder, kind)]:
        found = (child("--running", json.dumps(asdict(each))) or [{}])[-1] if each.path else {}
        print(row_of(each, found), flush=True)
        verdicts.append("not exported" if each.failed else verdict_of(each, found))
    return verdicts


def main() -> int:
    match sys.argv[1:]:
        case ["--exporting" | "--quantizing" as task, name, folder]:
            for each in (exporting if task == "--exporting" else quantizing)(name, Path(folder)):
                print("json", json.dumps(asdict(each)), flush=True)
            return 0
        case ["--running", text]:
            print("json", json.dumps(running(Export(**json.loads(text)))))
            return 0
    from exported_networks import NETWORKS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--folder", help="where the files are written, and found the next time")
    parser.add_argument("--jobs", type=int, default=1)
    kinds = parser.add_mutually_exclusive_group()
    for name, kind, text in ("floats", "", "the exported files alone"), ("quantized", "-quantized", "the quantized ones alone"):
        kinds.add_argument(f"--{name}", dest="kinds", action="store_const", const=(kind,), help=text)
    parser.set_defaults(kinds=("", "-quantized"))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    print(f"{'network':18}opset {'by':13}{'quantized':13}verdict compiled interpreted itself load ms  compile s  call ms  "
          "ONNX Runtime's", flush=True)
    with tempfile.TemporaryDirectory() as own, ThreadPoolExecutor(options.jobs) as pool:
        folder = Path(options.folder or own)
        folder.mkdir(exist_ok=True, parents=True)
        for future in as_completed([pool.submit(shown, n, folder, options.kinds) for n in options.names or NETWORKS]):
            counts.update(future.result())
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
