"""Which machines there are: the one that this process runs on, and the presets to compile for. What their vectors and matrix
units can do follows from LLVM's feature bits (`features`); rates, caches and costs are said here.
"""
from __future__ import annotations

import functools
import pathlib
from dataclasses import replace

from ...runtime.errors import Problem
from ...runtime.public_names import public
from ...runtime.tiles import may_use_tiles
from .features import SSE2, V3, V4, check_names, dot_product, enabled, has_masks, matrix_unit, merged, vector_bytes
from .target import Target

LINUX = "x86_64-unknown-linux-gnu"


def x86(triple: str, cpu: str, features: str) -> Target:
    """An x86 machine; what it can do is in `features`."""
    on = enabled(features)
    return Target(triple, cpu, features, vector_bytes=vector_bytes(on), vector_registers=32 if has_masks(on) else 16,
                  has_masked=has_masks(on), dot_product=dot_product(on))


def microcontroller(triple: str, cpu: str, features: str) -> Target:
    """One instruction at a time, no vectors, no cache worth blocking for."""
    return Target(triple, cpu, features, vector_bytes=1, vector_registers=24, fma_per_cycle=1, loads_per_cycle=1,
                  fma_latency=3, has_cache=False, l2_bytes=64 << 10, streaming_bytes=1 << 40)


PRESETS = {
    "x86-64": x86(LINUX, "x86-64", SSE2),
    "x86-64-v3": x86(LINUX, "x86-64-v3", V3),
    "x86-64-v4": x86(LINUX, "x86-64-v4", V4),
    "aarch64": Target("aarch64-unknown-linux-gnu", "generic", "+fp-armv8,+neon", vector_registers=32),
    "thumbv7em": microcontroller("thumbv7em-none-eabihf", "cortex-m4", "+vfp4d16sp"),
    "cortex-m7": microcontroller("thumbv7em-none-eabihf", "cortex-m7", "+vfp4d16,+fp-armv8d16,+fp64"),
    "riscv32": microcontroller("riscv32-unknown-elf", "generic-rv32", "+m,+a,+c,+f"),
    "riscv64": Target("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+c,+f,+d", vector_bytes=1, vector_registers=32),
}


@public("tosaic.target")
def target(name: str = "host", cpu: str | None = None, features: str = "") -> Target:
    """A machine by its name: "host", or one of the presets; `cpu` is another processor of its family, by LLVM's name, and
    `features` are added to the target's ("+dsp,-fp64"). What vectors and dot products are used follows from the features;
    the processor decides what LLVM makes of them. The matrix unit (AMX) is used on the host only, where the system lets this
    process use it; no preset has one. Raises Problem for names that are not known."""
    if name != "host" and name not in PRESETS:
        raise Problem(f"there is no target {name!r}", kind="option", help=f"one of host, {', '.join(PRESETS)}")
    found = host() if name == "host" else PRESETS[name]
    return specific(found, cpu or found.cpu, features.replace(" ", "")) if cpu or features else found


def specific(base: Target, cpu: str, features: str) -> Target:
    """The machine with another processor, and more or fewer features."""
    changed = merged(base.features, features)
    check_names(base.triple, cpu, changed)
    if base.architecture == "x86":
        unit = matrix_unit(enabled(changed))
        return replace(x86(base.triple, cpu, changed), l1_bytes=base.l1_bytes, block_bytes=base.block_bytes,
                       l2_bytes=base.l2_bytes, matrix_unit=tuple(t for t in base.matrix_unit if t in unit))
    return replace(base, cpu=cpu, features=changed)


@functools.cache
def host() -> Target:
    """The machine of this process, from its feature bits and cache sizes.

    How much is computed by rows, and so the memory that a program needs, follows from the described second-level cache, not
    from this one's: with 2 MB instead of 1 MB MobileNetV2 int8 needs 803 KB instead of 326 KB, and takes as long.
    """
    import llvmlite.binding as llvm
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot ask this operating system
        features = ""
    found = described(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return replace(found, l1_bytes=data_cache(1) or found.l1_bytes, block_bytes=data_cache(2) // 2 or found.block_bytes,
                   matrix_unit=matrix_unit(found.enabled) if may_use_tiles() else ())


def check_is_target(given: object) -> None:
    """A Problem where the name of a target is given for the target."""
    if isinstance(given, str):
        raise Problem(f"target is the text {given!r}, not a machine", kind="option",
                      help=f"tosaic.target({given!r}) gives one")


def check_runs_here(target: Target | None) -> None:
    """A Problem where this process cannot run code for a target: it would be ended by the first instruction that the processor
    lacks. What counts are the features, not what the processors are called."""
    check_is_target(target)
    if target is None:
        return
    here = host()
    lacking = sorted(target.enabled - here.enabled)
    if target.architecture == here.architecture and target.has_int64 == here.has_int64 and not lacking:
        return
    why = f"this processor has no {', '.join(lacking)}" if target.architecture == here.architecture and lacking else (
        f"this is {here.triple}")
    raise Problem(f"code for {target.triple}, {target.cpu}, cannot run in this process: {why}", kind="option",
                  help="lower it and save it for that machine; without a target, code is for this one")


def described(triple: str, cpu: str, features: str) -> Target:
    """The machine that LLVM describes so."""
    plain = Target(triple, cpu, features)
    match plain.architecture:
        case "x86":
            return x86(triple, cpu, features)
        case "aarch64":
            return replace(plain, vector_registers=32)
    return replace(plain, vector_bytes=1)


def data_cache(level: int) -> int:
    """Bytes of this processor's cache for data of a level, as Linux says; 0 where it does not."""
    for folder in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            found, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if found == str(level) and kind != "Instruction" and size[:-1].isdigit() and size[-1] == "K":
            return int(size[:-1]) << 10
    return 0
