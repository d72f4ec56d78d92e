"""tosaic as a backend of ONNX, `tosaic.onnx`: `prepare`, `run_model`, `run_node`, `supports_device`, with the interface of
`onnx.backend.base.Backend`, and `InferenceSession`, with that of ONNX Runtime.

    from tosaic import onnx as backend
    representation = backend.prepare(onnx.load("model.onnx"))
    outputs = representation.run([x])
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lowering.onnx.read import the_package
from ....runtime.errors import Problem
from .from_onnx import from_onnx
from .session import InferenceSession, output_names

if TYPE_CHECKING:
    from ..model import Model

the_package()

from onnx import helper  # noqa: E402  behind the Problem that says where it comes from
from onnx.backend.base import Backend, BackendRep, namedtupledict  # noqa: E402

__all__ = ["InferenceSession", "TosaicBackend", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class Prepared(BackendRep):
    """A model that is ready to be called: compiled if its inputs have known shapes, otherwise compiled for those of each
    call."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.outputs = namedtupledict("Outputs", output_names(model.module))

    def run(self, inputs: Any, **ignored: Any) -> Any:
        """Return the outputs, by number and by name, for inputs in order or by name, or for the only input."""
        arrays = [inputs] if isinstance(inputs, Mapping) else list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        found = self.model(*arrays)
        return self.outputs(*(found if isinstance(found, tuple) else (found,)))


class TosaicBackend(Backend):
    """The interface that ONNX's own tests use."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **options: Any) -> bool:
        """True if the model can be compiled or, for open shapes, if it can be read."""
        try:
            entry = from_onnx(model).entry()
            if not entry.is_dynamic:
                entry.trace()
        except Problem:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """Return the model, ready to be called; `shapes` are those of `tosaic.from_onnx`."""
        if not cls.supports_device(device):
            raise Problem(f"there is no device {device}", kind="argument", help="tosaic runs on the CPU")
        found = from_onnx(model, shapes=options.get("shapes"))
        if not found.entry().is_dynamic:
            found.entry().compile()
        return Prepared(found)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any) -> Any:
        """Return the outputs of one node for arrays in order."""
        import numpy as np
        arrays: Sequence[Any] = [np.asarray(x) for x in (inputs if isinstance(inputs, list | tuple) else [inputs])]
        named = dict(zip([n for n in node.input if n], arrays))
        values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in named.items()]
        graph = helper.make_graph([node], "node", values, [helper.make_empty_tensor_value_info(n) for n in node.output if n])
        opsets = [helper.make_opsetid(node.domain, options.get("opset_version", 21))]
        return cls.run_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), list(named.values()), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


is_compatible, prepare, supports_device = TosaicBackend.is_compatible, TosaicBackend.prepare, TosaicBackend.supports_device
run_model, run_node = TosaicBackend.run_model, TosaicBackend.run_node
