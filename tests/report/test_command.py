"""`tosaic report` with its options: answers, files, exit codes."""
from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from tosaic.jit.command_line.cli import main

from .subjects import DATA

MODEL = str(DATA / "corpus" / "v_lstm.mlir")
OTHER = str(DATA / "corpus" / "f_mobilenet_block.mlir")


@pytest.fixture
def tosaic(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `tosaic report`: (exit code, standard output, standard error)."""
    def run(*arguments: Any) -> tuple[int, str, str]:
        code = main(["report", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return run


def test_the_report_has_a_ladder_and_code_where_asked(tosaic: Any) -> None:
    code, out, err = tosaic(MODEL, "--target", "cortex-m7")
    assert (code, err) == (0, "") and "every value" in out and "\n  code " not in out
    assert "\n  code " in tosaic(MODEL, "--target", "cortex-m7", "--code")[1]


def test_fit_ends_in_0_where_everything_fits_and_in_1_where_not(tosaic: Any) -> None:
    assert tosaic(MODEL, "--target", "cortex-m7", "--fit", "sram:256K,flash:1M")[0] == 0
    code, out, _ = tosaic(MODEL, "--target", "cortex-m7", "--fit", "sram:16,flash:1M")
    assert code == 1 and "over by" in out and "fits" in out
    answer = json.loads(tosaic(MODEL, "--target", "cortex-m7", "--fit", "sram:16,flash:1M", "--json")[1])
    assert answer["fit"]["fits"] is False and answer["object"]["text"] > 0
    ram = answer["fit"]["memories"][0]
    assert ram["nbytes"] - ram["limit"] == ram["over"] == sum(n["nbytes"] for n in ram["counted"]) - 16


def test_a_wrong_fit_is_a_usage_error(tosaic: Any) -> None:
    code, out, err = tosaic(MODEL, "--fit", "lots")
    assert (code, out) == (2, "") and "lots is no memory and size" in err and "help: write for example" in err


def test_a_page_is_written_whole(tosaic: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "new" / "report.html"
    code, out, _ = tosaic(MODEL, "--html", path)
    assert code == 0 and out == f"{path}: {path.stat().st_size:,} bytes\n"
    assert "<title>v_lstm.mlir: " in path.read_text() and [p.name for p in path.parent.iterdir()] == ["report.html"]
    assert tosaic(MODEL, "--html", "/dev/null/report.html")[0] == 3


def test_a_saved_report_is_as_good_as_a_model(tosaic: Any, tmp_path: pathlib.Path) -> None:
    saved = tmp_path / "saved.report"
    saved.write_text(tosaic(MODEL, "--target", "cortex-m7", "--code", "--json")[1])
    assert json.loads(saved.read_text())["name"] and tosaic(saved)[0] == 0
    fresh = tosaic(MODEL, "--target", "cortex-m7", "--fit", "sram:64,flash:1K")
    assert tosaic(saved, "--fit", "sram:64,flash:1K") == fresh
    assert tosaic(saved, "--html", tmp_path / "page.html")[0] == 0
    code, out, _ = tosaic(saved, "--diff", MODEL, "--target", "cortex-m7")
    assert code == 0 and "peak unmoved" in out and "added" not in out


def test_a_diff_tells_what_changes(tosaic: Any) -> None:
    code, out, _ = tosaic(MODEL, "--diff", OTHER)
    assert code == 0 and "buffers added" in out and "arena" in out
    answer = json.loads(tosaic(MODEL, "--diff", OTHER, "--json")[1])
    assert answer["totals"][0]["name"] == "arena" and answer["peak"]["moved"] is True
    assert tosaic(MODEL, "--diff", "missing.mlir")[0] == 3


@pytest.mark.parametrize("option", ["--fit", "--html"])
def test_a_diff_goes_alone(tosaic: Any, option: str) -> None:
    code, _, err = tosaic(MODEL, "--diff", OTHER, option, "a:1K")
    assert code == 2 and "do not go together" in err


def test_json_that_is_no_report_is_a_bad_model(tosaic: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.json").write_text('{"model": 3}')
    code, _, err = tosaic(tmp_path / "x.json")
    assert code == 3 and "no report of tosaic" in err


def test_pools_are_those_of_the_command_line(tosaic: Any, tmp_path: pathlib.Path) -> None:
    pools = ["--workspace-pools", "dtcm,sram", "--workspace-pool-dtcm", "size=3000", "--workspace-io", "--target", "cortex-m7"]
    model = DATA / "corpus" / "f_attention_block.mlir"
    facts = json.loads(tosaic(model, *pools, "--json")[1])
    assert [(p["name"], p["limit"]) for p in facts["pools"]] == [("dtcm", 3000), ("sram", None)]
    code, out, _ = tosaic(model, *pools, "--fit", "dtcm:3000,sram:64K,flash:1M")
    assert code == 0 and "pool dtcm" in out and "pool sram" in out
    assert tosaic(model, *pools, "--html", tmp_path / "pools.html")[0] == 0
    text = (tmp_path / "pools.html").read_text()
    assert "<h2>Pool dtcm</h2>" in text and "<h2>Pool sram</h2>" in text
