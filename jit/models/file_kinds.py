"""The kind of a model's file, determined by its content and never by its name: one table of the kinds that can be read and of
those that cannot.

`kind_of` takes a glimpse and returns the first kind that matches. A readable kind names its reader and the extra that the
reader needs; any other kind says what to do instead. To read another kind of file, or to give a better message for one, add a
row.
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from .glimpse import Glimpse, glimpse_of_bytes, glimpse_of_path
from .protobuf_marks import is_caffe_model, is_graph_def, is_saved_model, is_versioned_message

Reader = Literal["module", "TensorFlow", "PyTorch"]
"""The reader of a file: `read.read_module`, or another system, in whose package the reader is (`foreign_files`)."""
READ = ("MLIR text and bytecode, .tosa, .tflite and .onnx files, PyTorch's .pt2, Keras files, a SavedModel's folder, "
        "TensorFlow's graphs")
"""The formats that tosaic reads, for messages."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file. `words` describe it, in a sentence that begins with the file's name and `is`. `reader` is None if it
    cannot be read, and `help` then says what to do; `packages` are those that the reader imports, and `extra` provides them."""
    name: str
    words: str
    matches: Callable[[Glimpse], bool]
    reader: Reader | None = None
    extra: str = ""
    packages: tuple[str, ...] = ()
    help: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(package for package in self.packages if find_spec(package) is None)


# ---- recognising a kind --------------------------------------------------------------------------------------------------
def begins(*marks: bytes) -> Callable[[Glimpse], bool]:
    return lambda it: it.head.startswith(marks)


def at_4(*marks: bytes) -> Callable[[Glimpse], bool]:
    """Match files of FlatBuffers, which have four letters after the first offset."""
    return lambda it: it.head[4:8] in marks


def has(*names: str) -> Callable[[Glimpse], bool]:
    """Match an archive, or a folder, with these names."""
    return lambda it: it.has(*names)


def text(pattern: str) -> Callable[[Glimpse], bool]:
    """Match a text that begins with a pattern, after white space."""
    compiled = re.compile(rf"\s*(?:{pattern})")
    return lambda it: (found := it.text) is not None and compiled.match(found) is not None


def is_zip(it: Glimpse) -> bool:
    return it.head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_safetensors(it: Glimpse) -> bool:
    return it.head[8:10] == b'{"' and int.from_bytes(it.head[:8], "little") < max(it.size, 1)


CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f]")
"""Bytes that do not occur in text."""
EXPORT_TORCH = "export it where its class is: torch.export.save(torch.export.export(module.eval(), (x,)), \"model.pt2\"), or " \
               "pass the module to tosaic.from_torch(module, x)"
EXPORT_WEIGHTS = "these are numbers without the network that uses them: build it in its framework, load them there, and " \
                 "export it (torch.export.save, model.save of Keras, ONNX)"
UNPACK = "unpack it first, and give the model that is in it"
NO_MODEL = f"tosaic reads {READ}"
ORIGINAL = "give the model that it was made from: tosaic reads .tflite and .onnx files, .pt2, Keras files and SavedModels"

KINDS: tuple[Kind, ...] = (
    # Folders.
    Kind("saved_model", "a SavedModel", lambda it: it.is_folder and it.has("saved_model.pb"), "TensorFlow", "tensorflow",
         ("tensorflow",)),
    Kind("core_ml_package", "a package of Core ML", lambda it: it.is_folder and it.has("Manifest.json"), help=ORIGINAL),
    Kind("checkpoint", "a folder with a checkpoint of TensorFlow",
         lambda it: it.is_folder and it.ends_with(".index", ".data-00000-of-00001"), help=EXPORT_WEIGHTS),
    Kind("hugging_face", "a folder of Hugging Face, with weights and a configuration",
         lambda it: it.is_folder and it.has("config.json") and (it.ends_with(".safetensors") or it.has("pytorch_model.bin")),
         help="export the network: optimum-cli export onnx --model FOLDER OUT, or torch.export.save"),
    Kind("folder", "a folder without saved_model.pb, so no SavedModel", lambda it: it.is_folder,
         help="give a model's file, or the folder that saved_model.pb is in"),
    # Nothing.
    Kind("empty", "empty", lambda it: not it.head.strip(), help="a download or an export ended early: make the file again"),
    Kind("zeros", "nothing but zeros", lambda it: not it.head.strip(b"\0"),
         help="a download or a copy ended early: make the file again"),
    # What is read, by marks.
    Kind("tosa", "a .tosa file", at_4(b"TOSA"), "module"),
    Kind("tflite", "a .tflite file", at_4(b"TFL3"), "module", "tflite", ("tosa_converter_for_tflite",)),
    Kind("bytecode", "MLIR bytecode", begins(b"ML\xefR"), "module"),
    Kind("keras", "a Keras model", has("config.json", "metadata.json", "model.weights.h5"), "TensorFlow", "tensorflow",
         ("tensorflow",)),
    Kind("hdf5", "an HDF5 file of Keras", begins(b"\x89HDF\r\n\x1a\n"), "TensorFlow", "tensorflow", ("tensorflow",)),
    Kind("aot_inductor", "a package of AOTInductor", lambda it: is_zip(it) and any("data/aotinductor/" in n for n in it.names),
         help=EXPORT_TORCH),
    Kind("exported_program", "an exported program of PyTorch",
         lambda it: is_zip(it) and (it.ends_with("archive_format", ".json") or it.has("serialized_exported_program.json")),
         "PyTorch", "torch", ("torch", "torch_mlir")),
    # What is not: other models.
    Kind("torchscript", "a TorchScript model of PyTorch", lambda it: is_zip(it) and it.ends_with("constants.pkl", "data.pkl"),
         help=EXPORT_TORCH),
    Kind("torch_zip", "a pickle of PyTorch", lambda it: is_zip(it) and it.ends_with("data.pkl"), help=EXPORT_TORCH),
    Kind("pickle", "a pickle of Python, such as torch.save and joblib write, which runs code of its maker when it is read",
         lambda it: it.head[:1] == b"\x80" and it.head[1:2] in b"\2\3\4\5", help=EXPORT_TORCH),
    Kind("numpy_archive", "an archive of NumPy arrays", lambda it: is_zip(it) and bool(it.names) and all(
        n.endswith(".npy") for n in it.names), help="arrays are inputs: tosaic run MODEL --input FILE.npz"),
    Kind("numpy", "an array of NumPy", begins(b"\x93NUMPY"), help="arrays are inputs: tosaic run MODEL --input x=FILE.npy"),
    Kind("safetensors", "a file of weights (safetensors)", is_safetensors, help=EXPORT_WEIGHTS),
    Kind("gguf", "a file of weights of llama.cpp (GGUF)", begins(b"GGUF", b"ggml", b"ggjt", b"lmgg"), help=EXPORT_WEIGHTS),
    Kind("circle", "a Circle model of ONE", at_4(b"CIR0"), help="give the .tflite that it was made from"),
    Kind("executorch", "a program of ExecuTorch", lambda it: it.head[4:6] == b"ET" and it.head[6:8].isdigit(),
         help=EXPORT_TORCH),
    Kind("ort", "a model in the format of ONNX Runtime", at_4(b"ORTM"), help="give the .onnx that it was made from"),
    Kind("mnn", "a model of MNN or NCNN", text("7767517"), help=ORIGINAL),
    Kind("tensor_rt", "an engine of TensorRT, which is code for one GPU", begins(b"ptrt", b"ftrt"),
         help="give the ONNX file that it was made from"),
    Kind("saved_model_file", "the graph of a SavedModel, without its variables", lambda it: is_saved_model(it.head),
         help="give the folder that it is in"),
    Kind("core_ml", "a Core ML model", lambda it: it.head[:1] == b"\x08" and is_versioned_message(it.head), help=ORIGINAL),
    Kind("onnx", "an ONNX model", begins(b"\x08"), "module", "onnx", ("onnx",)),
    Kind("graph_def", "a graph of TensorFlow", lambda it: is_graph_def(it.head), "TensorFlow", "tensorflow", ("tensorflow",)),
    Kind("caffe", "a model of Caffe", lambda it: is_caffe_model(it.head), help="convert it to ONNX: caffe2onnx, or MMdnn"),
    # What is not: packed, and everything else that has a mark.
    Kind("broken_zip", "a zip archive (as .pt2 and .keras files are) without its table of contents",
         lambda it: is_zip(it) and not it.is_whole, help="a download or a copy ended early: make the file again"),
    Kind("zip", "a zip archive, and neither a .pt2 nor a .keras file", is_zip, help=UNPACK),
    Kind("gzip", "packed with gzip", begins(b"\x1f\x8b"), help=UNPACK),
    Kind("bzip2", "packed with bzip2", begins(b"BZh"), help=UNPACK),
    Kind("xz", "packed with xz", begins(b"\xfd7zXZ\0"), help=UNPACK),
    Kind("zstd", "packed with Zstandard", begins(b"\x28\xb5\x2f\xfd"), help=UNPACK),
    Kind("7z", "a 7-Zip archive", begins(b"7z\xbc\xaf\x27\x1c"), help=UNPACK),
    Kind("tar", "a tar archive", lambda it: it.head[257:262] == b"ustar", help=UNPACK),
    Kind("image", "an image", begins(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"BM6"), help=NO_MODEL),
    Kind("sound", "a sound", lambda it: it.head[:4] == b"RIFF" or it.head[:3] == b"ID3", help=NO_MODEL),
    Kind("pdf", "a PDF document", begins(b"%PDF"), help=NO_MODEL),
    Kind("machine_code", "machine code: a program, a library or an object file",
         begins(b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"!<arch>"), help=NO_MODEL),
    # Texts.
    Kind("lfs_pointer", "a pointer of Git LFS: a few lines that stand for the file", text("version https://git-lfs"),
         help="get the file itself: git lfs pull"),
    Kind("open_vino", "a model of OpenVINO", text(r"(?:<\?xml[^>]*\?>\s*)?<net\b"),
         help="give the model that it was converted from, such as an ONNX file"),
    Kind("web_page", "a web page, perhaps of the server that a download was asked of", text(r"(?i:<!doctype html|<html)"),
         help="download the file itself: of a repository, its raw file"),
    Kind("xml", "XML", text(r"<\?xml|<!DOCTYPE"), help=NO_MODEL),
    Kind("onnx_text", "ONNX as text", text(r"<\s*ir_version\s*:"),
         help='write it as a file: onnx.save(onnx.parser.parse_model(text), "model.onnx")'),
    Kind("protobuf_text", "a graph of TensorFlow or ONNX as text of protobuf", text(r"node \{|ir_version: *\d"),
         help="write it in its binary form: SerializeToString of the message, google.protobuf.text_format reads it"),
    Kind("caffe_text", "a network of Caffe, without weights", text(r'name: "[^"]*"\s+(?:input|layer)'),
         help="convert it to ONNX, together with its .caffemodel"),
    Kind("tensorflow_js", "a model of TensorFlow.js", lambda it: it.text is not None and '"modelTopology"' in it.head.decode(
        errors="replace"), help="convert it to a SavedModel: tensorflowjs_converter --output_format=tf_saved_model"),
    Kind("json", "JSON", text(r'\{\s*"|\[\s*[\[{"\d]'), help=f"{NO_MODEL}; a report of tosaic is for tosaic report"),
    Kind("utf16", "text in UTF-16", begins(b"\xff\xfe", b"\xfe\xff"), help="save it as UTF-8"),
    Kind("text", "MLIR text", lambda it: it.text is not None or CONTROL.search(it.head) is None, "module"),
    Kind("unknown", "no text, and no kind of file that is known here", lambda it: True,
         help=f"a file that is cut off or damaged may look so; {NO_MODEL}"))
"""Kinds of files; the first match applies. The order matters because some marks are short."""


def kind_of(glimpse: Glimpse) -> Kind:
    return next(kind for kind in KINDS if kind.matches(glimpse))


def kind_of_path(path: str | os.PathLike[str], name: str) -> Kind:
    """Return the kind of a file or folder; raise a Problem if it cannot be read here."""
    return readable(glimpse_of_path(path), name)


def kind_of_bytes(data: bytes | memoryview, name: str) -> Kind:
    return readable(glimpse_of_bytes(data), name)


def readable(glimpse: Glimpse, name: str) -> Kind:
    """Return the kind; raise a Problem with help if it cannot be read, or its reader is not installed."""
    kind = kind_of(glimpse)
    if kind.reader is None:
        inside = f": {', '.join(glimpse.names[:3])}{', ...' * (len(glimpse.names) > 3)}" if kind.name in (
            "zip", "folder") and glimpse.names else ""
        said = kind.words + inside
        is_other = kind.help.startswith(NO_MODEL)
        raise Problem(f"{name} is {said}{' and no model' if is_other else ''}", kind="file", help=kind.help)
    if kind.name not in ("tflite", "onnx") and kind.missing:  # their readers report this themselves, when they need it
        raise missing_extra(kind, name)
    return kind


def missing_extra(kind: Kind, name: str) -> Problem:
    """Return the Problem that says what to install to read a file."""
    packages = " and ".join(package.replace("_", "-") for package in kind.missing)
    return Problem(f"{name} is {kind.words}, and {packages}, which {'read' if len(kind.missing) > 1 else 'reads'} it, "
                   f"{'are' if len(kind.missing) > 1 else 'is'} not installed", kind="file",
                   help=f'pip install "tosaic[{kind.extra}]"')
