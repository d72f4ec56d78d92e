"""tosaic compiles TOSA and TensorFlow graphs to native code, from Python, with nothing to build.

    @tosaic.jit                                 a Python function of tensors, compiled for each signature
    tosaic.load("model.mlir")                   a model: MLIR text (TOSA, TensorFlow), .tosa or .tflite
    tosaic.from_tensorflow(function, x)         the same of a tf.function, a Keras model, a SavedModel
    tosaic.from_tflite("model.tflite")          the same of the signatures of a .tflite
    tosaic.from_torch(module, x)                a model from a torch.nn.Module
    tosaic.from_onnx("model.onnx")              a model from an ONNX file
    tosaic.onnx                                 a backend of ONNX, and a session as ONNX Runtime has it
    tosaic.planner                              algorithms of one's own for the memory planner
    tosaic.ops, tosaic.tosa                     functions of traced tensors: as in NumPy, as in the specification
    tosaic.set_num_threads(2)                   how many threads a call may use; 1 unless said otherwise

Importing it costs a few milliseconds: NumPy and the compiler are imported when they are first used.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .runtime import import_time  # noqa: F401  # isort: skip  before all others
from .jit.api import compile, from_tflite, load
from .runtime.errors import AttributeProblem, IndexProblem, KeyProblem, Problem, TypeProblem, ValueProblem

if TYPE_CHECKING:
    from .jit import planner
    from .jit.api import jit
    from .jit.call_signature import TensorSpec
    from .jit.compiled import Compiled
    from .jit.decorator import Jit
    from .jit.models.entry import Entry
    from .jit.models.model import Model
    from .jit.models.onnx import backend as onnx
    from .jit.models.onnx.from_onnx import from_onnx
    from .jit.models.tensorflow.from_tensorflow import from_tensorflow
    from .jit.models.torch.from_torch import from_torch
    from .jit.op_by_op.runtime import CoreRuntime
    from .jit.stages import Lowered, Traced
    from .jit.tracing import ops
    from .jit.tracing import tosa_operators as tosa
    from .jit.tracing.check import check
    from .jit.tracing.control_flow import cond, while_loop
    from .jit.tracing.tensor import Tensor
    from .jit.tracing.trees import register_tree
    from .jit.tracing.variable import Variable
    from .lowering.dialects.tosa.custom import custom
    from .lowering.graph.operator import Op
    from .lowering.memory.buffers import PoolInfo as Pool
    from .lowering.memory.planner import Memory
    from .lowering.options import CompileOptions
    from .lowering.target.presets import target
    from .runtime.limits import Limits
    from .runtime.op_by_op.attributes import OpAttrs
    from .runtime.op_by_op.handle import TensorHandle
    from .runtime.op_by_op.handler import OpHandler
    from .runtime.threads import get_num_threads, set_num_threads
    from .runtime.variables import Context
    from .runtime.variables import process as default_context

__version__ = "0.1.0"

__all__ = ["AttributeProblem", "CompileOptions", "Compiled", "Context", "CoreRuntime", "Entry", "IndexProblem", "Jit",
           "KeyProblem", "Limits", "Lowered", "Memory", "Model", "Op", "OpAttrs", "OpHandler", "Pool", "Problem", "Tensor",
           "TensorHandle", "TensorSpec", "Traced", "TypeProblem", "ValueProblem", "Variable", "__version__", "check",
           "compile", "cond", "custom", "default_context", "from_onnx", "from_tensorflow", "from_tflite", "from_torch",
           "get_num_threads", "jit", "load", "onnx", "ops", "planner", "register_tree", "set_num_threads", "target", "tosa",
           "while_loop"]

_PLACES = {"planner": ("jit.planner", None), "ops": ("jit.tracing.ops", None), "check": ("jit.tracing.check", "check"),
           "cond": ("jit.tracing.control_flow", "cond"), "while_loop": ("jit.tracing.control_flow", "while_loop"),
           "register_tree": ("jit.tracing.trees", "register_tree"), "TensorSpec": ("jit.call_signature", "TensorSpec"),
           "Jit": ("jit.decorator", "Jit"),
           "Model": ("jit.models.model", "Model"), "Entry": ("jit.models.entry", "Entry"),
           "Compiled": ("jit.compiled", "Compiled"), "Traced": ("jit.stages", "Traced"), "Lowered": ("jit.stages", "Lowered"),
           "Tensor": ("jit.tracing.tensor", "Tensor"), "Variable": ("jit.tracing.variable", "Variable"),
           "default_context": ("runtime.variables", "process"), "Op": ("lowering.graph.operator", "Op"),
           "Memory": ("lowering.memory.planner", "Memory"), "Pool": ("lowering.memory.buffers", "PoolInfo"),
           "CompileOptions": ("lowering.options", "CompileOptions"),
           "target": ("lowering.target.presets", "target"), "Context": ("runtime.variables", "Context"),
           "Limits": ("runtime.limits", "Limits"),
           "custom": ("lowering.dialects.tosa.custom", "custom"),
           "onnx": ("jit.models.onnx.backend", None),
           "from_onnx": ("jit.models.onnx.from_onnx", "from_onnx"), "from_torch": ("jit.models.torch.from_torch", "from_torch"),
           "from_tensorflow": ("jit.models.tensorflow.from_tensorflow", "from_tensorflow"),
           "get_num_threads": ("runtime.threads", "get_num_threads"),
           "set_num_threads": ("runtime.threads", "set_num_threads"), "CoreRuntime": ("jit.op_by_op.runtime", "CoreRuntime"),
           "OpAttrs": ("runtime.op_by_op.attributes", "OpAttrs"), "OpHandler": ("runtime.op_by_op.handler", "OpHandler"),
           "TensorHandle": ("runtime.op_by_op.handle", "TensorHandle")}
"""Where the names that are imported on first use come from: a module, and a name in it (None: the module)."""

_RENAMED = {"variable": "Variable", "variables": "default_context"}
"""Names of before: they work, with a warning."""


def __getattr__(name: str) -> Any:
    from importlib import import_module
    if name == "tosa":
        value: Any = import_module(".jit.tracing.tosa_namespace", __name__).Namespace()
    elif name in _RENAMED:
        from .runtime.deprecation import deprecated
        deprecated(f"tosaic.{name}", f"tosaic.{_RENAMED[name]}")
        return __getattr__(_RENAMED[name])
    elif name in _PLACES:
        from .runtime.garbage_collection import seldom_collecting
        place, attribute = _PLACES[name]
        with seldom_collecting():
            module = import_module(f".{place}", __name__)
        value = module if attribute is None else getattr(module, attribute)
    else:
        raise unknown_attribute(name)
    globals()[name] = value
    return value


def unknown_attribute(name: str) -> AttributeProblem:
    from .runtime.public_names import closest
    meant = None if name.startswith("_") else closest(name, __all__)
    return AttributeProblem(f"module {__name__!r} has no attribute {name!r}", kind="symbol",
                            help=f"did you mean tosaic.{meant}?" if meant else None)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
