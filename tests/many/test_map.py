"""`map`: a model over files, rows of a Zarr store and of Parquet files. What it writes is what calls in this process give."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.many.map_inputs import MapResult, map_inputs

from .in_this_process import InThisProcess

SUM = """module {
  tosa.variable @map_seen = dense<0.0> : tensor<2xf32>
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %old = tosa.variable_read @map_seen : tensor<2xf32>
    %new = tosa.add %old, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    tosa.variable_write @map_seen, %new : tensor<2xf32>
    return %new : tensor<2xf32>
  }
}"""
PAIR = """func.func @main(%a: tensor<1x2xf32>, %b: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %0 = tosa.add %a, %b : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  %1 = tosa.sub %a, %b : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  return %0, %1 : tensor<1x2xf32>, tensor<1x2xf32>
}"""
OPEN = """func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tosa.add %x, %x : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}"""
A = np.arange(14, dtype=np.float32).reshape(7, 2)
B = A[::-1] * 3


def mapped(text: str, paths: Any, output: Path, workers: InThisProcess | None = None) -> MapResult:
    model = tosaic.load(text)
    paths = paths if isinstance(paths, list) else [paths]
    return map_inputs(model, model.main, [str(p) for p in paths], str(output), workers or InThisProcess())


def saved(folder: Path, **arrays: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def test_a_file_is_a_sequence_of_calls_and_begins_with_the_initial_values(tmp_path: Path) -> None:
    source = saved(tmp_path / "in", one=A[0], many=A) and saved(tmp_path / "in" / "below", other=B)
    found = mapped(SUM, tmp_path / "in", tmp_path / "out")
    assert source.exists() and (found.items, found.calls, found.errors) == (3, 15, {})
    assert np.array_equal(np.load(tmp_path / "out" / "one.npy"), A[0])
    assert np.array_equal(np.load(tmp_path / "out" / "many.npy"), np.cumsum(A, 0))
    assert np.array_equal(np.load(tmp_path / "out" / "below" / "other.npy"), np.cumsum(B, 0))


def test_several_inputs_and_outputs_are_npz_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", a=A, b=B)
    found = mapped(PAIR, tmp_path / "rows.npz", tmp_path / "out")
    with np.load(tmp_path / "out" / "rows.npz") as results:
        assert found.calls == 7
        assert np.array_equal(results["result0"], A + B) and np.array_equal(results["result1"], A - B)


def test_open_extents_are_those_of_each_file(tmp_path: Path) -> None:
    saved(tmp_path / "in", one=A[:1], many=A)
    found = mapped(OPEN, tmp_path / "in", tmp_path / "out")
    assert found.calls == 2 and np.array_equal(np.load(tmp_path / "out" / "many.npy"), A + A)


def test_a_wrong_input_is_an_error_by_its_name_and_the_others_go_on(tmp_path: Path) -> None:
    saved(tmp_path / "in", good=A[0], wrong=np.zeros((3, 3), np.float32), whole=np.zeros(2, np.int32))
    (tmp_path / "in" / "text.npy").write_text("no array")
    found = mapped(SUM, tmp_path / "in", tmp_path / "out")
    assert found.items == 1 and sorted(found.errors) == ["text", "whole", "wrong"]
    assert "x is [3, 3] for f32 [2]" in found.errors["wrong"] and "it is no .npy or .npz file" in found.errors["text"]


def test_a_second_run_does_what_is_left_and_what_has_changed(tmp_path: Path) -> None:
    saved(tmp_path / "in", a=A[0], b=A[1], c=A[2])
    with pytest.raises(KeyboardInterrupt):
        mapped(SUM, tmp_path / "in", tmp_path / "out", InThisProcess(most=2))
    left = tmp_path / "out" / ".c.npy.123"                           # by a process that was killed while it wrote
    left.write_bytes(b"half")
    again = InThisProcess()
    assert mapped(SUM, tmp_path / "in", tmp_path / "out", again).before == 2 and again.ran == 1
    assert not left.exists()
    saved(tmp_path / "in", b=A)
    assert mapped(SUM, tmp_path / "in", tmp_path / "out").items == 1
    assert np.array_equal(np.load(tmp_path / "out" / "b.npy"), np.cumsum(A, 0))


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "in", a=A[0])
    mapped(SUM, tmp_path / "in", tmp_path / "out")
    with pytest.raises(tosaic.Problem, match="its model is another"):
        mapped(SUM.replace("dense<0.0>", "dense<1.0>"), tmp_path / "in", tmp_path / "out")
    with pytest.raises(tosaic.Problem, match="is not empty"):
        mapped(SUM, tmp_path / "in", tmp_path / "in")


def test_two_files_with_one_result_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "in", a=A[0])
    np.savez(tmp_path / "in" / "a.npz", x=A[0])
    with pytest.raises(tosaic.Problem, match="would have one result, a"):
        mapped(SUM, tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("text", [SUM, OPEN])
def test_rows_of_a_zarr_array_are_calls_by_themselves(tmp_path: Path, text: str) -> None:
    zarr = pytest.importorskip("zarr", reason="Zarr stores need the package zarr")
    zarr.create_array(store=str(tmp_path / "in.zarr"), shape=A.shape, chunks=(3, 2), dtype="f4")[:] = A
    found = mapped(text, tmp_path / "in.zarr", tmp_path / "out")
    assert (found.items, found.errors) == (3, {})
    store = zarr.open(str(tmp_path / "out" / "result0.zarr"))
    assert store.chunks == (3, 2) and np.array_equal(store[:], A if text == SUM else A + A)


def test_a_group_of_zarr_has_an_array_for_each_input(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="Zarr stores need the package zarr")
    group = zarr.open_group(str(tmp_path / "in.zarr"), mode="w")
    for name, array in (("a", A), ("b", B)):
        group.create_array(name, shape=A.shape, chunks=(2, 2), dtype="f4")[:] = array
    mapped(PAIR, tmp_path / "in.zarr", tmp_path / "out")
    assert np.array_equal(zarr.open(str(tmp_path / "out" / "result1.zarr"))[:], A - B)


def test_rows_of_parquet_files_are_calls_by_themselves(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet files need the package pyarrow")
    import pyarrow
    columns = {name: pyarrow.array(x.tolist(), pyarrow.list_(pyarrow.float32())) for name, x in (("a", A), ("b", B))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet", row_group_size=3)
    found = mapped(PAIR.replace("1x2", "2"), tmp_path / "rows.parquet", tmp_path / "out")
    assert (found.items, found.calls, found.errors) == (3, 7, {})
    table = parquet.read_table(tmp_path / "out")
    assert table.column("result1").to_pylist() == (A - B).tolist()


def test_the_command_says_what_failed_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sum.mlir").write_text(SUM)
    saved(tmp_path / "in", a=A, b=np.zeros(5, np.float32), c=B)
    arguments = ["map", str(tmp_path / "sum.mlir"), str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--workers", "2"]
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], found["calls"], list(found["errors"])) == (2, 14, ["b"])
    assert np.array_equal(np.load(tmp_path / "out" / "c.npy"), np.cumsum(B, 0))
    (tmp_path / "in" / "b.npy").unlink()
    assert main(arguments) == 0 and "2 were done before" in capsys.readouterr().out


def test_names_of_a_model_lead_to_no_other_folder() -> None:
    from tosaic.jit.many.zarr_rows import store_name
    assert [store_name(n, name) for n, name in enumerate(("scores", "../../x", "", "a b"))] == [
        "scores.zarr", "1-______x.zarr", "2-.zarr", "3-a_b.zarr"]
