"""The unit of the machine that bounds a case, at work alone, on as many threads as the peers: `peaks` through llvmlite."""
from __future__ import annotations

import ctypes
import platform
import sys
import time
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numpy as np

from ..peaks import Kernel, kernels
from ..task import Loaded, Refused, Task

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18
"""Linux on x86-64: a process asks once for AMX's tiles."""

ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'

Run = Callable[[int, int, int], None]


def features() -> set[str]:
    """What this machine can do; AMX where the system lets this process use it."""
    found = {name for name, on in llvm.get_host_cpu_features().items() if on}
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return found - {"amx-int8"}
    refused = ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) if "amx-int8" in found else 0
    return found - {"amx-int8"} if refused else found


def compiled(kernel: Kernel, on: Set[str]) -> tuple[Run, llvm.ExecutionEngine]:
    module = llvm.parse_assembly(f"{kernel.ir}\n{ATTRIBUTES}")
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=",".join(f"+{name}" for name in sorted(on)), jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address("run")
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address), engine


def arrays(kernel: Kernel) -> tuple[np.ndarray, int]:
    """Zeros, and an address in them at a multiple of 64."""
    data = np.zeros(kernel.bytes + 64, np.uint8)
    return data, -(-data.ctypes.data // 64) * 64


def prepared(kernel: Kernel, on: Set[str], threads: int) -> Loaded:
    """The kernel on all threads: a copy in equal parts, others each their own. A call is several copies, so that it is long
    beside what it costs to wake a thread."""
    run, engine = compiled(kernel, on)
    (source, a), (target, b) = arrays(kernel), arrays(kernel)
    others, repeats = ThreadPoolExecutor(max(1, threads - 1)), 4 if kernel.bytes > 4096 else 1
    share = kernel.bytes // threads if kernel.bytes > 4096 else 0
    count = kernel.iterations // threads if share else kernel.iterations
    spare = [arrays(kernel) for _ in range(threads)]

    def part(index: int) -> None:
        to = b + index * share if share else spare[index][1]
        for _ in range(repeats):
            run(a + index * share, to, count)

    def call() -> None:
        waiting = [others.submit(part, index) for index in range(1, threads)]
        part(0)
        for future in waiting:
            future.result()

    call()
    total = kernel.work * count * threads * repeats
    return Loaded(call, list, (engine, source, target, spare), total, kernel.unit)


def seconds(loaded: Loaded) -> float:
    start = time.perf_counter()
    loaded.call()
    return time.perf_counter() - start


def load(task: Task) -> Loaded:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    on = features()
    found = [prepared(kernel, on, task.threads) for kernel in kernels(task.bound, on)]
    if not found:
        raise Refused("no int8 unit that this program knows")
    return max(found, key=lambda loaded: loaded.work / min(seconds(loaded) for _ in range(5)))
