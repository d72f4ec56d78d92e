"""Node data for Model Explorer: the format that its documentation gives (by graph, by node, a number each), nodes that are in
the file that it shows, and numbers that the report has.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.tools.model_explorer import ShownFile

from ..flatbuffer.test_viewers import Table, blocks, numbers, tables, text

SAMPLES = Path(__file__).parents[2] / "samples" / "models"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line: (exit code, standard output, standard error)."""
    def command(*arguments: Any) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()
    return command


def values(path: Path) -> dict[tuple[str, str], float]:
    """The numbers of a file of node data, by graph and node; all that the format does not have is a failure."""
    found = {}
    for graph, data in json.loads(path.read_text()).items():
        assert data.keys() == {"name", "results", "gradient"} and data["name"] == path.stem
        assert [stop["stop"] for stop in data["gradient"]] == [0, 1]
        for node, result in data["results"].items():
            assert result.keys() == {"value"}
            found[graph, node] = float(result["value"])
    assert found
    return found


def subgraphs(path: Path) -> dict[str, int]:
    """The subgraphs of a `.tflite`, with the number of operators of each, read by the schema's fields."""
    data = bytearray(path.read_bytes())
    root = Table(data, numbers.UOffsetTFlags.packer_type.unpack_from(data)[0])
    return {text(graph, 4): len(tables(graph, 3)) for graph in tables(root, 2)}


def test_a_tflite_has_numbers_at_its_operators(run: Any, tmp_path: Path) -> None:
    path = SAMPLES / "monitor.tflite"
    code, out, _ = run("report", path, "--entry", "observe", "--model-explorer", tmp_path)
    files = [tmp_path / f"{name}.json" for name in ("bytes", "live_bytes", "terms")]
    assert (code, out) == (0, f"model-explorer {path} --node_data_paths={','.join(map(str, files))}\n")
    known = subgraphs(path)
    assert {graph for graph, _ in values(files[0])} == {"observe", next(n for n in known if n.startswith("cond_true"))}
    assert all(int(node) < known[graph] for file in files for graph, node in values(file))
    assert values(files[0])["observe", "12"] == 1  # LESS of scalars, whose boolean is a byte


def test_of_a_text_the_folder_has_the_flatbuffer_that_is_shown(run: Any, tmp_path: Path) -> None:
    code, out, _ = run("report", SAMPLES / "lstm.mlir", "--model-explorer", tmp_path)
    assert code == 0 and f"model-explorer {tmp_path / 'lstm.tosa'} --extensions=tosa_adapter_model_explorer" in out
    block, = blocks((tmp_path / "lstm.tosa").read_bytes())
    nodes = {("main", f"main/op{i}") for i, _ in enumerate(block.operators)}
    report = tosaic.load(SAMPLES / "lstm.mlir").main.lower().report()
    assert values(tmp_path / "bytes.json").keys() <= nodes and report.peak is not None
    assert max(values(tmp_path / "live_bytes.json").values()) == report.peak.nbytes
    written = {b.name: b.nbytes for b in (*report.buffers, *report.outputs, *report.variables) if b.kind != "constant"}
    assert sum(values(tmp_path / "bytes.json").values()) == sum(written.values())


def test_a_profile_has_microseconds_at_the_same_nodes(run: Any, tmp_path: Path) -> None:
    run("report", SAMPLES / "lstm.mlir", "--model-explorer", tmp_path)
    code, out, _ = run("profile", SAMPLES / "lstm.mlir", "--calls", 2, "--model-explorer", tmp_path, "--json")
    answer = json.loads(out)
    assert code == 0 and answer["model_explorer"]["data"] == [str(tmp_path / "microseconds.json")]
    found = values(tmp_path / "microseconds.json")
    assert found.keys() == values(tmp_path / "bytes.json").keys()
    assert sum(found.values()) == pytest.approx(sum(k["least"] for k in answer["kernels"]) / 1e3, abs=1e-4)


def test_the_only_function_is_found_whatever_it_is_called(run: Any, tmp_path: Path) -> None:
    model = tmp_path / "m.mlir"
    model.write_text("func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %0 = tosa.exp %x : (tensor<2xf32>) -> tensor<2xf32> "
                     "return %0 : tensor<2xf32> }")
    assert run("report", model, "--entry", "f", "--model-explorer", tmp_path / "out")[0] == 0
    assert values(tmp_path / "out" / "bytes.json") == {("main", "main/op0"): 8}


def test_a_place_that_is_no_operator_has_no_node() -> None:
    position = tosaic.load(SAMPLES / "lstm.mlir").main.lower().program.kernels[0].position
    assert position is not None and ShownFile().node(position) is None and ShownFile().node(None) is None


@pytest.mark.parametrize("other", [["--html", "x.html"], ["--fit", "sram:1K"], ["--boards", "all"], ["--diff", "x"]])
def test_it_is_an_answer_of_its_own(run: Any, tmp_path: Path, other: list[str]) -> None:
    code, _, err = run("report", SAMPLES / "lstm.mlir", "--model-explorer", tmp_path, *other)
    assert code == 2 and "do not go together" in err and not list(tmp_path.iterdir())
