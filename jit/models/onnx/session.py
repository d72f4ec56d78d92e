"""A model with the interface of ONNX Runtime's `InferenceSession`, so that a program that uses it changes one line."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Problem
from .carried_state import output_names as names_of_outputs
from .carried_state import state_of
from .from_onnx import from_onnx
from .named_extents import names_of

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array, Type

PROVIDER = "TosaicExecutionProvider"
NAMES = {"f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "i1": "bool", "f8E4M3FN": "float8e4m3fn",
         "f8E5M2": "float8e5m2", "f8E4M3FNUZ": "float8e4m3fnuz", "f8E5M2FNUZ": "float8e5m2fnuz", "f8E8M0FNU": "float8e8m0",
         "f6E2M3FN": "float6e2m3", "f6E3M2FN": "float6e3m2", "f4E2M1FN": "float4e2m1",
         **{f"i{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)}, **{f"ui{n}": f"uint{n}" for n in (2, 4, 8, 16, 32, 64)}}
"""ONNX's names of element types."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or an output: its name, its type such as `tensor(float)`, and its extents: numbers, names, or None if
    unknown."""
    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True, slots=True)
class ModelMeta:
    """The metadata of a file."""
    producer_name: str
    graph_name: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A session whose `run(None, {"x": x})` returns a list of arrays. Options and providers of ONNX Runtime are accepted and
    ignored; `shapes` and `state` are those of `tosaic.from_onnx`."""

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Any = None, provider_options: Any = None, *,
                 shapes: Mapping[str, Sequence[int] | int] | None = None, state: Mapping[str, Any] | None = None,
                 **ignored: Any) -> None:
        self.model = from_onnx(path_or_bytes, shapes=shapes, state=state)

    @property
    def _module(self) -> Module:
        return self.model.module

    def get_inputs(self) -> list[NodeArg]:
        function = self._module.function("main")
        return [node_arg(v.name, v.type, own) for v, own in zip(function.arguments, names_of(function))
                if v.name not in state_of(function)]

    def get_outputs(self) -> list[NodeArg]:
        function = self._module.function("main")
        attributes = function.result_attributes or ({},) * len(function.body.yields)
        return [node_arg(name, v.type, own.get("onnx.dimensions", ()))
                for name, v, own in zip(names_of_outputs(function), function.body.yields, attributes)
                if name not in state_of(function).values()]

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_modelmeta(self) -> ModelMeta:
        from ....lowering.dialects.onnx.node import PRODUCER
        attributes = self._module.attributes
        return ModelMeta(str(attributes.get(PRODUCER, "")), self._module.name or "", "", "", 0,
                         {k: str(v) for k, v in attributes.get("onnx.metadata", {}).items()})

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Array]:
        """Return the outputs of these names, or all, for arrays by the names of the inputs."""
        found = self.model(dict(input_feed))
        results = list(found) if isinstance(found, tuple) else [found]
        return results if output_names is None else chosen(self._module, results, output_names)


def chosen(module: Module, results: Sequence[Array], wanted: Sequence[str]) -> list[Array]:
    """Return results by their names; raise a Problem if a name is unknown."""
    named = dict(zip(output_names(module), results))
    if unknown := next((n for n in wanted if n not in named), None):
        raise Problem(f"the model has no output named {unknown}", kind="argument", help=f"its outputs: {', '.join(named)}")
    return [named[name] for name in wanted]


def output_names(module: Module) -> list[str]:
    """Return the file's names of its outputs, without those that are carried state."""
    function = module.function("main")
    return [name for name in names_of_outputs(function) if name not in state_of(function).values()]


def node_arg(name: str, type: Type, extents: Sequence[str]) -> NodeArg:
    shape: tuple[int | None, ...] = getattr(type, "shape", None) or ()
    names = [*extents, *[""] * len(shape)]
    element = getattr(type, "element", None)
    spelled = f"tensor({NAMES.get(element.name, element.name)})" if element else str(type).removeprefix("!onnx.")
    return NodeArg(name, spelled, [n if n is not None else own or None for n, own in zip(shape, names)])


