"""Small files that ask for much are a Problem within the limits, in a process whose memory is bounded: a bomb that went off
would end in a MemoryError there, or in a time that the test does not have."""
from __future__ import annotations

import importlib.util
import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.runtime.errors import Problem

from .bombs import BOMBS, FLATBUFFERS, ONNX, exponential_calls, function, many_splats

SLOW = {"long_list", "slow_compile", "onnx_loops"}
"""Bombs that take seconds to be made or to be refused: `python tests/limits` has them."""
KINDS = {"limit", "level", "nesting", "model", "shape", "unsupported", "file"}
T = "tensor<4xf32>"
ADD = function(f"%0 = tosa.add %x, %x : ({T}, {T}) -> {T}\nreturn %0 : {T}")


def in_child(seconds: float, names: list[str]) -> dict[str, dict[str, Any]]:
    said = subprocess.run([sys.executable, "-m", "tosaic.tests.limits.child", str(seconds), *names], capture_output=True,
                          text=True, env={**os.environ, "TOSAIC_CACHE": "off"}, timeout=300)
    assert said.returncode == 0, said.stderr[-2000:]
    return {found["bomb"]: found for found in map(json.loads, said.stdout.splitlines())}


def test_every_bomb_is_a_problem_in_little_memory() -> None:
    missing = (set(ONNX) if importlib.util.find_spec("onnx") is None else set()) | (
        set(FLATBUFFERS) if importlib.util.find_spec("tosa_converter_for_tflite") is None else set())
    names = [name for name in BOMBS if name not in SLOW | missing]
    found = in_child(60, names)
    assert list(found) == names
    wrong = {name: f["kind"] for name, f in found.items() if f["kind"] not in KINDS and name != "long_line"}
    assert not wrong and found["long_line"]["kind"] == "compiled"
    assert max(f["more_memory"] for f in found.values()) < 700 << 20


def test_a_compile_that_takes_long_ends_with_the_seconds() -> None:
    found = in_child(1, ["slow_compile"])["slow_compile"]
    assert found["kind"] == "limit" and "the limit of 1 seconds" in found["message"]


@pytest.mark.parametrize(("limits", "data", "said"), [
    (tosaic.Limits(nodes=9), exponential_calls(), "the model has more than 9 operators"),
    (tosaic.Limits(nodes=200), exponential_calls(), "calls and loops expand to more than 200 operations, which is the limit"),
    (tosaic.Limits(bytes=15), ADD, "has 15 bytes|has 1[0-9][0-9] bytes, the limit is 15"),
    (tosaic.Limits(bytes=64 << 20), many_splats(), "the constants up to here have 83,886,080 bytes"),
    (tosaic.Limits(seconds=1e-9), ADD, "the limit of 1e-09 seconds")])
def test_a_limit_is_said_with_its_number_in_every_way_that_it_is_given(limits: tosaic.Limits, data: bytes, said: str) -> None:
    def loaded() -> Any:
        return tosaic.load(data, limits=limits).main.compile()

    def compiled() -> Any:
        return tosaic.compile(data, limits=limits)

    def inside() -> Any:
        with limits:
            return tosaic.load(data).main.compile()

    for way in (loaded, compiled, inside):
        with pytest.raises(Problem, match=said) as caught:
            way()
        help = str(caught.value.help)
        assert caught.value.kind == "limit" and ("--limits" in help or "in a loop" in help)


def values(found: Any) -> Any:
    return found.tolist()


def test_a_model_within_its_limits_computes_as_without() -> None:
    limits = tosaic.Limits(nodes=10, bytes=1 << 20, seconds=60)
    x = np.arange(4, dtype=np.float32)
    model = tosaic.load(ADD, limits=limits)
    assert values(model(x)) == (x + x).tolist()
    assert values(pickle.loads(pickle.dumps(model))(x)) == (x + x).tolist()
    assert values(tosaic.compile(ADD, limits=limits)(x)) == (x + x).tolist()


def test_limits_hold_for_an_entry_that_is_compiled_later_and_for_each_shape() -> None:
    t = "tensor<?xf32>"
    model = tosaic.load(function(f"%0 = tosa.add %x, %x : ({t}, {t}) -> {t}\nreturn %0 : {t}", f"%x: {t}", t),
                        limits=tosaic.Limits(bytes=4000))
    assert len(values(model(np.ones(1000, np.float32)))) == 1000
    with pytest.raises(Problem, match="has 4,004 bytes, the limit is 4,000"):
        model(np.ones(1001, np.float32))


def test_the_arena_is_bounded_also_where_the_cache_has_the_code() -> None:
    t, u = "tensor<1x16x16xf32>", "tensor<1xf32>"
    text = function(f'%z = "tosa.const"() <{{values = dense<0.0> : {u}}}> : () -> {u}\n'
                    + "\n".join(f"%{n} = tosa.matmul %{'x' if n == 0 else n - 1}, %x, %z, %z : ({t}, {t}, {u}, {u}) -> {t}"
                                for n in range(4)) + f"\nreturn %3 : {t}", f"%x: {t}", t)
    arena = tosaic.load(text).main.compile().executable.arena_nbytes
    assert arena > 1024
    with pytest.raises(Problem, match=f"the arena has {arena:,} bytes, the limit is 1,500"):
        tosaic.load(text, limits=tosaic.Limits(bytes=1500)).main.compile()


def test_inner_limits_narrow_outer_ones_and_end_with_their_block() -> None:
    with tosaic.Limits(nodes=1):
        with tosaic.Limits(nodes=100, bytes=1 << 30), pytest.raises(Problem, match="more than 1 operators"):
            tosaic.load(exponential_calls()).main.compile()
        assert len(tosaic.load(ADD)) == 1
    assert values(tosaic.load(ADD).main(np.zeros(4, np.float32))) == [0] * 4


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"bytes": -1}, {"seconds": True}, {"nodes": "many"}])
def test_a_limit_that_is_no_number_above_0_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Problem, match=r"a limit of .* (nodes|bytes|seconds)"):
        tosaic.Limits(**wrong)


def test_what_another_system_reads_in_this_process_is_refused_under_limits(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip('the extra is not installed: pip install "tosaic[tensorflow]"')
    with pytest.raises(Problem, match="is a SavedModel, which TensorFlow reads, and limits do not hold for that"):
        tosaic.load(tmp_path, limits=tosaic.Limits(seconds=10))


@pytest.mark.parametrize("command", ["run", "show", "report", "check", "profile", "info"])
def test_the_commands_take_limits(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(many_splats())))
    assert main([command, "-", "--limits", "nodes=1000,bytes=64M,seconds=60"]) == 3
    assert "the constants up to here have" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "said"), [
    ("node=3", "did you mean nodes?"), ("nodes", "has no value"), ("bytes=x", "no number of"), ("seconds=x", "no number"),
    ("nodes=0", "a number above 0")])
def test_limits_that_are_written_wrong_are_usage(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "-", "--limits", text]) == 2
    assert said in capsys.readouterr().err
