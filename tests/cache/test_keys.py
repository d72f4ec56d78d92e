"""Keys: they change with whatever the code depends on, and with nothing else."""
from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.cache import models, programs, versions
from tosaic.jit.cache.folder import Folder
from tosaic.jit.cache.graph_digest import graph_digest
from tosaic.jit.cache.models import RESTED_NS, file_key
from tosaic.jit.cache.programs import CodeRequest, key_of
from tosaic.jit.models import load_model as reader
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory
from tosaic.lowering.options import CompileOptions
from tosaic.lowering.target.costs import Costs
from tosaic.lowering.target.presets import PRESETS

from .conftest import files
from .models import ADD, SEVERAL

CHANGES = [
    ("%x", "%z"), ("@main", "@other"), ("3.0", "3.5"), ("tosa.add", "tosa.sub"), ("tensor<4xf32>", "tensor<1x4xf32>"),
    ("func.func @main(%x: tensor<4xf32>)", "func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>)"),
    ("-> tensor<4xf32> {", "-> tensor<4xf32> attributes {a = 1 : i32} {")]


def of(text: str) -> str:
    return graph_digest(tosaic.load(text).module)


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=[new for _, new in CHANGES])
def test_a_graph_s_digest_changes_with_the_graph(old: str, new: str) -> None:
    changed = ADD.replace(old, new).replace("[1.0, 2.0, 3.0, 4.0]> : tensor<1x4", "[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4")
    assert changed != ADD and of(changed) != of(ADD)


def test_a_graph_s_digest_does_not_change_with_its_layout() -> None:
    assert of(ADD) == of(ADD.replace("  %c", "\n  // a comment\n      %c"))


def test_places_count_only_where_an_error_can_name_them() -> None:
    assert of(SEVERAL) != of(SEVERAL.replace("  func.func @fails", "\n  func.func @fails"))


def test_which_value_is_used_counts() -> None:
    text = ADD.replace("tosa.add %x, %c", "tosa.add %x, %x")
    assert of(text) != of(ADD)


@pytest.fixture
def key(cache: Folder) -> bytes:
    found = key_of(tosaic.load(ADD).main.trace(), CodeRequest())
    assert found is not None
    return found


OPTIONS = {"target": PRESETS["x86-64"], "threads": 2, "precision": "bf16x6", "rows": "memory", "order": False,
           "tuning": (("kernel", ("strategy",)),), "memory": Memory(workspace_io=True), "schedule": "kernel 0: x",
           "weights": "int16"}
MEMORY = {"algorithm": "greedy_by_size", "pools": (PoolInfo("other"),), "alignment": 32, "accessor": "a",
          "constant_pools": (PoolInfo("rom"),), "pins": {"a": "workspace"}, "workspace_io": True, "overlap": False,
          "objective": "bytes"}
POOL = {"name": "w", "size_hint_bytes": 64, "alignment": 64, "target_access": {"a": "rw"}, "clock_frequency_hz": 1,
        "read_bandwidth_bytes_per_cycle": 1, "write_bandwidth_bytes_per_cycle": 1, "read_latency_cycles": 1,
        "write_latency_cycles": 1, "target_burst_bytes": {"a": 8}, "pool_offset": 16}


def test_every_option_is_in_the_key(key: bytes) -> None:
    traced = tosaic.load(ADD).main.trace()
    assert OPTIONS.keys() == {f.name for f in fields(CompileOptions)}
    options = [replace(CompileOptions(), **{name: value}) for name, value in OPTIONS.items()]
    found = {key_of(traced, CodeRequest(each)) for each in options}
    assert len(found) == len(options) and None not in found and key not in found
    assert key_of(traced, CodeRequest(CompileOptions())) == key


def test_every_option_of_memory_is_in_the_key(key: bytes) -> None:
    traced = tosaic.load(ADD).main.trace()
    assert {*MEMORY, "moved"} == {f.name for f in fields(Memory)} and POOL.keys() == {f.name for f in fields(PoolInfo)}
    base = PoolInfo("workspace")
    memories = [*(replace(Memory(), **{name: value}) for name, value in MEMORY.items()),
                *(Memory(pools=(replace(base, **{name: value}),)) for name, value in POOL.items())]
    found = {key_of(traced, CodeRequest(CompileOptions(memory=memory))) for memory in memories}
    assert len(found) == len(memories) and None not in found and key not in found


def another(value: Any) -> Any:
    """A value of the same type."""
    match value:
        case bool():
            return not value
        case str():
            return value + "x"
        case Costs():
            return replace(value, barrier_cycles=1)
        case tuple():
            return (*value, ("kernel", ("choice",)))
        case None:
            return "u8s8"
        case _:
            return value + 1


def test_every_property_of_a_target_is_in_the_key(key: bytes) -> None:
    traced, base = tosaic.load(ADD).main.trace(), PRESETS["x86-64"]
    targets = [base]
    for each in fields(base):
        value = getattr(base, each.name)
        targets.append(replace(base, **{each.name: another(value)}))
    found = {key_of(traced, CodeRequest(CompileOptions(t))) for t in targets}
    assert len(found) == len(targets) and None not in found and key not in found


@pytest.mark.parametrize("name", ["versions", "machine"])
def test_tosaic_llvm_and_the_machine_are_in_the_key(key: bytes, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(programs, name, lambda: ("another",))
    assert key_of(tosaic.load(ADD).main.trace(), CodeRequest()) not in (key, None)


def test_the_name_of_the_function_is_in_the_key(key: bytes) -> None:
    model = tosaic.load(SEVERAL)
    assert len({key_of(entry.trace(), CodeRequest()) for entry in model}) == 3


def test_a_changed_source_of_tosaic_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in versions.FOLDERS:
        (tmp_path / name).mkdir()
    source, notes = tmp_path / "lowering" / "a.py", tmp_path / "lowering" / "notes.txt"
    source.write_text("x = 1\n")
    monkeypatch.setattr(versions, "ROOT", str(tmp_path))
    monkeypatch.setattr(versions.import_time, "IMPORTED", source.stat().st_mtime + 10)
    first = versions.source_digest()
    notes.write_text("not a source")
    assert versions.source_digest() == first is not None
    source.write_text("x = 2\n")
    os.utime(source, (0, 0))
    second = versions.source_digest()
    assert second not in (first, None)
    os.rename(source, source.with_name("b.py"))
    assert versions.source_digest() not in (first, second, None)


def test_a_source_newer_than_the_process_switches_the_cache_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions.import_time, "IMPORTED", 0.0)
    assert versions.source_digest() is None


def test_nothing_is_kept_where_versions_are_not_known(cache: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "versions", lambda: None)
    assert tosaic.load(ADD)(np.zeros(4, np.float32)).tolist() == [1, 2, 3, 4]
    assert not files(cache, "code")


# ---- files whose digest is remembered --------------------------------------------------------------------------------
def large(path: Path, weight: str = "1.0") -> Path:
    """A model file of more than a mebibyte that has rested."""
    path.write_text(ADD.replace("1.0", weight) + "// " + "x" * (1 << 20) + "\n")
    return path


@pytest.fixture
def rested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "RESTED_NS", -1)


@pytest.mark.usefixtures("rested")
def test_a_large_file_is_not_even_read(cache: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, x = large(tmp_path / "m.mlir"), np.zeros(4, np.float32)
    assert tosaic.load(path)(x).tolist() == [1, 2, 3, 4]
    with monkeypatch.context() as patched:
        patched.setattr(reader, "read_bytes", None)
        model = tosaic.load(path)
        assert model(x).tolist() == [1, 2, 3, 4]
    assert len(model.module.functions) == 1


@pytest.mark.usefixtures("rested")
def test_a_large_file_that_has_changed_is_read_again(cache: Folder, tmp_path: Path) -> None:
    path, x = large(tmp_path / "m.mlir"), np.zeros(4, np.float32)
    times = path.stat()
    assert tosaic.load(path)(x).tolist() == [1, 2, 3, 4]
    model = tosaic.load(path)
    large(path, "7.0")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # of the same size, and as if it had not changed
    assert tosaic.load(path)(x).tolist() == [7, 2, 3, 4]
    with pytest.raises(tosaic.Problem, match="has changed since it was loaded"):
        model.show()


def test_only_a_large_file_that_has_rested_is_remembered(cache: Folder, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    path = large(tmp_path / "m.mlir")
    assert file_key(str(path)) is None  # written just now
    now = path.stat().st_ctime_ns
    monkeypatch.setattr(models.time, "time_ns", lambda: now + RESTED_NS + 1)
    assert file_key(str(path)) is not None
    path.write_text(ADD)
    assert file_key(str(path)) is None and file_key(str(tmp_path)) is None and file_key(str(tmp_path / "none")) is None
