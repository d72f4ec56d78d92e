"""The name of the GNU compiler for a machine, and its flags: the defaults of Makefiles and CMake's toolchain files, which users
may override."""
from __future__ import annotations

from ...lowering.target.machines import MACHINES
from ...lowering.target.presets import host
from ...lowering.target.target import Target
from ...runtime.records import dataclass

RISCV_LETTERS = "mafdcv"
"""Single-letter extensions, in the order of -march."""
RISCV_WORDS = ("zba", "zbb", "zbs")


@dataclass(frozen=True, slots=True)
class Compiler:
    """The `prefix` of a compiler's commands, its `flags`, and the system that programs run on: "" for this one, CMake's
    "Generic" for none, or the processor's with Linux."""
    prefix: str = ""
    flags: tuple[str, ...] = ()
    system: str = ""
    processor: str = ""

    @property
    def is_cross(self) -> bool:
        return bool(self.system)


def compiler_of(target: Target) -> Compiler:
    """Return the compiler for a machine; the system's own for this machine and for C source that is for any."""
    match target.architecture:
        case "arm":
            abi = "hard" if target.float_unit else "soft"
            return bare("arm-none-eabi-", "arm", f"-mcpu={arm_name(target)}", "-mthumb", f"-mfloat-abi={abi}")
        case "riscv" if not target.has_int64:
            abi = "ilp32f" if "f" in target.enabled else "ilp32"
            return bare("riscv64-unknown-elf-", "riscv32", f"-march={riscv_name(target, 32)}", f"-mabi={abi}")
        case "xtensa":
            return bare(f"{'-'.join(target.triple.split('-')[:2])}-elf-", "xtensa", "-mlongcalls")
        case "avr":
            return bare("avr-", "avr", f"-mmcu={target.cpu}")
        case "riscv" if not is_here(target):
            return Compiler("riscv64-linux-gnu-", (f"-march={riscv_name(target, 64)}",), "Linux", "riscv64")
        case "aarch64" if not is_here(target):
            flags = () if target.cpu == "generic" else (f"-mcpu={target.cpu}",)
            return Compiler("aarch64-linux-gnu-", flags, "Linux", "aarch64")
        case "x86" if target.cpu.startswith("x86-64"):
            return Compiler(flags=(f"-march={target.cpu}",))
    return Compiler()


def bare(prefix: str, processor: str, *flags: str) -> Compiler:
    return Compiler(prefix, flags, "Generic", processor)


def is_here(target: Target) -> bool:
    """True if the machine is of the same family as this one."""
    return target.architecture == host().architecture and target.has_int64 == host().has_int64


def arm_name(target: Target) -> str:
    """Return the processor for -mcpu: names of machines are valid there, including the features that a processor lacks."""
    return next((m.name for m in MACHINES.values() if m.target == target), target.cpu)


def riscv_name(target: Target, bits: int) -> str:
    """Return the instruction set for -march."""
    words = [word for word in RISCV_WORDS if word in target.enabled]
    return "_".join([f"rv{bits}i{''.join(c for c in RISCV_LETTERS if c in target.enabled)}", *words])
