"""The engines that run ONNX files beside each other (`files.py`): each loads a model, makes code for a first call, says what
both took, and gives what calls it and the names of its results. All run on one thread.
"""
from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]
Measured = dict[str, float]
"""Seconds: `load`, and `compile`, which is the first call of what compiles."""
Engine = Callable[[Path, Arrays, Measured], tuple[Run, Sequence[str]]]
IREE_FLAGS = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
              "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")


def tosaic_run(path: Path, first: Arrays, measured: Measured) -> tuple[Run, Sequence[str]]:
    import tosaic
    begin = time.perf_counter()
    session = tosaic.onnx.InferenceSession(str(path))
    measured["load"] = time.perf_counter() - begin
    begin = time.perf_counter()
    session.run(None, first)
    measured["compile"] = time.perf_counter() - begin
    return lambda inputs: session.run(None, inputs), [o.name for o in session.get_outputs()]


def interpreted_run(path: Path, first: Arrays, measured: Measured) -> tuple[Run, Sequence[str]]:
    """The model's own operators, by their references."""
    import tosaic
    from tosaic.lowering.dialects.onnx.interpret import interpret
    module = tosaic.from_onnx(path).module
    names = [v.name for v in module.function("main").arguments]
    outputs = [o.name for o in tosaic.onnx.InferenceSession(str(path)).get_outputs()]
    return lambda inputs: list(interpret(module, "main", [inputs[n] for n in names])), outputs


def onnxruntime_run(path: Path, first: Arrays, measured: Measured) -> tuple[Run, Sequence[str]]:
    import onnxruntime
    begin = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    measured["load"] = time.perf_counter() - begin
    return lambda inputs: session.run(None, inputs), [o.name for o in session.get_outputs()]


def iree_run(path: Path, first: Arrays, measured: Measured) -> tuple[Run, Sequence[str]]:
    """IREE's own importer and compiler, for the shapes of the first call, then its runtime. `load` is importing and compiling,
    in processes of their own."""
    import onnx
    from iree import runtime
    begin = time.perf_counter()
    model = onnx.load(path)
    weights = {w.name for w in model.graph.initializer}
    named = [v.name for v in model.graph.input if v.name not in weights]
    close_shapes(model, first)
    fixed = Path(os.environ["TOSAIC_CACHE"], "fixed.onnx")
    onnx.save(model, fixed)
    text, code = fixed.with_suffix(".mlir"), fixed.with_suffix(".vmfb")
    version = str(max(17, *(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))))
    program([sys.executable, "-m", "iree.compiler.tools.import_onnx", fixed, "-o", text, "--opset-version", version])
    program([Path(sys.executable).with_name("iree-compile"), text, *IREE_FLAGS, "-o", code])
    config = runtime.Config("local-sync")
    module = runtime.VmModule.copy_buffer(config.vm_instance, code.read_bytes())
    bound = runtime.SystemContext(vm_modules=[module], config=config).modules[module.name]
    function = bound[next(name for name in module.function_names if not name.startswith("__") and not name.endswith("$async"))]
    measured["load"] = time.perf_counter() - begin

    def call(inputs: Arrays) -> list[np.ndarray]:
        found = function(*(inputs[name] for name in named))
        return [np.asarray(r) for r in (found if isinstance(found, (tuple, list)) else [found])]

    return call, [o.name for o in model.graph.output]


def close_shapes(model: object, first: Arrays) -> None:
    """Inputs have the shapes of a call."""
    for value in model.graph.input:  # type: ignore[attr-defined]
        if value.name in first:
            del value.type.tensor_type.shape.dim[:]
            for extent in first[value.name].shape:
                value.type.tensor_type.shape.dim.add().dim_value = extent


def program(command: Sequence[str | os.PathLike[str]]) -> None:
    """Run it; what it says of its error is the error here."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise RuntimeError("error: " + next((line for line in lines if "rror" in line), lines[-1])[-150:])


ENGINES: Mapping[str, Engine] = {"tosaic": tosaic_run, "interpreter": interpreted_run, "onnxruntime": onnxruntime_run,
                                 "iree": iree_run}
