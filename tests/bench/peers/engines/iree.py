"""IREE on the TOSA text: `iree-compile` for this machine, then its runtime's call through Python's binding, buffers bound. One
thread runs the driver `local-sync`, more run `local-task`. What was compiled is kept for a later process."""
from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import iree.runtime as runtime
import numpy as np

from ..task import Loaded, Refused, Task
from ..tosa_text import generic_text

FLAGS = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
         "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"]


def compiled(task: Task) -> bytes:
    """The module of a model."""
    flags, source = [*FLAGS, *filter(None, [task.option])], Path(task.file("mlir")).read_text()
    kept = Path(task.kept, f"iree-{hashlib.sha256(repr((flags, source)).encode()).hexdigest()[:20]}.vmfb")
    if not kept.exists():
        command = [str(Path(sys.executable).with_name("iree-compile")), "-", *flags, "-o", str(kept)]
        done = subprocess.run(command, input=generic_text(source).encode(), capture_output=True)
        if done.returncode:
            kept.unlink(missing_ok=True)
            lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with status {done.returncode}"]
            raise Refused(next((line for line in lines if "error" in line), lines[0])[-100:])
    return kept.read_bytes()


def load(task: Task) -> Loaded:
    code = compiled(task)
    if task.threads > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={task.threads}")
    config = runtime.Config("local-sync" if task.threads == 1 else "local-task")
    module = runtime.VmModule.copy_buffer(config.vm_instance, code)
    context = runtime.VmContext(config.vm_instance, [config.default_vm_modules[0], module])
    main, inputs = module.lookup_function("main"), runtime.VmVariantList(len(task.inputs()))
    for array in task.inputs():
        inputs.push_ref(runtime.asdevicearray(config.device, np.ascontiguousarray(array))._buffer_view)
    last: list[runtime.VmVariantList] = []

    def call() -> None:
        results = runtime.VmVariantList(4)
        context.invoke(main, inputs, results)
        last[:] = [results]

    def outputs() -> list[np.ndarray]:
        views = [last[0].get_as_object(i, runtime.HalBufferView) for i in range(len(last[0]))]
        return [np.array(runtime.DeviceArray(config.device, view, implicit_host_transfer=True)) for view in views]

    call()
    return Loaded(call, outputs)
