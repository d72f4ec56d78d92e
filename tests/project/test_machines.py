"""A machine is a table: what it can do stands in `lowering/target`, its own instructions in the emitter of its family, and
nothing else of the compiler asks what a processor or a feature is called.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tosaic.lowering.schedule.contraction.contraction_strategies import MICRO_KERNELS
from tosaic.lowering.target.features import V2, V3, V4, enabled
from tosaic.lowering.target.presets import PRESETS

LOWERING = Path(__file__).parents[2] / "lowering"
FAMILIES = ("x86", "amx", "arm", "aarch64", "riscv")
INTRINSIC = re.compile(r"llvm\.(x86|arm|aarch64|riscv)\b")
ARCHITECTURE = re.compile(r"""architecture\s*(==|!=|in)\s*[("']|match .*\barchitecture\b|triple\.startswith""")
COMMON_WORDS = {"64bit", "a", "c", "d", "f", "m", "v", "fp", "fma", "bf16"}
"""Features whose names mean other things, too."""


def texts() -> Iterator[tuple[str, str]]:
    """The modules of the compiler, but for machines themselves and the emitters of their families."""
    for path in sorted(LOWERING.rglob("*.py")):
        name = path.relative_to(LOWERING).as_posix()
        is_family = name.startswith("native/llvm/") and path.stem.split("_")[0] in FAMILIES
        if not name.startswith("target/") and not is_family:
            yield name, path.read_text()


def feature_names() -> set[str]:
    found = {feature[1:] for t in PRESETS.values() for feature in t.features.split(",") if feature}
    return (found | set(enabled(f"{V2},{V3},{V4},+avx512vnni,+avxvnni,+avx512vbmi,+amx-tile,+amx-int8"))) - COMMON_WORDS


@pytest.mark.parametrize("pattern", [INTRINSIC, ARCHITECTURE], ids=["intrinsics", "families"])
def test_only_a_machine_and_the_emitter_of_its_family_know_its_name(pattern: re.Pattern[str]) -> None:
    assert [f"{name}: {found[0]}" for name, text in texts() for found in pattern.finditer(text)] == []


def test_only_machines_and_emitters_of_families_ask_for_features() -> None:
    quoted = re.compile("[\"'](" + "|".join(re.escape(name) for name in sorted(feature_names())) + ")[\"']")
    assert [f"{name}: {found[0]}" for name, text in texts() for found in quoted.finditer(text)] == []


def test_the_micro_kernels_of_every_machine_are_there() -> None:
    named = {name for t in PRESETS.values() for name in t.micro_kernels}
    assert named <= set(MICRO_KERNELS) and all(t.micro_kernels[-1] == "vectors" for t in PRESETS.values())
    first = {"neoverse-v1": "dot8", "cortex-a76": "dot4", "cortex-a72": "widen", "rv64gcv": "widen", "cortex-m4": "dual",
             "cortex-m55": "dot", "x86-64-v4": "dot2"}
    assert {name: PRESETS[name].micro_kernels[0] for name in first} == first
