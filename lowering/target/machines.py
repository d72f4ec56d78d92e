"""The machines that tosaic knows by name, as tables: one row is one machine. Triple, features, float unit and the inputs of
cost models follow from the row; `presets.target` finds a machine, and `tosaic targets` lists them.

Features are LLVM's names, and complete where this compiler decides by them: `thumb2` has 64-bit arithmetic without a library,
`hwdiv` divides, `vfp4d16sp` and `fp64` are fused units of f32 and f64, `strict-align` says that a misaligned access traps. A
name such as cortex-m4+nofp is one of gcc's `-mcpu`. Arm's triples all say eabi: functions of an object pass no floats, so one
object serves each calling convention, and the library functions that it calls for arithmetic take floats as integers.
"""
from __future__ import annotations

from dataclasses import replace

from ...runtime.records import dataclass
from .costs import COSTS
from .features import SSE2, V2, V3, V4, arm64_dot_product, dot_product, enabled, has_masks, vector_bits, vector_bytes
from .target import SCALAR_REGISTERS, Target

LINUX, ARM64_LINUX, APPLE = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-darwin"


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine. `boards` holds the chips and boards that have the processor; each is a name of the machine, too."""
    name: str
    core: str
    instructions: str
    target: Target
    boards: tuple[str, ...] = ()

    @property
    def float_unit(self) -> str:
        """Float types that the machine computes in instructions."""
        return " and ".join(dtype.replace("float", "f") for dtype in self.target.float_unit) or "none"

    @property
    def vectors(self) -> str:
        """Vector registers of the machine, as far as code uses them."""
        size = self.target.vector_bytes
        return "none" if size == 1 else f"{size} bytes{', masks' * self.target.has_masked}"


COMPILED_ONCE_COSTS = replace(COSTS, window_line_fraction=0.1)
"""Costs of machines whose code is compiled once, on another machine: it may be long. Counted on RISC-V: windows took half as
many instructions."""
WIDE_COSTS = replace(COSTS, window_line_fraction=0.1, tile_line_fraction=0.1)
"""Costs of x86 machines with masks, whose vectors leave few cycles to small networks. Measured on an AMD EPYC: face networks
take 4 to 5 % less than with lines at their full price, MobileNetV2 of bytes 1 %, and compiling takes 2 to 5 % more."""
CROWDED_COSTS = replace(COSTS, spare_registers=2)
"""Costs of x86 machines without masks, whose products take no element of a row from memory."""

REGISTER_GROUP = 4
"""Number of RISC-V vector registers in a group (LMUL). Counted: with 2, layers of MLPerf Tiny took 1.3 to 1.7 times as many
instructions; with 8 the seven groups beside the mask are too few for sums and their processing."""

# ---- kinds -----------------------------------------------------------------------------------------------------------
def x86(triple: str, cpu: str, features: str) -> Target:
    """Return an x86 machine with these `features`."""
    on = enabled(features)
    plain = Target(triple, cpu, features, vector_bytes=vector_bytes(on), dot_product=dot_product(on),
                   packed_vector_bytes=16)
    if has_masks(on):
        return replace(plain, vector_registers=32, has_masked=True, costs=WIDE_COSTS)
    return replace(plain, vector_registers=16, costs=CROWDED_COSTS)


def microcontroller(triple: str, cpu: str, features: str) -> Target:
    """Return a microcontroller: one instruction at a time, no cache worth blocking for; vectors of 16 bytes if it has
    Helium."""
    plain = Target(triple, cpu, features, vector_bytes=1, vector_registers=SCALAR_REGISTERS, fma_per_cycle=1, loads_per_cycle=1,
                   fma_latency=3, has_cache=False, l2_bytes=64 << 10, streaming_bytes=1 << 40)
    if "mve.fp" not in enabled(features):
        return plain
    return replace(plain, vector_bytes=16, vector_registers=8, widest_element=4, has_float_vectors=False, has_masked=True,
                   rounds_words=True, costs=COMPILED_ONCE_COSTS)


def arm64(triple: str, cpu: str, features: str) -> Target:
    """Return a 64-bit Arm processor: vectors of 16 bytes, and the properties of its features."""
    on = enabled(features)
    return Target(triple, cpu, features, vector_registers=32, has_lane_products=True, rounds_words=True,
                  packed_vector_bytes=16, dot_product=arm64_dot_product(on),
                  has_widening_products=arm64_dot_product(on) is None, has_byte_pairs={"neon", "dotprod", "i8mm"} <= on)


def riscv64(triple: str, cpu: str, features: str) -> Target:
    """Return a 64-bit RISC-V processor with caches and an operating system; with vectors if a feature gives their length: a
    vector is a group of its registers."""
    size = vector_bits(enabled(features)) // 8
    if not size:
        return Target(triple, cpu, features, vector_bytes=1, vector_registers=32)
    return Target(triple, cpu, features, vector_bytes=size * REGISTER_GROUP, vector_registers=32 // REGISTER_GROUP,
                  rounds_words=True, has_masked=True, has_vector_length=True, has_widening_products=True,
                  packed_vector_bytes=0, costs=COMPILED_ONCE_COSTS)


# ---- 32-bit Arm ------------------------------------------------------------------------------------------------------
V6M = "+strict-align"
V8M_BASE = "+strict-align,+hwdiv"
V7M = "+thumb2,+hwdiv"
V7EM = "+thumb2,+hwdiv,+dsp"
NO_FPU = ",-fpregs"
FPV4_SP = ",+vfp4d16sp,-fp64"
FPV5_SP = ",+vfp4d16sp,+fp-armv8d16sp,-fp64"
FPV5_DP = ",+vfp4d16,+fp-armv8d16,+fp64"
HELIUM = ",+mve.fp,+fullfp16"

CORTEX_M = (
    # name, core, instruction set, LLVM's architecture, features, boards
    ("cortex-m0", "Cortex-M0", "Armv6-M", "thumbv6m", V6M, "microbit nrf51822 stm32f0"),
    ("cortex-m0plus", "Cortex-M0+", "Armv6-M", "thumbv6m", V6M, "rp2040 samd21 stm32g0 stm32l0"),
    ("cortex-m3", "Cortex-M3", "Armv7-M", "thumbv7m", V7M, "sam3x8e stm32f1 stm32f2 stm32l1"),
    ("cortex-m4", "Cortex-M4F", "Armv7E-M", "thumbv7em", V7EM + FPV4_SP, "nrf52840 samd51 stm32f4 stm32g4 stm32l4"),
    ("cortex-m4+nofp", "Cortex-M4", "Armv7E-M", "thumbv7em", V7EM + NO_FPU, ""),
    ("cortex-m7", "Cortex-M7", "Armv7E-M", "thumbv7em", V7EM + FPV5_DP, "imxrt1060 stm32h7 teensy4"),
    ("cortex-m7+nofp.dp", "Cortex-M7", "Armv7E-M", "thumbv7em", V7EM + FPV5_SP, "stm32f746"),
    ("cortex-m7+nofp", "Cortex-M7", "Armv7E-M", "thumbv7em", V7EM + NO_FPU, ""),
    ("cortex-m23", "Cortex-M23", "Armv8-M base", "thumbv8m.base", V8M_BASE, "m2351 saml11"),
    ("cortex-m33", "Cortex-M33", "Armv8-M", "thumbv8m.main", V7EM + FPV5_SP, "nrf5340 nrf9160 rp2350 rp2350-arm-s stm32u5"),
    ("cortex-m33+nodsp", "Cortex-M33", "Armv8-M", "thumbv8m.main", f"{V7M},-dsp{FPV5_SP}", ""),
    ("cortex-m33+nofp", "Cortex-M33", "Armv8-M", "thumbv8m.main", V7EM + NO_FPU, ""),
    ("cortex-m33+nodsp+nofp", "Cortex-M33", "Armv8-M", "thumbv8m.main", f"{V7M},-dsp{NO_FPU}", ""),
    ("cortex-m55", "Cortex-M55", "Armv8.1-M, Helium", "thumbv8.1m.main", V7EM + FPV5_DP + HELIUM, "corstone-300 stm32n6"),
    ("cortex-m85", "Cortex-M85", "Armv8.1-M, Helium", "thumbv8.1m.main", V7EM + FPV5_DP + HELIUM, "ra8d1 ra8m1"),
)

# ---- RISC-V ----------------------------------------------------------------------------------------------------------
RISCV = (
    # name, instruction set, LLVM's architecture, features, boards
    ("rv32imc", "RV32IMC", "riscv32", "+m,+c", "esp32-c2 esp32-c3"),
    ("rv32imac", "RV32IMAC", "riscv32", "+m,+a,+c", "esp32-c6 esp32-h2 gd32vf103"),
    ("rv32imafc", "RV32IMAFC", "riscv32", "+m,+a,+c,+f", "bl602 ch32v307 esp32-p4"),
    ("rv32imac_zba_zbb_zbs", "RV32IMAC Zba Zbb Zbs", "riscv32", "+m,+a,+c,+zba,+zbb,+zbs", "rp2350-riscv"),
    ("rv64gc", "RV64GC", "riscv64", "+m,+a,+c,+f,+d", "visionfive2"),
    ("rv64gcv", "RV64GCV", "riscv64", "+m,+a,+c,+f,+d,+v,+zvl128b", ""),
    ("rv64gcv_zvl256b", "RV64GCV, 256 bits", "riscv64", "+m,+a,+c,+f,+d,+v,+zvl256b,+zba,+zbb,+zbs", ""),
    ("spacemit-k1", "RV64GCV, 256 bits", "riscv64", "+m,+a,+c,+f,+d,+v,+zvl256b,+zba,+zbb,+zbs", "banana-pi-f3"),
    ("sifive-x280", "RV64GCV, 512 bits", "riscv64", "+m,+a,+c,+f,+d,+v,+zvl512b,+zba,+zbb", ""),
)
EXACT_VECTORS = ("spacemit-k1", "sifive-x280")
"""Machines whose vectors are exactly as long as their feature says."""
TRIPLES = {"riscv32": "riscv32-unknown-elf", "riscv64": "riscv64-unknown-linux-gnu"}

# ---- with operating systems ------------------------------------------------------------------------------------------
NEON = "+fp-armv8,+neon"
DOT = ",+dotprod,+fullfp16"
I8MM = DOT + ",+i8mm,+bf16"
ARM64 = (
    # name, core, LLVM's processor, features, bytes of the first-level cache and of half of the second-level one, boards
    ("aarch64", "Armv8-A", "generic", "", 32 << 10, 1 << 19, ""),
    ("apple-m1", "Apple M1", "apple-m1", DOT, 128 << 10, 1 << 21, ""),
    ("cortex-a53", "Cortex-A53", "cortex-a53", "", 32 << 10, 1 << 18, "raspberry-pi-3"),
    ("cortex-a55", "Cortex-A55", "cortex-a55", DOT, 32 << 10, 1 << 17, ""),
    ("cortex-a510", "Cortex-A510", "cortex-a510", I8MM, 32 << 10, 1 << 17, ""),
    ("cortex-a72", "Cortex-A72", "cortex-a72", "", 32 << 10, 1 << 19, "raspberry-pi-4"),
    ("cortex-a76", "Cortex-A76", "cortex-a76", DOT, 64 << 10, 1 << 18, "raspberry-pi-5"),
    ("cortex-x2", "Cortex-X2", "cortex-x2", I8MM, 64 << 10, 1 << 19, ""),
    ("neoverse-n1", "Neoverse N1", "neoverse-n1", DOT, 64 << 10, 1 << 19, "graviton2"),
    ("neoverse-v1", "Neoverse V1", "neoverse-v1", I8MM, 64 << 10, 1 << 19, "graviton3"),
    ("neoverse-v2", "Neoverse V2", "neoverse-v2", I8MM, 64 << 10, 1 << 20, "graviton4"),
)
X86 = (
    ("x86-64", SSE2, "SSE2"),
    ("x86-64-v2", V2, "SSE4.2"),
    ("x86-64-v3", V3, "AVX2, FMA"),
    ("x86-64-v4", V4, "AVX-512"),
)

# ---- without objects -------------------------------------------------------------------------------------------------
C_SOURCE = (
    # name, core, instruction set, triple, features, boards
    ("any", "any processor", "C99", "c99-unknown-none", "", ""),
    ("esp32", "Xtensa LX6", "Xtensa", "xtensa-esp32-elf", "+fp", ""),
    ("esp32-s2", "Xtensa LX7", "Xtensa", "xtensa-esp32s2-elf", "", ""),
    ("esp32-s3", "Xtensa LX7", "Xtensa", "xtensa-esp32s3-elf", "+fp", ""),
    ("lx106", "Xtensa LX106", "Xtensa", "xtensa-lx106-elf", "", "esp8266"),
    ("atmega328p", "AVR", "AVR", "avr-unknown-none", "", "arduino-uno"),
    ("atmega2560", "AVR", "AVR", "avr-unknown-none", "", "arduino-mega"),
)
"""Machines whose code can only be C source (`Target.has_object_code`)."""

ALIASES = {"cortex-m4f": "cortex-m4", "thumbv7em": "cortex-m4", "riscv32": "rv32imafc", "riscv64": "rv64gc"}
"""Other names of machines: common ones, and former ones of tosaic."""


def rows() -> list[Machine]:
    """Return all machines, in the order in which they are listed."""
    found = [Machine(name, core, instructions, microcontroller(f"{architecture}-none-eabi", name.split("+")[0], features),
                     tuple(boards.split()))
             for name, core, instructions, architecture, features, boards in CORTEX_M]
    for name, instructions, architecture, features, boards in RISCV:
        kind = microcontroller if architecture == "riscv32" else riscv64
        target = kind(TRIPLES[architecture], f"generic-rv{architecture[-2:]}", features)
        if name in EXACT_VECTORS:
            target = replace(target, vector_register_bits=vector_bits(enabled(features)))
        found.append(Machine(name, "RISC-V", instructions, target, tuple(boards.split())))
    for name, core, cpu, more, l1_bytes, block_bytes, boards in ARM64:
        triple = APPLE if cpu.startswith("apple") else ARM64_LINUX
        target = replace(arm64(triple, cpu, NEON + more), l1_bytes=l1_bytes, block_bytes=block_bytes)
        found.append(Machine(name, core, "AArch64", target, tuple(boards.split())))
    found += [Machine(name, name, f"x86-64, {extensions}", x86(LINUX, name, features)) for name, features, extensions in X86]
    found += [Machine(name, core, instructions, microcontroller(triple, name, features), tuple(boards.split()))
              for name, core, instructions, triple, features, boards in C_SOURCE]
    return found


MACHINES = {machine.name: machine for machine in rows()}
"""Machines by their names."""
BY_ANY_NAME = MACHINES | {board: m for m in MACHINES.values() for board in m.boards} | {
    alias: MACHINES[name] for alias, name in ALIASES.items()}
"""Machines by their names, boards and old names."""
