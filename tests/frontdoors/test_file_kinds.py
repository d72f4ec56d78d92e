"""What a file is shows in its content: one of each kind in the table, under a name that says something else. What is read here
gives the model; what is not says what it is and what to do."""
from __future__ import annotations

import gzip
import importlib.util
import io
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.models import file_kinds
from tosaic.jit.models.file_kinds import KINDS, kind_of
from tosaic.jit.models.glimpse import HEAD, glimpse_of_bytes, glimpse_of_path
from tosaic.runtime.errors import Problem

DATA = Path(__file__).parents[1] / "data"
TEXT = b"// a comment\nfunc.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }\n"


def field(number: int, value: int | bytes) -> bytes:
    """A field of protobuf with a small number or few bytes."""
    if isinstance(value, int):
        return bytes((number << 3, value))
    key = number << 3 | 2
    return (bytes((key,)) if key < 128 else bytes((key & 127 | 128, key >> 7))) + bytes((len(value),)) + value


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as found:
        for name in names:
            found.writestr(name, "x")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as found:
        found.addfile(tarfile.TarInfo("model.onnx"))
    return file.getvalue()


def numpy_file(save: Callable[..., None]) -> bytes:
    file = io.BytesIO()
    save(file, np.arange(3))
    return file.getvalue()


NODE = field(1, field(1, b"x") + field(2, b"Placeholder"))
FILES: dict[str, bytes | tuple[str, ...]] = {
    "saved_model": ("saved_model.pb", "variables/"), "core_ml_package": ("Manifest.json", "Data/"),
    "checkpoint": ("checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001"),
    "hugging_face": ("config.json", "model.safetensors"), "folder": ("readme.txt",),
    "empty": b" \n", "zeros": bytes(100), "tosa": b"\x10\0\0\0TOSA", "tflite": b"\x1c\0\0\0TFL3", "bytecode": b"ML\xefR\r",
    "keras": archive("metadata.json", "config.json", "model.weights.h5"), "hdf5": b"\x89HDF\r\n\x1a\n\0",
    "aot_inductor": archive("m/data/aotinductor/model/m.so", "m/archive_format", "m/x.json"),
    "exported_program": archive("m/archive_format", "m/models/model.json"),
    "torchscript": archive("m/data.pkl", "m/constants.pkl", "m/code/x.py"), "torch_zip": archive("m/data.pkl", "m/data/0"),
    "pickle": pickle.dumps({"w": 1}), "numpy_archive": archive("x.npy", "y.npy"), "numpy": numpy_file(np.save),
    "safetensors": b"\x02\0\0\0\0\0\0\0" + b'{"w":{}}', "gguf": b"GGUF\3\0\0\0", "circle": b"\x1c\0\0\0CIR0",
    "executorch": b"\x1c\0\0\0ET12", "ort": b"\x1c\0\0\0ORTM", "mnn": b"7767517\n3 3\n", "tensor_rt": b"ptrt\0\0\0\0",
    "saved_model_file": field(1, 1) + field(2, field(1, field(4, b"serve"))),
    "core_ml": field(1, 4) + field(2, field(1, field(1, b"image"))), "onnx": field(1, 8) + field(2, b"pytorch"),
    "graph_def": NODE, "caffe": field(1, b"net") + field(100, field(1, b"conv")),
    "broken_zip": archive("a", "b")[:40], "zip": archive("model.onnx"), "gzip": gzip.compress(TEXT), "bzip2": b"BZh91AY&SY",
    "xz": lzma.compress(TEXT), "zstd": b"\x28\xb5\x2f\xfd\x04", "7z": b"7z\xbc\xaf\x27\x1c\0\4", "tar": tarred(),
    "image": b"\x89PNG\r\n\x1a\n\0\0", "sound": b"RIFF\x24\0\0\0WAVE", "pdf": b"%PDF-1.7\n", "machine_code": b"\x7fELF\2\1",
    "lfs_pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "open_vino": b'<?xml version="1.0"?>\n<net name="m" version="11">', "web_page": b"\n<!DOCTYPE html><html>",
    "xml": b"<?xml version='1.0'?><a/>", "onnx_text": b"<ir_version: 8, opset_import: [\"\": 17]>\nagraph",
    "protobuf_text": b'node {\n  name: "x"\n', "caffe_text": b'name: "net"\nlayer {', "tensorflow_js": b'{"modelTopology": {}}',
    "json": b'{"class_name": "Functional"}', "utf16": "module {}".encode("utf-16"), "text": TEXT, "unknown": b"\xd7\0\1\xff"}
"""A file of each kind, as small as it shows; names of what is in a folder."""


def write(where: Path, content: bytes | tuple[str, ...]) -> Path:
    """The file, or the folder, under a name that says nothing."""
    path = where / "model.onnx"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    path.mkdir()
    for name in content:
        (path / name).mkdir() if name.endswith("/") else (path / name).write_bytes(b"x")
    return path


def test_there_is_a_file_of_each_kind() -> None:
    assert [kind.name for kind in KINDS if kind.name not in FILES] == [] and len(FILES) == len(KINDS)


@pytest.mark.parametrize("name", FILES)
def test_a_kind_is_told_by_content_and_what_is_not_read_says_what_to_do(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, FILES[name])
    kind = kind_of(glimpse_of_path(path))
    assert kind.name == name
    if isinstance(FILES[name], bytes):
        assert kind_of(glimpse_of_bytes(FILES[name])) is kind  # type: ignore[arg-type]
    if kind.reader is None:
        with pytest.raises(Problem) as caught:
            tosaic.load(path)
        problem = caught.value
        assert problem.kind == "file" and problem.message.startswith(f"{path} is {kind.words}")
        assert problem.help == kind.help != ""
    else:
        assert bool(kind.extra) == bool(kind.packages)


@pytest.mark.parametrize("name", [kind.name for kind in KINDS if kind.extra])
def test_a_file_whose_reader_is_missing_names_the_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = next(k for k in KINDS if k.name == name)
    found = importlib.util.find_spec
    hidden = lambda package, *rest: None if package in kind.packages else found(package, *rest)  # noqa: E731
    monkeypatch.setattr(file_kinds, "find_spec", hidden)
    if name in ("tflite", "onnx"):  # read by parts; the other's tests hide them
        assert f'pip install "tosaic[{kind.extra}]"' in str(file_kinds.missing_extra(kind, "m"))
        return
    with pytest.raises(Problem) as caught:
        tosaic.load(write(tmp_path, FILES[name]))
    assert kind.words in caught.value.message and caught.value.help == f'pip install "tosaic[{kind.extra}]"'


@pytest.mark.parametrize("name", ["corpus/f_mlp.mlir", "torch_mlir/table.mlirbc", "corpus/f_mlp.tflite", "onnx/perceptron.onnx",
                                  "tosa"])
def test_files_are_read_whatever_they_are_called_and_from_standard_input(
        name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith((".tflite", ".onnx")):
        pytest.importorskip({"e": "tosa_converter_for_tflite", "x": "onnx"}[name[-1]])
    path = tmp_path / "model.png"
    if name == "tosa":
        assert main(["convert", str(DATA / "corpus" / "f_mlp.mlir"), str(tmp_path / "m.tosa")]) == 0
        name = str(tmp_path / "m.tosa")
    data = (DATA / name).read_bytes()
    path.write_bytes(data)
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["show", "-"]) == 0 and capsys.readouterr().out == shown
    assert "func.func" in shown and len(tosaic.load(data)) == len(tosaic.load(io.BytesIO(data))) == len(tosaic.load(path)) > 0


def test_a_folder_an_address_and_a_file_that_is_not_there_are_said_by_every_command(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "show", "report", "check", "compile", "profile"):
        for model, said in ((str(tmp_path), "is a folder without saved_model.pb"), ("https://a.b/c.onnx", "download it first"),
                            (str(tmp_path / "no"), "No such file")):
            assert main([command, model]) == 3
            assert said in capsys.readouterr().err


def test_text_that_is_no_mlir_says_what_is_read() -> None:
    with pytest.raises(Problem) as caught:
        tosaic.load(b"layers: 3\nactivation: relu\n", "m.yaml")
    assert caught.value.message.startswith("m.yaml is text, and no MLIR: ") and "tosaic reads MLIR" in str(caught.value.help)


@pytest.mark.parametrize("operation", ["%0 = stablehlo.add %x, %x : tensor<2xf32>",
                                       '%0 = "stablehlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>'])
def test_stablehlo_is_named_with_the_next_step(operation: str) -> None:
    text = f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n {operation}\n return %0 : tensor<2xf32>\n}}"
    with pytest.raises(Problem) as caught:
        tosaic.load(text).main.compile()
    assert "stablehlo.add" in caught.value.message and "@tosaic.jit" in str(caught.value.help)


@pytest.mark.parametrize("data, said", [(b"ML\xefR\x0dStableHLO_v1.9.1\0", "@tosaic.jit"),
                                        (b"ML\xefR\x0dMLIR23\0", "print it as text")])
def test_bytecode_of_something_else_says_so(data: bytes, said: str) -> None:
    with pytest.raises(Problem, match="is MLIR bytecode that cannot be read") as caught:
        tosaic.load(data)
    assert said in str(caught.value.help)


def test_a_byte_order_mark_of_utf8_is_passed_over() -> None:
    assert tosaic.load(b"\xef\xbb\xbf" + TEXT).main.name == "main"


def test_a_letter_that_the_page_cuts_is_still_text() -> None:
    for shift in range(4):
        assert kind_of(glimpse_of_bytes(b"//" + b" " * (HEAD - 4 + shift) + "é漢".encode() * 8 + b"\n" + TEXT)).name == "text"


def test_an_object_of_another_package_names_the_function_that_takes_it() -> None:
    onnx = pytest.importorskip("onnx")
    with pytest.raises(Problem) as caught:
        tosaic.load(onnx.ModelProto())
    assert caught.value.help == "tosaic.from_onnx(model) takes it"


# ---- what other systems read -------------------------------------------------------------------------------------------------
def test_an_exported_program_of_pytorch_computes_what_pytorch_does(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason='the extra is not installed: pip install "tosaic[torch]"')
    pytest.importorskip("torch_mlir")
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()).eval()
    x = torch.randn(4, 3)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "m.pt2")
    (tmp_path / "m.pt2").rename(tmp_path / "m.bin")
    found = tosaic.load(tmp_path / "m.bin")(x.numpy())
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=0, atol=1e-6)


def test_keras_files_saved_models_and_graphs_compute_what_tensorflow_does(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason='the extra is not installed: pip install "tosaic[tensorflow]"')
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="tanh")])
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    expected = model(x).numpy()
    for name in ("m.keras", "m.h5"):
        model.save(tmp_path / name)
        (tmp_path / name).rename(tmp_path / "m.bin")
        np.testing.assert_allclose(tosaic.load(tmp_path / "m.bin")(x), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(tosaic.load((tmp_path / "m.bin").read_bytes())(x), expected, rtol=0, atol=1e-6)
    model.save_weights(tmp_path / "m.weights.h5")
    with pytest.raises(Problem, match="without a network"):
        tosaic.load(tmp_path / "m.weights.h5")

    module = tf.Module()
    module.scale = tf.Variable(2.0, name="scale")
    module.f = tf.function(lambda x: x * module.scale, input_signature=[tf.TensorSpec([2], tf.float32)])
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"f": module.f})
    found = tosaic.load(tmp_path / "saved")
    assert found.f(np.array([1, 2], np.float32))["output_0"].tolist() == [2, 4]
    assert main(["convert", str(tmp_path / "saved"), str(tmp_path / "saved.tosa")]) == 0
    assert tosaic.load(tmp_path / "saved.tosa")(np.array([1, 2], np.float32)).tolist() == [2, 4]
    with pytest.raises(Problem, match="the graph of a SavedModel, without its variables"):
        tosaic.load(tmp_path / "saved" / "saved_model.pb")

    graph = tf.Graph()
    with graph.as_default():
        tf.nn.relu(tf.compat.v1.placeholder(tf.float32, (2,), name="x") * 2)
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    assert tosaic.load(tmp_path / "graph.pb")(np.array([-1, 2], np.float32)).tolist() == [0, 4]
