"""Machines by name: what follows from a name, which names there are, and what is said of one that there is not."""
from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from tosaic.lowering.machine_code.codegen import assembly
from tosaic.lowering.target.features import enabled, merged
from tosaic.lowering.target.machines import ALIASES, ARM64, BY_ANY_NAME, MACHINES
from tosaic.lowering.target.presets import PRESETS, host, target
from tosaic.lowering.target.processors import aarch64, described_processors
from tosaic.runtime.errors import Problem


def test_names_are_names_of_one_machine() -> None:
    boards = [board for m in MACHINES.values() for board in m.boards]
    assert len(BY_ANY_NAME) == len(MACHINES) + len(boards) + len(ALIASES)
    assert all(name == name.lower() for name in BY_ANY_NAME) and set(PRESETS) == set(MACHINES)


def test_old_names_and_boards_mean_machines_of_the_tables() -> None:
    assert target("thumbv7em") == target("cortex-m4") == target("nRF52840") == target("cortex-m4f")
    assert target("riscv32") == target("rv32imafc") == target("esp32-p4")
    assert target("riscv64") == target("rv64gc") and target("rp2350") == target("cortex-m33")
    assert target("rp2350-riscv") == target("rv32imac_zba_zbb_zbs") and target("esp32-c3") == target("rv32imc")


@pytest.mark.parametrize("name", MACHINES)
def test_a_processor_alone_is_enough(name: str) -> None:
    found = target(cpu=name)
    assert (found.triple, found.cpu, found.features) == (
        PRESETS[name].triple, PRESETS[name].cpu, PRESETS[name].features)


@pytest.mark.parametrize(("name", "cpu"), [
    ("thumbv7em", "cortex-m3"), ("thumbv7em", "cortex-m0plus"), ("cortex-m7", "cortex-m33"), ("cortex-m85", "cortex-m4+nofp"),
    ("rv32imafc", "rv32imc"), ("aarch64", "cortex-a72"), ("x86-64-v4", "x86-64-v2")])
def test_features_follow_from_the_processor_and_not_from_the_target_before_it(name: str, cpu: str) -> None:
    assert target(name, cpu).features == target(cpu).features and target(name, cpu).float_unit == target(cpu).float_unit


def test_features_are_added_to_those_of_the_processor() -> None:
    found = target("thumbv7em", "cortex-m33+nodsp", "+dsp, -vfp4d16sp")
    assert found.cpu == "cortex-m33" and "dsp" in found.enabled and not found.float_unit and not found.has_cache
    assert target("thumbv7em") == target("thumbv7em", None, "")


def test_float_units_are_those_of_the_reference_manuals() -> None:
    both, single = ("float32", "float64"), ("float32",)
    units = {"cortex-m0plus": (), "cortex-m3": (), "cortex-m4": single, "cortex-m4+nofp": (), "cortex-m7": both,
             "cortex-m7+nofp.dp": single, "cortex-m23": (), "cortex-m33": single, "cortex-m33+nofp": (), "cortex-m55": both,
             "rv32imc": (), "rv32imafc": single, "rv64gc": both, "cortex-a53": both, "x86-64": both, "esp32-s3": single,
             "lx106": (), "any": ()}
    assert {name: target(name).float_unit for name in units} == units


def test_products_are_fused_where_there_is_a_unit_that_does() -> None:
    assert [name for name in ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m4+nofp", "cortex-m7+nofp.dp", "cortex-m33",
                              "rv32imac", "rv32imafc") if "float32" in target(name).fused_floats] == [
        "cortex-m4", "cortex-m7+nofp.dp", "cortex-m33", "rv32imafc"]


# ---- names that are not there ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "near"), [("cortx-m4", "cortex-m4"), ("esp32c3", "esp32-c3"), ("stm32f5", "stm32f4"),
                                            ("rv32imfc", "rv32imafc"), ("hots", "host")])
def test_an_unknown_name_is_answered_with_near_ones(name: str, near: str) -> None:
    with pytest.raises(Problem, match=re.escape(f"there is no target '{name}'")) as caught:
        target(name)
    assert f" {near}" in str(caught.value).split("did you mean")[1] and "tosaic targets lists all" in str(caught.value)


def test_a_processor_of_another_family_is_a_problem() -> None:
    with pytest.raises(Problem, match="cortex-a53 is no processor of cortex-m4's family") as caught:
        target("cortex-m4", "cortex-a53")
    assert "--cpu cortex-a53 without --target is enough" in str(caught.value)


@pytest.mark.parametrize("name", [name for name, t in PRESETS.items() if not t.has_object_code])
def test_an_object_for_a_machine_without_back_end_names_c_source(name: str) -> None:
    with pytest.raises(Problem, match=f"no object can be made for {name}") as caught:
        assembly("", target(name))
    assert caught.value.kind == "option" and "--emit c" in str(caught.value)
    with pytest.raises(Problem, match="takes no features"):
        target(name, features="+fp")


def test_llvm_has_no_back_end_for_xtensa() -> None:
    """Else the tables could say so."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    with pytest.raises(RuntimeError):
        llvm.Target.from_triple("xtensa-none-elf")


# ---- processors that only LLVM knows ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name, _, cpu, *_ in ARM64 if cpu != "generic"])
def test_the_table_of_64_bit_arm_says_what_llvm_knows(name: str) -> None:
    described = aarch64(name)
    assert described is not None and described.enabled == target(name).enabled


@pytest.mark.parametrize(("cpu", "dot_product", "has_pairs"), [
    ("neoverse-n2", "s8s8", True), ("apple-m3", "s8s8", True), ("cortex-a78", "s8s8", False), ("cortex-a57", None, False)])
def test_what_64_bit_arm_multiplies_is_found_for_any_processor(cpu: str, dot_product: str | None, has_pairs: bool) -> None:
    found = target(cpu=cpu)
    assert (found.dot_product, found.has_byte_pairs) == (dot_product, has_pairs)


@pytest.mark.parametrize(("cpu", "like"), [
    ("sc300", "cortex-m3"), ("cortex-m35p", "cortex-m33"), ("cortex-m1", "cortex-m0plus")])
def test_an_arm_processor_has_what_its_build_attributes_say(cpu: str, like: str) -> None:
    found, = described_processors(cpu)
    assert (found.triple, found.float_unit) == (target(like).triple, target(like).float_unit)
    assert found.enabled == target(like).enabled and target(cpu=cpu) == found


def test_a_risc_v_processor_has_the_extensions_of_its_architecture() -> None:
    small, = described_processors("sifive-e20")
    assert {"m", "c"} <= small.enabled and not {"a", "f", "d"} & small.enabled and not small.has_int64
    large, = described_processors("sifive-u74")
    assert {"m", "a", "f", "d", "c"} <= large.enabled and large.has_int64 and large.float_unit == ("float32", "float64")


MACROS = {"sse4.1": "__SSE4_1__", "popcnt": "__POPCNT__", "fma": "__FMA__", "avx2": "__AVX2__", "avx512f": "__AVX512F__",
          "avx512bw": "__AVX512BW__", "avx512dq": "__AVX512DQ__", "avx512vl": "__AVX512VL__", "f16c": "__F16C__",
          "avx512vbmi": "__AVX512VBMI__", "avx512vnni": "__AVX512VNNI__", "avxvnni": "__AVXVNNI__"}


@pytest.mark.sampled(2)
@pytest.mark.skipif(shutil.which("gcc") is None or host().architecture != "x86", reason="asks gcc for x86")
@pytest.mark.parametrize("cpu", ["core2", "nehalem", "haswell", "cascadelake", "alderlake", "znver3"])
def test_an_x86_processor_has_what_gcc_says(cpu: str) -> None:
    found, = described_processors(cpu)
    text = subprocess.run(["gcc", f"-march={cpu}", "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True, text=True,
                          check=True).stdout
    assert {f for f in MACROS if f in found.enabled} == {f for f, macro in MACROS.items() if f"{macro} 1" in text}
    assert enabled(merged(found.features, "-avx2")) == found.enabled - {"avx2"}
