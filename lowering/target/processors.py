"""Processors that no table has, by LLVM's names: LLVM's output for a processor reveals its family and its features.

LLVM has no query for the features of a processor, but its output shows them: the build attributes of an object for Arm and
RISC-V, and on x86 the instructions that it selects for small functions. LLVM reports an unknown name only on the standard error
of its process, and some names end that process, so another process asks.
"""
from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterator

from .features import SSE2
from .machines import (
    ARM64_LINUX,
    FPV4_SP,
    FPV5_DP,
    FPV5_SP,
    HELIUM,
    LINUX,
    NEON,
    NO_FPU,
    TRIPLES,
    V6M,
    V7EM,
    V7M,
    V8M_BASE,
    arm64,
    microcontroller,
    x86,
)
from .machines import (
    riscv64 as riscv64_machine,
)
from .target import Target

QUESTION = """
import sys, llvmlite.binding as llvm
triple, cpu, text = sys.argv[1:]
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
print(machine.emit_assembly(llvm.parse_assembly(text)))
"""
EMPTY = "define void @empty() #0 {\n ret void\n}"

X86_FUNCTIONS = {
    "sse4.1": ("float (float %x)", "call float @llvm.floor.f32(float %x)", "roundss"),
    "popcnt": ("i32 (i32 %x)", "call i32 @llvm.ctpop.i32(i32 %x)", "popcntl"),
    "fma": ("float (float %x)", "call float @llvm.fma.f32(float %x, float %x, float %x)", "vfmadd"),
    "avx2": ("<8 x i32> (<8 x i32> %x, <8 x i32> %y)", "add <8 x i32> %x, %y", r"vpaddd.*ymm"),
    "avx512f": ("<16 x i32> (<16 x i32> %x, <16 x i32> %y)", "add <16 x i32> %x, %y", "zmm"),
    "avx512bw": ("<64 x i8> (<64 x i8> %x, <64 x i8> %y)", "add <64 x i8> %x, %y", "zmm"),
    "avx512dq": ("<8 x i64> (<8 x i64> %x, <8 x i64> %y)", "mul <8 x i64> %x, %y", "vpmullq"),
    "avx512vl": ("<4 x i32> (<4 x i32> %x)",
                 "call <4 x i32> @llvm.fshl.v4i32(<4 x i32> %x, <4 x i32> %x, <4 x i32> splat (i32 7))", "vprold"),
    "f16c": ("<4 x half> (<4 x float> %x)", "fptrunc <4 x float> %x to <4 x half>", "vcvtps2ph"),
    "avx512vbmi": ("<64 x i8> (<64 x i8> %x)", "shufflevector <64 x i8> %x, <64 x i8> poison, <64 x i32> <" + ", ".join(
        f"i32 {(37 * i + 5) % 64}" for i in range(64)) + ">", "vpermb"),
}
"""By feature: a function, and the text that its code contains if a processor has the feature."""
X86_DECLARATIONS = """declare float @llvm.floor.f32(float)
declare i32 @llvm.ctpop.i32(i32)
declare float @llvm.fma.f32(float, float, float)
declare <4 x i32> @llvm.fshl.v4i32(<4 x i32>, <4 x i32>, <4 x i32>)
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
"""
X86_PRODUCTS = """define <8 x i32> @products(<8 x i32> %x, <16 x i16> %y, <16 x i16> %z) #1 {
 %a = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %y, <16 x i16> %z)
 %b = add <8 x i32> %a, %x
 ret <8 x i32> %b
}
"""
"""Products with their sums: one instruction if a processor has VNNI, in one of two encodings."""

ARM64_FUNCTIONS = """declare <4 x i32> @llvm.vector.partial.reduce.add.v4i32.v16i32(<4 x i32>, <16 x i32>)
define <4 x i32> @signed_products(<4 x i32> %total, <16 x i8> %x, <16 x i8> %y) #0 {
 %a = sext <16 x i8> %x to <16 x i32>
 %b = sext <16 x i8> %y to <16 x i32>
 %products = mul <16 x i32> %a, %b
 %r = call <4 x i32> @llvm.vector.partial.reduce.add.v4i32.v16i32(<4 x i32> %total, <16 x i32> %products)
 ret <4 x i32> %r
}
define <4 x i32> @mixed_products(<4 x i32> %total, <16 x i8> %x, <16 x i8> %y) #0 {
 %a = zext <16 x i8> %x to <16 x i32>
 %b = sext <16 x i8> %y to <16 x i32>
 %products = mul <16 x i32> %a, %b
 %r = call <4 x i32> @llvm.vector.partial.reduce.add.v4i32.v16i32(<4 x i32> %total, <16 x i32> %products)
 ret <4 x i32> %r
}
define <8 x half> @halves(<8 x half> %x, <8 x half> %y) #0 {
 %r = fadd <8 x half> %x, %y
 ret <8 x half> %r
}
define <4 x bfloat> @narrowed(<4 x float> %x) #0 {
 %r = fptrunc <4 x float> %x to <4 x bfloat>
 ret <4 x bfloat> %r
}
"""
ARM64_MARKS = {"dotprod": r"\bsdot\b", "fullfp16": r"\bfadd\s+v0\.8h", "i8mm": r"\busdot\b", "bf16": r"\bbfcvtn\b"}
"""By feature: the text that the code of these functions contains if a processor has the feature."""

ARM_ARCHITECTURES = {"11": ("thumbv6m", V6M), "12": ("thumbv6m", V6M), "10": ("thumbv7m", V7M), "13": ("thumbv7em", V7EM),
                     "16": ("thumbv8m.base", V8M_BASE), "17": ("thumbv8m.main", V7M), "21": ("thumbv8.1m.main", V7M)}
"""By Tag_CPU_arch of the build attributes: LLVM's architecture, and features."""
ARM_UNITS = {"fpv4-sp-d16": FPV4_SP, "fpv5-sp-d16": FPV5_SP, "fpv5-d16": FPV5_DP}
PROFILE, ARCHITECTURE, DSP, VECTORS = "7", "6", "46", "48"
"""Tags of build attributes."""
MICROCONTROLLER_PROFILE = "77"


def described_processors(cpu: str) -> Iterator[Target]:
    """Yield the machines with a processor that LLVM knows by this name, of each family that has one."""
    for describe in (arm, riscv32, riscv64, aarch64, x86_64):
        found = describe(cpu)
        if found is not None:
            yield found


@functools.lru_cache(maxsize=64)
def output(triple: str, cpu: str, text: str) -> str | None:
    """Return the assembly that LLVM writes for a processor; None if it knows none of that name in this family."""
    whole = f'target triple = "{triple}"\n{text.replace("CPU", cpu)}\nattributes #0 = {{ "target-cpu"="{cpu}" }}\n'
    answer = subprocess.run([sys.executable, "-c", QUESTION, triple, cpu, whole], capture_output=True, text=True)
    return None if answer.returncode or "not a recognized" in answer.stderr else answer.stdout


def arm(cpu: str) -> Target | None:
    """Return a processor of the M profile; others have operating systems that this compiler does not know."""
    text = output("thumbv7em-none-eabi", cpu, EMPTY) or ""
    tags = dict(re.findall(r"\.eabi_attribute\s+(\d+), (\d+)", text))
    if tags.get(PROFILE) != MICROCONTROLLER_PROFILE or tags.get(ARCHITECTURE) not in ARM_ARCHITECTURES:
        return None
    architecture, features = ARM_ARCHITECTURES[tags[ARCHITECTURE]]
    unit = re.search(r"\.fpu\s+(\S+)", text)
    features += ",+dsp" if DSP in tags else ""
    features += ARM_UNITS.get(unit[1], NO_FPU) if unit else NO_FPU if "thumb2" in features else ""
    features += HELIUM if tags.get(VECTORS) == "2" else ""
    return microcontroller(f"{architecture}-none-eabi", cpu, features)


def riscv(family: str, cpu: str) -> str | None:
    """Return the features of a RISC-V processor: its extensions."""
    found = re.search(r'"rv\d+([^"]*)"', output(TRIPLES[family], cpu, EMPTY) or "")
    if found is None:
        return None
    extensions = (re.sub(r"\d+p\d+$", "", extension) for extension in found[1].split("_")[1:])
    return ",".join(f"+{extension}" for extension in extensions)


def riscv32(cpu: str) -> Target | None:
    features = riscv("riscv32", cpu)
    return None if features is None else microcontroller(TRIPLES["riscv32"], cpu, features)


def riscv64(cpu: str) -> Target | None:
    features = riscv("riscv64", cpu)
    return None if features is None else riscv64_machine(TRIPLES["riscv64"], cpu, features)


def aarch64(cpu: str) -> Target | None:
    written = output(ARM64_LINUX, cpu, ARM64_FUNCTIONS)
    if written is None:
        return None
    return arm64(ARM64_LINUX, cpu, ",".join([NEON, *(f"+{f}" for f, mark in ARM64_MARKS.items() if re.search(mark, written))]))


def x86_64(cpu: str) -> Target | None:
    functions = []
    for feature, (signature, body, _) in X86_FUNCTIONS.items():
        result, params = signature.split(" (")
        functions.append(f'define {result} @"{feature}"({params} #0 {{\n %r = {body}\n ret {result} %r\n}}')
    attributes = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'
    text = "\n".join([X86_DECLARATIONS, *(f.replace("#0", f"#0 {attributes}") for f in functions), X86_PRODUCTS,
                      'attributes #1 = { "target-cpu"="CPU" "target-features"="+avx2" }'])
    written = output(LINUX, cpu, text)
    if written is None:
        return None
    bodies = re.findall(r'^("?[\w.]+"?):.*\n((?:\t.*\n|\.L.*\n)*)', written, re.MULTILINE)
    code = {name.strip('"'): body for name, body in bodies}
    features = [feature for feature, (_, _, mark) in X86_FUNCTIONS.items() if re.search(mark, code[feature])]
    products = re.search(r"(\{vex\}\s+)?vpdpwssd", code["products"])
    if products:
        features.append("avxvnni" if products[1] else "avx512vnni")
    return x86(LINUX, cpu, ",".join([SSE2, *(f"+{f}" for f in features)]))
