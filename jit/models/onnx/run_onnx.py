"""An ONNX model run by ONNX Runtime, or by the evaluator of the package onnx."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...source import ImportedSource, Locate, SourceEvaluator, SourceRun, StatelessRun

if TYPE_CHECKING:
    from ....lowering.graph.types import Array

FIRST_OF_REFERENCE = 13
"""First opset version whose operators onnx.reference computes correctly: before it, Softmax flattened its input."""

CAVEAT = ("onnx.reference is known to be wrong for some kinds of Resize, AveragePool and LpNormalization: "
          "install onnxruntime, which decides")


def onnx_source(source: Path | Callable[[], bytes | memoryview], locate: Locate | None = None) -> ImportedSource:
    """Return the source of a model in a file, or of its bytes; `locate` finds the node that differs."""
    def bytes_of() -> bytes:
        return source.read_bytes() if isinstance(source, Path) else bytes(source())

    def runtime(entry: str) -> SourceRun:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(source) if isinstance(source, Path) else bytes_of(), options,
                                               providers=["CPUExecutionProvider"])
        return StatelessRun(by_position([value.name for value in session.get_inputs()], session.run))

    def reference(entry: str) -> SourceRun:
        import onnx
        from onnx.reference import ReferenceEvaluator
        model = onnx.load(source) if isinstance(source, Path) else onnx.load_from_string(bytes_of())
        require_version(next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), FIRST_OF_REFERENCE))
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in weights]
        return StatelessRun(by_position(names, ReferenceEvaluator(model).run))

    return ImportedSource("an ONNX model", (SourceEvaluator("ONNX Runtime", "onnxruntime", "onnxruntime", runtime),
                                            SourceEvaluator("onnx.reference", "onnx.reference", "onnx", reference, CAVEAT)),
                          locate, is_located_always=False)


def require_version(opset: int) -> None:
    """Raise an error for an opset version whose operators onnx.reference computes by the rules of later ones."""
    if opset < FIRST_OF_REFERENCE:
        raise ValueError(f"it computes operators of version {opset} by the rules of later ones")


def by_position(names: Sequence[str], run: Callable[[None, dict[str, Any]], Sequence[Any]]) -> Callable[
        [Sequence[Array]], Sequence[Array]]:
    """Return a call with inputs in order, for a function that takes them by name."""
    return lambda arrays: run(None, dict(zip(names, arrays, strict=True)))
