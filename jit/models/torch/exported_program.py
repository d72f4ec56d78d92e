"""The preparation of torch.export's program for torch-mlir: its signature, and the rejection of operations that torch-mlir
would lower wrongly.

torch-mlir silently makes random numbers constants and treats unsigned integers as signed, so that programs with these are
refused here, with the position in the user's code. f64 is also refused, because TOSA has none.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Position, Problem, Source
from ...tracing.caller import LIBRARIES
from ..torch_mlir.to_tosa import FRAME, package_folder

if TYPE_CHECKING:
    from ....lowering.graph.types import TensorType

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class ProgramInterface:
    """The inputs and results of a program: names of the inputs, in order, and tensors without data for inputs and results; the
    buffers that it writes come first in each, with these names and values."""
    inputs: tuple[str, ...]
    input_tensors: tuple[Any, ...]
    result_tensors: tuple[Any, ...]
    buffers: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def is_open(self) -> bool:
        """True if an input has an extent that is not fixed."""
        return not all(isinstance(extent, int) for tensor in self.input_tensors for extent in tensor.shape)

    def types(self, has_state: bool) -> tuple[dict[str, TensorType], tuple[TensorType, ...]]:
        """Return the types of inputs, by name, and of results; without the buffers if these are state."""
        first = len(self.buffers) if has_state else 0
        inputs = dict(zip(self.inputs[first:], map(type_of, self.input_tensors[first:])))
        return inputs, tuple(map(type_of, self.result_tensors[first:]))


def type_of(tensor: Any) -> TensorType:
    from ....lowering.graph.types import BY_STORAGE, TensorType
    shape = tuple(extent if isinstance(extent, int) else None for extent in tensor.shape)
    return TensorType(shape, BY_STORAGE[str(tensor.dtype).removeprefix("torch.")])


def extent_bounds(program: Any, tensors: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """Return attributes of inputs with the bounds of their extents, from `torch.export.Dim(min=, max=)`; none if no extent has
    bounds. PyTorch's own minimum of an open extent, up to 2, is no bound."""
    from ....lowering.graph.graph import EXTENT_BOUNDS
    from ....lowering.graph.types import I64
    from ....lowering.text.attributes import Numbers
    pairs = [[number for extent in tensor.shape for number in bounds_of(program, extent)] for tensor in tensors]
    if not any(least > 0 or most >= 0 for own in pairs for least, most in zip(own[::2], own[1::2])):
        return ()
    return tuple({EXTENT_BOUNDS: Numbers(tuple(own), I64)} for own in pairs)


def bounds_of(program: Any, extent: Any) -> tuple[int, int]:
    """Return the minimum and the maximum of an extent; 0 and -1 if there is no bound."""
    if isinstance(extent, int):
        return 0, -1
    found = program.range_constraints.get(extent.node.expr)
    least, most = (str(getattr(found, side, "")) for side in ("lower", "upper"))
    return int(least) if least.isdecimal() and int(least) > 2 else 0, int(most) if most.isdecimal() else -1


def opened(program: Any, name: str) -> ProgramInterface:
    """Return the program's inputs and results, after a change of its signature: buffers that it writes become inputs and
    results. Results that are no tensors are dropped."""
    from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
    signature = program.graph_signature
    written = {spec.target: spec for spec in signature.output_specs if is_written(spec, name)}
    buffers = [spec for spec in signature.input_specs if spec.target in written and spec.kind != InputKind.USER_INPUT]
    names, values = tuple(spec.target for spec in buffers), tuple(value_of(program, spec) for spec in buffers)
    first = [written[target] for target in names]
    others = [spec for spec in signature.output_specs
              if spec.target not in written and not isinstance(spec.arg, ConstantArgument)]
    signature.output_specs[:] = [*first, *others]
    signature.input_specs[:] = [*buffers, *(spec for spec in signature.input_specs if spec.target not in written)]
    for spec in buffers:
        spec.kind, spec.target = InputKind.USER_INPUT, None
    for spec in first:
        spec.kind, spec.target = OutputKind.USER_OUTPUT, None
    made = {node.name: node.meta.get("val") for node in program.graph.nodes}
    inputs = tuple(user_inputs(signature))
    return ProgramInterface((*names, *inputs[len(names):]), tuple(made[key] for key in inputs),
                            tuple(made[spec.arg.name] for spec in signature.output_specs), names, values)


def is_written(spec: Any, name: str) -> bool:
    """True if a result is the new value of a buffer (or parameter)."""
    from torch.export.graph_signature import OutputKind
    if spec.kind == OutputKind.USER_INPUT_MUTATION:
        raise Problem(f"the forward of {name} writes into its argument {spec.target}", kind="unsupported",
                      help="let it work on a clone, and return the new value")
    return spec.kind in (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None))


def user_inputs(signature: Any) -> Iterator[str]:
    """Yield the names that `forward` gives its tensors."""
    from torch.export.graph_signature import InputKind, SymIntArgument, TensorArgument
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, SymIntArgument):
            raise Problem(f"{spec.arg.name} is a number that is not fixed", kind="unsupported",
                          help="pass it as a tensor, or leave it out of dynamic_shapes")
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
            yield spec.arg.name


def value_of(program: Any, spec: Any) -> Any:
    """Return the tensor that a buffer or a parameter holds."""
    return (program.constants if spec.persistent is False else program.state_dict)[spec.target]


# ---- what is refused -------------------------------------------------------------------------------------------------------
def check(program: Any, name: str) -> None:
    """Raise a Problem for the first operation that torch-mlir would lower wrongly."""
    import torch
    refused = {torch.float64: "float64, which TOSA does not have"}
    refused |= {getattr(torch, key): f"{key}, whose upper half would become negative" for key in UNSIGNED}
    for node in program.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Problem(f"{operation_of(node)} of {name} makes random numbers, a graph has none", line_of(node),
                          kind="unsupported", help="make them an input; dropout does nothing with training=False")
        for tensor in tensors_of(node):
            if tensor.dtype in refused:
                what = f"{node.name} of {name} is" if node.op == "placeholder" else f"{operation_of(node)} of {name} makes"
                raise Problem(f"{what} {refused[tensor.dtype]}", line_of(node), kind="unsupported",
                              help="use float32 or a signed integer: module.float(), tensor.to(torch.int32)")


def operation_of(node: Any) -> str:
    return str(node.target).removesuffix(".default")


def tensors_of(node: Any) -> Iterator[Any]:
    """Yield the tensors that the node returns, without data."""
    found = node.meta.get("val")
    for value in found if isinstance(found, tuple | list) else (found,):
        if hasattr(value, "dtype"):
            yield value


def line_of(node: Any) -> Position | None:
    """Return the innermost Python line that made a node and belongs to no library; otherwise the innermost outside PyTorch."""
    frames = [(path, int(line)) for path, line in FRAME.findall(node.meta.get("stack_trace") or "")
              if not path.startswith((package_folder("torch"), "<"))]
    path, line = next((f for f in reversed(frames) if not f[0].startswith(LIBRARIES)), frames[-1] if frames else ("", 0))
    return Position(Source(path), line, 1) if frames else None
