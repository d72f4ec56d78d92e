"""What one process has compiled another one calls, with the same results and errors, without parsing, lowering or LLVM."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tosaic.jit.cache.folder import Folder

from .conftest import Process, files, run_scenarios

QUICK = ("call", "weights", "sources", "state", "entries", "wrong_arguments", "open_extents", "interrupted")
AGAIN = ("memories", "traced", "fault_of_a_model", "fault_of_a_function", "check_of_a_model", "checks_of_a_function",
         "wrong_shapes", "model_text", "stages", "copies")
COMPILER = "llvmlite"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """All scenarios in two processes, one after the other."""
    folder = tmp_path_factory.mktemp("runs")
    return run_scenarios(folder), run_scenarios(folder)


@pytest.mark.parametrize("name", [*QUICK, *AGAIN])
def test_a_second_process_gives_the_same_answers(runs: Any, name: str) -> None:
    first, second = runs
    assert first[name] == second[name]


@pytest.mark.parametrize("name", QUICK)
def test_a_second_process_neither_parses_nor_lowers_nor_compiles(runs: Any, name: str) -> None:
    first, second = runs
    assert first[f"{name} loaded"] == [COMPILER, "lark", "tosaic.lowering.fuse.fuse", "tosaic.lowering.graph.graph"]
    assert second[f"{name} loaded"] == []


def test_a_traced_function_is_traced_again_and_found(runs: Any) -> None:
    assert runs[1]["traced loaded"] == ["tosaic.lowering.graph.graph"]
    assert runs[1]["traced"] == {"total": [4, 0, 8], "pair": [[2, -2, 4], 2], "compiles": 1}


def test_nothing_is_compiled_to_look_into_what_was_found(runs: Any) -> None:
    assert all(COMPILER not in runs[1][f"{name} loaded"] for name in AGAIN if name not in ("stages", "copies"))
    assert "kernel 0: add" in runs[1]["stages"]["kernels"] and runs[1]["stages"]["is_same"]


def test_answers_are_right(runs: Any) -> None:
    found = runs[1]
    assert found["call"] == {"first": [2, 3, 4, 5], "again": [3, 4, 5, 6], "entry": [2, 3, 4, 5]}
    assert found["sources"] == {kind: [1, 2, 3, 4] for kind in ("text", "bytes", "file")}
    assert found["state"] == {"total": [7, 2], "kept": [7, 2], "names": ["cache.total", "cache.unset"], "own": [6, 1]}
    assert found["entries"]["names"] == ["count", "fails", "both"] and found["entries"]["is_out"]
    assert found["entries"]["a"] == [0, 2] and found["entries"]["out"] == [0, 3]
    assert found["open_extents"]["called"] == [[2, 2, 2]] * 2 and found["open_extents"]["is_dynamic"] == [True, False]
    assert found["memories"] == {"y": [1, 2, 3, 4]}
    assert len(found["wrong_arguments"]["messages"]) == 4
    assert found["interrupted"] == {"before": 3, "after": 3}


def test_a_fault_names_its_place_in_the_model(runs: Any) -> None:
    text = runs[1]["fault_of_a_model"]["text"]
    assert text.startswith("several.mlir:11:") and "%0 = tosa.variable_read @cache.unset" in text
    assert "return unset.read() + x" in runs[1]["fault_of_a_function"]["text"]
    text = runs[1]["check_of_a_model"]["text"]
    assert text.startswith("checked.mlir:2:3: error[check]: c is false\n    2 |   \"tosaic.assert")
    found = runs[1]["checks_of_a_function"]
    assert found["answer"] == [2, 3] and 'tosaic.check(x[0] > 0, "the first' in found["first"]
    assert [f"the {name} is not above 0" in found[kind] for kind, name in (
        ("first", "first"), ("both", "first"), ("second", "second"))] == [True] * 3
    assert "main has no input named z" in runs[1]["wrong_shapes"]["text"]


def test_the_signatures_of_a_tflite_file_are_found_without_reading_it(process: Process) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    first, second = process("signatures"), process("signatures")
    assert first["signatures"].pop("loaded") and second["signatures"].pop("loaded") == []
    assert first["signatures"] == second["signatures"] == {"added": 9, "got": [2, 3, 4], "reset": [0, 0, 0], "again": [1, 2, 3],
                                                           "names": ["add", "get", "reset"]}
    assert COMPILER in first["signatures loaded"] and second["signatures loaded"] == []


def test_whatever_a_user_has_can_be_pickled_and_copied(runs: Any) -> None:
    for found in (run["copies"] for run in runs):
        assert found["failed"] == {} and found["value"] == [6, 1] and not found["has text"]
        assert found["problem"].startswith("several.mlir:11:") and "%0 = tosa.variable_read" in found["problem"]


def test_each_model_gives_the_same_from_the_cache(process: Process) -> None:
    first, second = process("models"), process("models")
    assert first["models"] == second["models"] and len(first["models"]) > 30


def test_other_shapes_are_compiled(process: Process) -> None:
    process("open_extents")
    found = process("other_shapes", "open_extents")
    assert COMPILER in found["other_shapes loaded"] and found["other_shapes"]["y"] == [[2, 2, 2]] * 5


def test_a_user_s_own_code_is_never_kept(process: Process, cache: Folder) -> None:
    found = process("own_algorithm", "own_operator")
    assert found["own_algorithm"]["y"] == [1, 2, 3, 4] and found["own_operator"]["y"] == [2, 2]
    assert not any(files(cache, kind) for kind in ("code", "entry", "model"))


def test_a_user_s_operator_in_the_place_of_tosa_s_is_used(process: Process) -> None:
    process("call")
    assert process("own_operator_in_tosa_s_place")["own_operator_in_tosa_s_place"]["first"] == [102, 103, 104, 105]
    assert process("call")["call"]["first"] == [2, 3, 4, 5]


def test_keys_do_not_depend_on_the_hash_seed(process: Process, tmp_path: Path) -> None:
    first = process("call", "state", "traced", "digests", PYTHONHASHSEED="1")["digests"]
    second = process("call", "state", "traced", "digests", PYTHONHASHSEED="2")["digests"]
    assert first == second and len(first["files"]) > 6


def test_the_off_switch_keeps_and_finds_nothing(process: Process, cache: Folder) -> None:
    process("call", TOSAIC_CACHE="off")
    assert not files(cache)
    process("call")
    assert files(cache) and COMPILER in process("call", TOSAIC_CACHE="OFF")["call loaded"]


def test_the_folder_follows_the_environment(process: Process, tmp_path: Path) -> None:
    process("call", TOSAIC_CACHE="", XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert list((tmp_path / "xdg/tosaic/code").glob("*.code"))
    process("call", TOSAIC_CACHE="", XDG_CACHE_HOME="", HOME=str(tmp_path / "home"))
    assert list((tmp_path / "home/.cache/tosaic/code").glob("*.code"))
    assert (tmp_path / "home/.cache/tosaic/code").stat().st_mode & 0o777 == 0o700
