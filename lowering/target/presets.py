"""The lookup of a machine by its name: the one that this process runs on, a row of the tables (`machines`), or a processor that
only LLVM knows (`processors`). The abilities of vectors and matrix units follow from LLVM's feature bits (`features`).
"""
from __future__ import annotations

import difflib
import functools
import pathlib
from dataclasses import replace

from ...runtime.errors import TypeProblem, ValueProblem, class_of
from ...runtime.public_names import public
from ...runtime.tiles import may_use_tiles
from .boards import BY_ANY_NAME
from .features import check_names, enabled, matrix_unit, merged
from .machines import MACHINES, NEON, arm64, microcontroller, riscv64, x86
from .target import Target

PRESETS = {name: machine.target for name, machine in MACHINES.items()}
"""The machines of the tables."""
AMD = "znver"
"""Prefix of LLVM's names of AMD's processors."""


@public("tosaic.target")
def target(name: str = "host", cpu: str | None = None, features: str = "") -> Target:
    """Return a machine by its name: "host", or a processor, chip or board of `tosaic targets`. `cpu` is a processor of its
    family, by one of these names or by LLVM's, whose features count then (without a name, any processor), and `features` are
    added ("+dsp,-fp64"). The features decide which vectors and dot products are used; the processor decides the code that LLVM
    makes of them. The matrix unit (AMX) is used on the host only, if the system lets this process use it; no preset has one.
    Raises Problem for names that are not known."""
    base = host() if name == "host" else named(name)
    if cpu:
        base = of_processor(base, cpu, name)
    return specific(base, features.replace(" ", "")) if features else base


def named(name: str) -> Target:
    """Return a machine of the tables; names are case-insensitive."""
    if not isinstance(name, str):
        raise TypeProblem(f"a target is known by its name, not by {class_of(name)}", kind="option",
                          help="tosaic.target(\"cortex-m4\"); tosaic targets lists all")
    found = BY_ANY_NAME.get(name.lower())
    if found is None:
        raise ValueProblem(f"there is no target {name!r}", kind="option", help=similar(name))
    return found.target


def similar(name: str) -> str:
    """Return advice for an unknown name: similar names, and the command that lists all."""
    near = difflib.get_close_matches(name.lower(), ["host", *BY_ANY_NAME], 4, 0.6)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{meant}tosaic targets lists all"


def of_processor(base: Target, cpu: str, name: str) -> Target:
    """Return the machine with a processor of the family of `name`, unless that is the host."""
    if cpu == base.cpu:
        return base
    row = BY_ANY_NAME.get(cpu.lower())
    if row is None and not base.has_object_code:
        raise ValueProblem(f"{name} has no other processors", kind="option", help=similar(cpu))
    if row is None:
        from .processors import described_processors
        found = list(described_processors(cpu))
    else:
        found = [row.target]
    same = [t for t in found if t.architecture == base.architecture and t.has_int64 == base.has_int64]
    if same:
        return with_caches(same[0], base)
    if not found:
        raise ValueProblem(f"there is no processor {cpu!r}, and LLVM knows none", kind="option", help=similar(cpu))
    if name != "host":
        bits = 64 if base.has_int64 else 32
        raise ValueProblem(f"{cpu} is no processor of {name}'s family ({base.architecture}, {bits} bits)", kind="option",
                           help=f"--cpu {cpu} without --target is enough")
    return found[0]


def with_caches(found: Target, base: Target) -> Target:
    """Return a machine with the caches of another one, if that is x86: those of the host are known."""
    if base.architecture != "x86":
        return found
    return replace(found, l1_bytes=base.l1_bytes, block_bytes=base.block_bytes, l2_bytes=base.l2_bytes)


def specific(base: Target, features: str) -> Target:
    """Return the machine with more or fewer features."""
    changed = merged(base.features, features)
    if not base.has_object_code:
        raise ValueProblem(f"{base.cpu} takes no features", kind="option",
                           help="its code is C source, and the C compiler chooses")
    check_names(base.triple, base.cpu, changed)
    if base.architecture == "x86":
        unit = matrix_unit(enabled(changed))
        return replace(with_caches(x86(base.triple, base.cpu, changed), base),
                       matrix_unit=tuple(t for t in base.matrix_unit if t in unit))
    if not base.has_cache:
        return microcontroller(base.triple, base.cpu, changed)
    if base.architecture == "aarch64":
        plain = arm64(base.triple, base.cpu, changed)
    else:
        plain = riscv64(base.triple, base.cpu, changed)
    return replace(plain, l1_bytes=base.l1_bytes, block_bytes=base.block_bytes)


@functools.cache
def host() -> Target:
    """Return the machine of this process, from its feature bits and cache sizes.

    The number of rows computed at a time, and so the memory that a program needs, follows from the described second-level
    cache, not from this one's: with 2 MB instead of 1 MB MobileNetV2 int8 needs 803 KB instead of 326 KB, and takes as long.
    """
    import llvmlite.binding as llvm
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot ask this operating system
        features = ""
    found = described(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    if found.cpu.startswith(AMD):
        found = replace(found, costs=replace(found.costs, shared_cache_bytes=data_cache(3)))
    return replace(found, l1_bytes=data_cache(1) or found.l1_bytes, block_bytes=data_cache(2) // 2 or found.block_bytes,
                   matrix_unit=matrix_unit(found.enabled) if may_use_tiles() else ())


def check_runs_here(target: Target | None) -> None:
    """Raise a Problem if this process cannot run code for a target: the first instruction that the processor lacks would end
    it. The features count, not the names of the processors."""
    if target is None:
        return
    here = host()
    lacking = sorted(target.enabled - here.enabled)
    if target.architecture == here.architecture and target.has_int64 == here.has_int64 and not lacking:
        return
    why = f"this processor has no {', '.join(lacking)}" if target.architecture == here.architecture and lacking else (
        f"this is {here.triple}")
    raise ValueProblem(f"code for {target.triple}, {target.cpu}, cannot run in this process: {why}", kind="option",
                       help="lower it and save it for that machine; without a target, code is for this one")


def described(triple: str, cpu: str, features: str) -> Target:
    """Return the machine that LLVM describes so."""
    plain = Target(triple, cpu, features)
    match plain.architecture:
        case "x86":
            return x86(triple, cpu, features)
        case "aarch64":
            known = BY_ANY_NAME.get(cpu)  # where the system does not say what the processor has
            return arm64(triple, cpu, features or (known.target.features if known else NEON))
    return replace(plain, vector_bytes=1)


def data_cache(level: int) -> int:
    """Return the bytes of this processor's data cache of a level, as Linux reports it; 0 if it does not."""
    for folder in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            found, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if found == str(level) and kind != "Instruction" and size[:-1].isdigit() and size[-1] == "K":
            return int(size[:-1]) << 10
    return 0
