"""Memories on the command line and in a file: pools, limits, pins, inputs and outputs in the workspace; and what is said of a
wrong option."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.command_line.cli import main
from tosaic.jit.command_line.memory_options import SETTINGS, compile_options, nbytes, plain
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.runtime.errors import Problem

MODEL = str(Path(__file__).parents[1] / "data" / "corpus" / "f_mobilenet_block_int8.mlir")


@pytest.fixture
def tosaic(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line: (exit code, standard output, standard error)."""
    def run(*arguments: Any) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return run


DOCUMENT = ["--workspace-pools", "dtcm,sram", "--workspace-pool-dtcm", "size=4096,access=c:rw",
            "--workspace-pool-sram=access=c:rw", "--parameter-pools", "itcm,flash",
            "--parameter-pool-itcm", "target=c;size=1000"]


def test_pools_are_named_as_in_the_document(tosaic: Any, tmp_path: Path) -> None:
    code, out, err = tosaic("compile", MODEL, "-o", tmp_path, "--name", "demo", *DOCUMENT)
    assert (code, err) == (0, "")
    answer = json.loads(tosaic("compile", MODEL, "-o", tmp_path, "--name", "demo", "--json", *DOCUMENT)[1])
    pools = {p["name"]: p for p in answer["pools"]}
    assert list(pools) == ["dtcm", "sram", "itcm", "flash"]
    assert (pools["dtcm"]["limit"], pools["itcm"]["limit"]) == (4096, 1000) and pools["sram"]["limit"] is None
    assert 0 < pools["dtcm"]["bytes"] <= 4096 and 0 < pools["itcm"]["bytes"] <= 1000
    assert f"workspace pool dtcm: {pools['dtcm']['bytes']:,} of 4,096 bytes, alignment {pools['dtcm']['alignment']}" in out
    moved = {m["pool"]: m["read"] + m["written"] for m in answer["entries"][0]["moved"]}
    assert list(moved) == list(pools) and all(f"a run moves {n:,} bytes through {pool}" in out for pool, n in moved.items())
    assert moved["dtcm"] > 0 and moved["flash"] > 0
    assert {Path(f).name for f in answer["files"]} == {"demo.o", "tosaic_demo.h", "demo_itcm.bin", "demo_itcm.S",
                                                       "demo_flash.bin", "demo_flash.S"}



def test_pools_are_written_as_c_where_that_is_asked_for(tosaic: Any, tmp_path: Path) -> None:
    code, out, _ = tosaic("compile", MODEL, "-o", tmp_path, "--name", "demo", "--json", "--pool-form", "array", *DOCUMENT)
    answer = json.loads(out)
    assert code == 0
    assert {Path(f).name for f in answer["files"]} == {"demo.o", "tosaic_demo.h", "demo_itcm.c", "demo_flash.c"}
    assert answer["stack"]["bytes"] >= max(answer["stack"]["entries"].values()) > 0


TOML = """
workspace-pools = ["dtcm", "sram"]
workspace-pool-dtcm = { size = "4K", access = { c = "rw" } }
parameter-pools = "itcm,flash"
parameter-pool-itcm = "size=1000"
planner = "greedy_by_size"
alignment = 32
"""
JSON = """{"workspace-pools": "dtcm,sram", "workspace-pool-dtcm": {"size": 4096, "target": "c:rw,npu:ro"}, "parameter-pools":
["itcm", "flash"], "parameter-pool-itcm": "size=1000", "planner": "greedy_by_size", "alignment": "0x20"}"""


@pytest.mark.parametrize("text", [TOML, JSON], ids=["toml", "json"])
def test_a_file_says_the_same_by_the_same_names(tosaic: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "memory").write_text(text)
    from_file = tosaic("show", "plan", MODEL, "--memory", tmp_path / "memory")
    assert from_file[::2] == (0, "") and "greedy_by_size" in from_file[1]
    assert from_file == tosaic("show", "plan", MODEL, *DOCUMENT, "--planner", "greedy_by_size", "--alignment", 32)
    more = ["--planner", "portfolio", "--workspace-pool-dtcm", "size=2K"]
    over = tosaic("show", "plan", MODEL, "--memory", tmp_path / "memory", *more)
    assert "algorithm portfolio" in over[1] and " 2048 " in over[1]


def test_code_in_several_pools_runs_here_too(tosaic: Any) -> None:
    plainly, pooled = (json.loads(tosaic("run", MODEL, "--json", *more)[1]) for more in ([], [*DOCUMENT, "--workspace-io"]))
    assert plainly["outputs"] == pooled["outputs"]
    assert tosaic("check", MODEL, *DOCUMENT)[0] == 0


def test_a_pin_puts_a_tensor_where_it_says(tosaic: Any) -> None:
    def places(*more: str) -> dict[str, str]:
        rows = [line.split() for line in tosaic("show", "plan", MODEL, "--workspace-pools", "a,b", *more)[1].splitlines()]
        return {row[0]: row[1] for row in rows if row[-2:-1] in (["intermediate"], ["input"], ["output"])}

    before = places()
    name = next(iter(before))
    assert set(before.values()) == {"a"} and places("--pin", f"{name}=b")[name] == "b"
    assert places("--workspace-io", "--pin", "arg0=b", "--pin", f"{name}=b")["arg0"] == "b"


@pytest.mark.parametrize(("model", "option", "setting"), [
    ("f_mobilenet_block_int8", "--rows=never", "rows = 'never'"), ("f_attention_block", "--no-overlap", "overlap = false")])
def test_a_step_that_saves_memory_can_be_switched_off(tosaic: Any, tmp_path: Path, model: str, option: str,
                                                      setting: str) -> None:
    def arena(*options: Any) -> int:
        found: int = json.loads(tosaic("report", Path(MODEL).with_stem(model), "--json", *options)[1])["arena"]
        return found

    (tmp_path / "memory.toml").write_text(setting)
    assert arena("--rows=memory") < arena("--rows=memory", option)
    assert arena("--memory", tmp_path / "memory.toml") == arena(option)


def test_the_order_of_kernels_can_be_left_as_it_is(tosaic: Any, tmp_path: Path) -> None:
    """Two towers, written layer by layer: in the best order one is narrow again before the other gets wide."""
    lines = ['%z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>',
             '%w = "tosa.const"() {values = dense<0.5> : tensor<1x8x64xf32>} : () -> tensor<1x8x64xf32>',
             '%v = "tosa.const"() {values = dense<0.25> : tensor<1x64x1xf32>} : () -> tensor<1x64x1xf32>']
    for result, left, right, dims in (("a", "x", "w", (8, 8, 64)), ("b", "y", "w", (8, 8, 64)), ("c", "a", "v", (8, 64, 1)),
                                      ("d", "b", "v", (8, 64, 1))):
        m, k, n = (f"tensor<1x{i}x{j}xf32>" for i, j in ((dims[0], dims[1]), (dims[1], dims[2]), (dims[0], dims[2])))
        lines.append(f"%{result} = tosa.matmul %{left}, %{right}, %z, %z : ({m}, {k}, tensor<1xf32>, tensor<1xf32>) -> {n}")
    t = "tensor<1x8x1xf32>"
    lines += [f"%sum = tosa.add %c, %d : ({t}, {t}) -> {t}", f"return %sum : {t}"]
    text = f"func.func @main(%x: tensor<1x8x8xf32>, %y: tensor<1x8x8xf32>) -> {t} {{\n" + "\n".join(lines) + "\n}"
    (tmp_path / "towers.mlir").write_text(text)
    (tmp_path / "memory.json").write_text('{"order": false}')

    def wide(*more: Any) -> int:
        report = json.loads(tosaic("report", tmp_path / "towers.mlir", "--json", *more)[1])
        return report["arena"] // (8 * 64 * 4)

    assert [wide(), wide("--no-order"), wide("--memory", tmp_path / "memory.json")] == [1, 2, 2]


def test_a_file_may_pin_and_the_command_line_adds_to_it(tosaic: Any, tmp_path: Path) -> None:
    (tmp_path / "memory.toml").write_text('workspace-pools = "a,b"\nworkspace-io = true\npin = { arg0 = "b", result0 = "b" }\n')
    out = tosaic("show", "plan", MODEL, "--memory", tmp_path / "memory.toml", "--pin", "result0=a")[1]
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.startswith(("arg0", "result0"))}
    assert rows == {"arg0": "b", "result0": "a"}


def test_self_contained_with_a_library_and_a_program(tosaic: Any, tmp_path: Path) -> None:
    code, out, _ = tosaic("compile", MODEL, "-o", tmp_path, "--name", "demo", "--self-contained", "--library", "--main")
    assert code == 0 and {p.name for p in tmp_path.iterdir()} == {"demo.o", "tosaic_demo.h", "libdemo.a", "main.c"}
    assert "workspace_pools" not in (tmp_path / "tosaic_demo.h").read_text() and "libdemo.a" in out
    (tmp_path / "main.c").write_text("changed")
    code, _, err = tosaic("compile", MODEL, "-o", tmp_path, "--name", "demo", "--main")
    assert code == 3 and "main.c is there already" in err


WRONG = [
    ("--workspace-pool-dtcm size=1K",
     "workspace-pool-dtcm is of no pool: workspace-pools names none\n  help: name it there, too: workspace-pools dtcm"),
    ("--workspace-pools a --workspace-pool-b size=1",
     "workspace-pool-b is of no pool: workspace-pools names a\n  help: name it there, too: workspace-pools a,b"),
    ("--workspace-pools dtcm --workspace-pool-dctm size=1K",
     "workspace-pool-dctm is of no pool: workspace-pools names dtcm\n  help: did you mean workspace-pool-dtcm?"),
    ("--workspace-pools a,a", "two pools are named a\n  help: give each memory one name, once"),
    ("--workspace-pools a --parameter-pools a", "two pools are named a"),
    ("--workspace-pools a,,b",
     "workspace-pools is 'a,,b'\n  help: it may be names with commas between them, or a list of names"),
    ("--workspace-pools a --workspace-pool-a size=12X",
     "size of workspace-pool-a is '12X', which is no number of bytes\n  help: for example 1000, 64K or 2M"),
    ("--workspace-pools a --workspace-pool-a size=-1", "size of workspace-pool-a is '-1', which is no number of bytes"),
    ("--workspace-pools a --workspace-pool-a sice=1",
     "there is no property of workspace-pool-a named sice\n  help: did you mean size?"),
    ("--workspace-pools a --workspace-pool-a 1K",
     "'1K' in workspace-pool-a is no NAME=VALUE\n  help: for example size=64K,access=c:rw"),
    ("--workspace-pools a --workspace-pool-a access=c:wr", "access c:wr in workspace-pool-a is neither rw nor ro"),
    ("--workspace-pools a --workspace-pool-a access=npu:rw", "target c may read and write none of the pools a"),
    ("--workspace-pools a --workspace-pool-a alignment=3", "pool a has an alignment of 3 bytes, not a power of two"),
    ("--parameter-pools a --parameter-pool-a access=npu:ro", "target c may read none of the pools a"),
    ("--pin nonsense", "pin 'nonsense' is no TENSOR=POOL\n  help: tosaic show plan lists the tensors' names"),
    ("--pin nothing=workspace", "there is no buffer named nothing to pin to workspace"),
    ("--workspace-io --pin arg0=flash", "buffer arg0 is pinned to flash, which is no pool\n  help: there are workspace"),
    ("--planner best", "there is no planner's algorithm named best\n  help: there are "),
    ("--rows always", "rows is 'always'\n  help: it may be cache, memory, never"),
    ("--alignment 12", "an alignment of 12 bytes is not a power of two"),
    ("--memory missing.toml", "missing.toml cannot be read: No such file or directory")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_option_says_what_is_right(tosaic: Any, tmp_path: Path, line: str, message: str) -> None:
    code, out, err = tosaic("compile", MODEL, "-o", tmp_path / "new", *line.split())
    assert (code, out) == (2, "") and f"error[option]: {message}" in err and not (tmp_path / "new").exists()


def test_memories_that_are_too_small_end_the_compile(tosaic: Any, tmp_path: Path) -> None:
    pool = ["--workspace-pools", "dtcm", "--workspace-pool-dtcm", "size=1K"]
    code, out, err = tosaic("compile", MODEL, "-o", tmp_path / "new", *pool)
    assert (code, out) == (3, "") and "error[memory]" in err and "dtcm holds 1024 bytes and would need" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("text", "message"), [
    ("workspace-pools = [", "is neither JSON nor TOML: "), ("{", "is neither JSON nor TOML: "),
    ("pools = 'a'", "there is no memory option named pools\n  help: there are workspace-pools, "),
    ("workspace-pool = 'a'", "there is no memory option named workspace-pool\n  help: did you mean workspace-pools?"),
    ("order = 1", "order is 1\n  help: it may be true or false"), ("rows = false", "rows is False, which is no name"),
    ("workspace-pools = 3", "workspace-pools is 3"), ("workspace-io = 1", "workspace-io is 1\n  help: it may be true or false"),
    ("pin = { a = 3 }", "pin a is 3, which is no name"), ("planner = 3", "planner is 3, which is no name"),
    ("workspace-pools = 'a'\nworkspace-pool-a = 3", "workspace-pool-a is 3\n  help: it may be text")])
def test_a_wrong_file_says_what_is_right(tosaic: Any, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "memory").write_text(text)
    code, _, err = tosaic("show", "plan", MODEL, "--memory", tmp_path / "memory")
    assert code == 2 and message in err


def test_an_option_without_its_value_is_a_usage_error(tosaic: Any) -> None:
    assert tosaic("show", "plan", MODEL, "--workspace-pools", "a", "--workspace-pool-a")[0] == 2


def test_options_named_by_the_user_leave_others_as_they_are() -> None:
    given = ["show", "--workspace-pool-a", "size=1", "--workspace-pools", "a,b", "--parameter-pool-b=x=1", "--pin", "a=b"]
    assert plain(given) == [
        "show", "--workspace-pool=a=size=1", "--workspace-pools", "a,b", "--parameter-pool=b=x=1", "--pin", "a=b"]


def test_all_properties_of_a_pool_can_be_said() -> None:
    options = compile_options({
        "workspace-pools": "a", "workspace-pool-a":
        "size=1K,access=c:rw,npu:ro;alignment=16,clock-frequency-hz=100,read-bandwidth-bytes-per-cycle=4,"
        "write-bandwidth-bytes-per-cycle=2,read-latency-cycles=3,write-latency-cycles=5,target-burst-bytes=c:32,npu:64,"
        "offset=256"})
    bursts = {"c": 32, "npu": 64}
    assert options.memory.pools == (PoolInfo("a", 1024, 16, {"c": "rw", "npu": "ro"}, 100, 4, 2, 3, 5, bursts, 256),)


@pytest.mark.parametrize("value", ["32", 32, "c:32", {"c": 32}, {"c": "32"}])
def test_a_burst_is_the_codes_own_where_nobody_is_named(value: Any) -> None:
    options = compile_options({"workspace-pools": "a", "workspace-pool-a": {"target-burst-bytes": value}})
    assert options.memory.pools == (PoolInfo("a", target_burst_bytes={"c": 32}),)


def test_an_offset_is_in_the_header_and_a_pool_of_constants_has_none(tosaic: Any, tmp_path: Path) -> None:
    code, out, _ = tosaic("show", "plan", MODEL, "--workspace-pools", "sram", "--workspace-pool-sram", "offset=256")
    assert code == 0 and re.search(r"sram  workspace +\d+ +- +\d+ +\d+ +256\n", out)
    code, _, err = tosaic("show", "plan", MODEL, "--parameter-pools", "flash", "--parameter-pool-flash", "offset=256")
    assert code == 2 and "pool flash holds constants and has an offset of 256 bytes" in err


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("1000", 1000), ("64K", 65536), ("2M", 2 << 20), ("1G", 1 << 30), ("0x400", 1024), ("4 K", 4096), ("4KiB", 4096),
    (12, 12)])
def test_sizes_have_suffixes(text: Any, value: int) -> None:
    assert nbytes(text, "size") == value


@settings(derandomize=True, max_examples=200, deadline=None)
@given(text=st.text("0123456789KMGxX.-+ eab\u0660", max_size=8))
def test_any_text_is_a_size_or_a_problem(text: str) -> None:
    try:
        assert nbytes(text, "size") >= 0
    except Problem as problem:
        assert problem.kind == "option"


@settings(derandomize=True, max_examples=200, deadline=None)
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab=,:;c", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2)),
       name=st.sampled_from([*SETTINGS, "workspace-pool-a", "x"]))
def test_any_setting_is_taken_or_a_problem(name: str, value: Any) -> None:
    try:
        compile_options({"workspace-pools": "a", name: value})
    except Problem as problem:
        assert problem.kind == "option"
