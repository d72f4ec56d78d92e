"""ONNX -> TOSA, through torch-mlir (the extra `onnx`; PyTorch is not needed): `tosaic.from_onnx`.

The packages that read the model are native code that may abort, so the whole conversion runs in a process of its own
(`torch_mlir`); here the model is only a file.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Problem, temporary_file
from ....runtime.public_names import public
from ..model import Model, model_of
from ..read import read_bytes
from ..torch_mlir.to_tosa import ConversionRequest, lowered, need, spelled_names, with_names

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array, TensorType
    from ...source import ImportedSource

Shapes = Mapping[str, tuple[int, ...]]


@public("tosaic.from_onnx")
def from_onnx(model: Any, *, shapes: Mapping[str, Sequence[int]] | None = None, name: str | None = None) -> Model:
    """A model from an ONNX file's path, its bytes, an open file, or an `onnx.ModelProto`.

        model = tosaic.from_onnx("model.onnx", shapes={"image": (1, 3, 224, 224)})
        y = model(x)

    Inputs are called as in the file. `shapes` gives inputs their extents where the file leaves some open; those that stay open
    are compiled for the shapes of each call, if torch-mlir can lower the model so. Weights in files beside the model are found
    where a path is given.

    Raises a Problem where a package is missing, the file is no ONNX model, or torch-mlir cannot lower an operation.
    """
    need("onnx", "an ONNX model", ("onnx", "torch_mlir"))
    if isinstance(model, str | os.PathLike):
        read_first_byte(model)
        source: Path | bytes = Path(os.path.abspath(os.fspath(model)))
        shown = os.fspath(model)
    else:
        source, shown = serialized(model)
    conversion = OnnxConversion(source, name or str(shown))
    return conversion.model({key: tuple(map(int, value)) for key, value in (shapes or {}).items()})


@dataclass(frozen=True, slots=True)
class OnnxConversion:
    """A model: its file, or the file's bytes, and what messages call it."""
    source: Path | bytes
    name: str

    def model(self, shapes: Shapes) -> Model:
        """The model. With open extents that torch-mlir cannot lower, its graph is made anew for each set of shapes."""
        metadata: dict[str, Any] = {}
        try:
            found = self.graph(shapes, metadata)
            return model_of(lambda: found, None, imported=self.imported)
        except Problem:
            if "problem" in metadata or not is_open(metadata):
                raise
        from ..open_extents import open_model
        inputs, results = typed(metadata["inputs"]), typed(metadata["results"])
        names = dict(zip(inputs, (name for name, _, _ in metadata["inputs"]), strict=True))
        return open_model(inputs, list(results.values()), "onnx.graph",
                          lambda given: self.graph({names[key]: shape for key, shape in given.items()}, {}), self.imported)

    @property
    def imported(self) -> ImportedSource:
        from .run_onnx import onnx_source
        return onnx_source(self.source, self.first_difference)

    def first_difference(self, entry: str, arrays: Sequence[Array]) -> str | None:
        """The first node whose result the import has otherwise."""
        from .first_difference import first_node
        return first_node(self.source, arrays, lambda data, shapes: OnnxConversion(data, self.name).graph(shapes, {}))

    def graph(self, shapes: Shapes, metadata: dict[str, Any]) -> Module:
        """The graph for these shapes of inputs."""
        if isinstance(self.source, Path):
            return named(lowered(ConversionRequest("onnx", self.source, self.name, shapes), metadata), metadata)
        with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
            path = Path(folder, "model.onnx")
            with temporary_file():
                path.write_bytes(self.source)
            return named(lowered(ConversionRequest("onnx", path, self.name, shapes), metadata), metadata)


def named(module: Module, metadata: Mapping[str, Any]) -> Module:
    return with_names(module, [name for name, _, _ in metadata["inputs"]])


def is_open(metadata: Mapping[str, Any]) -> bool:
    """Whether an input has an extent that is not known."""
    return any(None in extents for _, extents, _ in metadata.get("inputs", ()))


def typed(described: Sequence[tuple[str, Sequence[int | None], str]]) -> dict[str, TensorType]:
    """Types of inputs or results by their names here."""
    from ....lowering.graph.types import BY_STORAGE, TensorType
    types = [TensorType(tuple(extents), BY_STORAGE[element]) for _, extents, element in described]
    return dict(zip(spelled_names([name for name, _, _ in described]), types, strict=True))


def read_first_byte(path: str | os.PathLike[str]) -> None:
    """A Problem unless the file can be read and is not empty."""
    try:
        with open(path, "rb") as file:
            is_empty = not file.read(1)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", kind="file") from None
    if is_empty:
        raise Problem(f"{path} is empty, it is no ONNX model", kind="file")


def serialized(model: Any) -> tuple[bytes, str]:
    """The bytes of a model that is no path, and what messages call it."""
    if not hasattr(model, "SerializeToString"):
        return read_bytes(model)
    try:
        return model.SerializeToString(), str(model.graph.name or "<model>")
    except Exception as error:  # protobuf's own, for more than 2 GiB
        raise Problem(f"the model cannot be written: {error}", kind="file",
                      help="save it with its weights in files beside it, and pass the path") from None
