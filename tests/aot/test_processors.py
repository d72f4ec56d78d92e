"""Each processor by its name: its objects link with its own compiler, without a warning, need what the header says and no more,
have no instruction that it lacks, and run on it, or on the nearest one that is emulated, with the bytes of this machine.

Floats are compared with a twin: the same loops, compiled for this machine with fused products where the processor has them. So
they are equal to the last bit, whatever calls of a library stand for its arithmetic.
"""
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import Artifact, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.target.features import SSE2, V3, enabled
from tosaic.lowering.target.machines import LINUX, MACHINES
from tosaic.lowering.target.presets import host, target
from tosaic.lowering.target.target import Target

from .callers import Caller, printed, random_calls
from .machines import PROCESSORS, Machine, needs

DATA = Path(__file__).parents[1] / "data"
ARITHMETIC = """
func.func @main(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>, %i: tensor<7xi32>, %j: tensor<7xi32>)
    -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x1xf32>, tensor<7xi32>, tensor<7xi32>, tensor<3x5xi32>, tensor<3x5xi1>) {
  %zero = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %one = "tosa.const"() <{values = dense<1> : tensor<7xi32>}> : () -> tensor<7xi32>
  %product = tosa.mul %x, %y, %zero : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<1xi8>) -> tensor<3x5xf32>
  %exp = tosa.exp %product : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %root = tosa.rsqrt %exp : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %power = tosa.pow %exp, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %sine = tosa.sin %x : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %tanh = tosa.tanh %y : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %log = tosa.log %exp : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %up = tosa.ceil %log : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %first = tosa.add %root, %sine : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %second = tosa.maximum %power, %tanh : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %both = tosa.sub %second, %up : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  %total = tosa.reduce_sum %both {axis = 1 : i32} : (tensor<3x5xf32>) -> tensor<3x1xf32>
  %divisor = tosa.maximum %j, %one : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi32>
  %quotient = tosa.intdiv %i, %divisor : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi32>
  %zeros = tosa.clz %i : (tensor<7xi32>) -> tensor<7xi32>
  %whole = tosa.cast %product : (tensor<3x5xf32>) -> tensor<3x5xi32>
  %larger = tosa.greater %x, %y : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
  return %first, %both, %total, %quotient, %zeros, %whole, %larger : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x1xf32>,
    tensor<7xi32>, tensor<7xi32>, tensor<3x5xi32>, tensor<3x5xi1>
}
"""
MODELS: dict[str, Callable[[], Any]] = {
    "arithmetic": lambda: tosaic.load(ARITHMETIC),
    "whole": lambda: tosaic.load(DATA / "corpus" / "f_conv_bn_relu_pool_int8.mlir"),
    "state": lambda: tosaic.load(DATA / "corpus" / "v_lstm.mlir"),
    "counter": lambda: tosaic.load(DATA / "corpus" / "v_counter.mlir")}
TURNS = ("whole", "state")
"""Of these, one processor has the one and the next the other; it has all the rest."""
INTEGERS = ("whole", "counter")
"""Models of integers, which need nothing of a compiler's library."""
ALL = pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in PROCESSORS])


def twin(machine: Target) -> Target:
    """This kind of machine with the loops of another: vectors, caches and prices are the other's."""
    fused = "float32" in machine.fused_floats
    features = V3 if fused else SSE2
    if not enabled(features) <= host().enabled:
        pytest.skip("this machine has no fused products")
    return replace(machine, triple=LINUX, cpu="x86-64-v3" if fused else "x86-64", features=features)


def saved(machine: Machine, folder: Path, name: str) -> tuple[Artifact, str, str]:
    """The files of a model for a machine, a program that calls it, and what that must print."""
    model, there = MODELS[name](), target(machine.target)
    lowered: list[Lowered] = [e.lower(tosaic.CompileOptions(there)) for e in model]
    artifact = save(lowered, folder, name)
    own: list[Lowered] = [e.lower(tosaic.CompileOptions(there if there.architecture == "x86" else twin(there))) for e in model]
    calls: Sequence[tuple[int, Sequence[Array]]] = random_calls(own, 2 * len(own))
    if there.architecture == "x86":
        own = [e.lower() for e in model] if name in INTEGERS else own
    return artifact, Caller(lowered, artifact).source(calls), printed(own, calls)


@pytest.mark.sampled(4)
@pytest.mark.skipif(host().architecture != "x86", reason="the twins of other processors are x86")
@ALL
def test_a_processor_gives_the_same_bytes(machine: Machine, tmp_path: Path) -> None:
    """One program with three models: integers, floats, and state of either."""
    expected, files, objects = "", [], []
    names = [name for name in MODELS if name != TURNS[PROCESSORS.index(machine) % 2]]
    for number, name in enumerate(names):
        artifact, source, output = saved(machine, tmp_path, name)
        expected += output
        path = tmp_path / f"{name}_calls.c"
        path.write_text(source.replace("int main(void)", f"int main{number}(void);\nint main{number}(void)"))
        files += [path, artifact.object]
        objects.append(artifact)
        check_needs(machine, artifact, name)
        check_instructions(machine, artifact.object)
    calls = "".join(f"    if ((code = main{number}()) != 0) return code;\n" for number in range(len(names)))
    declared = "".join(f"int main{number}(void);\n" for number in range(len(names)))
    (tmp_path / "main.c").write_text(f"{declared}int main(void) {{\n    int code = 0;\n{calls}    return code;\n}}\n")
    assert machine.run(machine.build(tmp_path, [tmp_path / "main.c", *files])) == expected


def tool(machine: Machine, name: str, *arguments: Any) -> str:
    """What a tool beside a machine's compiler prints."""
    command = [re.sub(r"gcc$", name, machine.compiler[0]), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_needs(machine: Machine, artifact: Artifact, name: str) -> None:
    """The header names each function that the object wants from elsewhere; models of integers want two at most."""
    undefined = set(tool(machine, "nm", "-u", artifact.object).split()) - {"U"}
    sentence = re.search(r"The object needs (.*?) from elsewhere\.", artifact.header.read_text())
    assert sentence is not None and undefined == set(sentence[1].split(", ")) - {"nothing"}
    arithmetic = undefined - {"memcpy", "memset"}
    assert not (arithmetic and (name in INTEGERS or "float32" in target(machine.target).float_unit))
    names = r"__aeabi_(f(add|sub|mul|div|2iz|2uiz)|u?i2f)" if target(machine.target).architecture == "arm" else (
        r"__((add|sub|mul|div)sf3|fix(uns)?sfsi|float(un)?sisf)")
    assert all(re.fullmatch(names, symbol) for symbol in arithmetic), arithmetic


# ---- instructions ----------------------------------------------------------------------------------------------------
FLOAT = r"v(add|sub|mul|div|fma|cmp|cvt|mov|ldr|str|ldm|stm|push|pop|sqrt|neg|abs|sel|rint)\w*\b"
DOUBLE = r"\bv\w+\.f64\b"
DSP = (r"\b(smla[bt][bt]|smul[bt][bt]|smlad|smuad|sxta[bh]\w*|uxta[bh]\w*|pkh\w+|[su]sat16|qadd|qsub|sel|umaal|smmul\w*|"
       r"smmla\w*)\b")
MAINLINE = r"\b(clz|rbit|it[te]*|umull|smull|umlal|smlal|mla|mls|bfi|bfc|ubfx|sbfx|tb[bh]|ldrd|strd)\b"
ARMV7 = r"\b(cbn?z|[su]div|movw|movt|\w+\.w)\b"
HELIUM = r"\bv(?!cvt)\w+\.[isu](8|16|32)\b|\b(dlstp|letp)"
SCALAR_FLOAT = r"\bf(add|sub|mul|div|madd|lw|sw|ld|sd|mv|cvt)\b"
BIT_MANIPULATION = r"\b(sh[123]add|andn|clz|ctz|max|min|bset|bext)\b"
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "cortex-m0": (MAINLINE, ARMV7, DSP, FLOAT), "cortex-m0plus": (MAINLINE, ARMV7, DSP, FLOAT), "cortex-m3": (DSP, FLOAT),
    "cortex-m4": (DOUBLE, r"\bv(sel|rint)"), "cortex-m4+nofp": (FLOAT,),
    "cortex-m7": (HELIUM,), "cortex-m7+nofp.dp": (DOUBLE,), "cortex-m7+nofp": (FLOAT,),
    "cortex-m23": (MAINLINE, DSP, FLOAT), "cortex-m33": (DOUBLE, HELIUM), "cortex-m33+nodsp": (DSP, DOUBLE),
    "cortex-m33+nofp": (FLOAT,), "cortex-m33+nodsp+nofp": (DSP, FLOAT), "rv32imc": (r"\b(lr|sc|amo\w+)\.", SCALAR_FLOAT),
    "rv32imac": (SCALAR_FLOAT, BIT_MANIPULATION), "rv32imafc": (r"\bf\w+\.d\b", BIT_MANIPULATION),
    "rv64gc": (r"\bv(setvli|setivli|le\d+|se\d+)\b", BIT_MANIPULATION)}
"""Mnemonics that a processor lacks, where no emulator of it would say so."""


def check_instructions(machine: Machine, code: Path) -> None:
    """No instruction that the processor lacks: also of the kinds for which it may only be emulated by a larger one."""
    if machine.target not in FORBIDDEN:
        return
    flags = () if machine.compiler[0].startswith("riscv") else ("-M", "force-thumb")
    listed = [line.split("\t") for line in tool(machine, "objdump", "-d", *flags, code).splitlines() if line.count("\t") >= 2]
    mnemonics = {fields[2].strip() for fields in listed if not fields[2].startswith(".")}
    assert len(mnemonics) > 10
    for pattern in FORBIDDEN[machine.target]:
        assert not [m for m in mnemonics if re.search(pattern, m)]


# ---- attributes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in PROCESSORS
                                     if target(m.target).architecture == "arm"])
def test_an_object_says_of_itself_what_gcc_says_of_its_own(machine: Machine, tmp_path: Path) -> None:
    """The architecture, the units of floats and vectors; the calling convention of floats is either."""
    artifact = save([e.lower(tosaic.CompileOptions(target(machine.target))) for e in MODELS["counter"]()], tmp_path, "counter")
    source = tmp_path / "one.c"
    source.write_text("float one(float x) { return x * 2; }\n")
    flags = [f for f in machine.compiler[1:] if f.startswith("-m")]
    subprocess.run([machine.compiler[0], *flags, "-c", str(source), "-o", str(tmp_path / "one.o")], check=True)
    own, others = (dict(re.findall(r"Tag_(\w+): (.*)", tool(machine, "readelf", "-A", o))) for o in (
        artifact.object, tmp_path / "one.o"))
    for tag in ("CPU_arch", "CPU_arch_profile", "THUMB_ISA_use", "FP_arch", "ABI_HardFP_use", "MVE_arch", "DSP_extension"):
        if machine.name != "cortex-m85":  # gcc 12 has no such name, and takes it for the M55
            assert own.get(tag) == others.get(tag), tag
    assert own["ABI_VFP_args"] == "compatible"


def test_each_machine_of_the_tables_is_tested() -> None:
    """But for what no emulator here has: AVX-512, macOS, and C source. `test_machines` runs aarch64 with all models."""
    elsewhere = {"aarch64", "apple-m1", "x86-64-v4"} | {m.name for m in MACHINES.values() if not m.target.has_object_code}
    assert {m.target for m in PROCESSORS} | elsewhere == set(MACHINES)


def test_floats_of_twins_are_near_those_of_this_machine() -> None:
    """So that a twin which is wrong shows."""
    model = MODELS["arithmetic"]().main
    calls = random_calls([model.lower()], 1)
    found = model.lower(tosaic.CompileOptions(twin(target("cortex-m0plus")))).compile()(*calls[0][1])
    for one, other in zip(found, model(*calls[0][1])):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
