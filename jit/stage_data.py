"""The data of a compile's stages, as needed by tools, the cache and object files: a function as a graph, and the results of the
pipeline. The public classes are `stages.Traced` and `stages.Lowered`, which add methods; nothing here imports these.
"""
from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ..runtime.errors import printable, printable_text
from ..runtime.records import dataclass
from ..runtime.variables import Context
from .descriptors import Interface, TensorDescriptor
from .tracing.pytree import Structure

if TYPE_CHECKING:
    from ..lowering.elements.expression import Buffer
    from ..lowering.graph.graph import Function, Module
    from ..lowering.graph.quantized import Quantized
    from ..lowering.kernels.kernel import Kernels
    from ..lowering.loops.program import Program
    from ..lowering.memory.plan import Plan
    from ..lowering.options import CompileOptions
    from ..lowering.pipeline import State
    from ..lowering.target.target import Target
    from .source import ImportedSource, Source


@dataclass(frozen=True, slots=True, eq=False)
class TracedData:
    """A function as a tensor graph, as it was read or recorded. `results` is the nest in which a Python function returned its
    results; None: one array, or a tuple of several. `source` runs the source of the graph, if it is of another dialect;
    `imported` is the other system's model from which an importer has made the graph. `context` is the default namespace of its
    variables; None: the process."""
    module: Module
    name: str
    results: Structure | None = None
    source: Source | None = None
    context: Context | None = None
    imported: ImportedSource | None = None

    def __repr__(self) -> str:
        given, made = ", ".join(self.inputs), ", ".join(self.outputs)
        operations = sum(1 for _ in self.function.body.walk())
        return printable(f"<Traced {self.name}({given}) -> ({made}): {operations} operations>")

    @property
    def function(self) -> Function:
        return self.module.function(self.name)

    @property
    def interface(self) -> Function:
        """The function in the form of compiled code: a block-scaled argument or result becomes two, values and scales."""
        from ..lowering.rewrite.decompose import decompose
        return decompose(self.module).function(self.name)

    @property
    def inputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the inputs, in order; as strings, names and types."""
        return self.tensors.inputs

    @property
    def outputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the outputs, in order; as strings, types."""
        return self.tensors.outputs

    @property
    def tensors(self) -> Interface:
        """Descriptors of all tensors that the graph names."""
        from .graph_tensors import interface_of
        return interface_of(self.module, self.function, self.interface)


@dataclass(frozen=True, slots=True, eq=False)
class LoweredData:
    """A function after each step of lowering, with the seconds of each step."""
    traced: TracedData
    module: Module
    kernels: Kernels
    program: Program
    plan: Plan
    target: Target
    threads: int
    options: CompileOptions
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        given, made = ", ".join(self.traced.inputs), ", ".join(self.traced.outputs)
        return printable(f"<Lowered {self.traced.name}({given}) -> ({made}): {len(self.kernels.kernels)} kernels, arena "
                         f"{self.plan.size_bytes:,} bytes, for {self.target.triple}, {self.target.cpu}>")

    def show(self, stage: str = "loops", whole: bool = False) -> str:
        """Return one stage as text: graph, kernels, schedule, loops, plan, llvm or asm; `whole` with all constants, so that it
        reads back."""
        from ..lowering.stage_text import text_of
        return printable_text(text_of(self.state, stage, whole))

    @property
    def state(self) -> State:
        """The results of the pipeline's passes."""
        from ..lowering.pipeline import State
        return State(self.traced.name, self.target, self.threads, self.options, self.module, self.kernels, (self.program,),
                     self.plan)

    def elements(self) -> dict[Buffer, str]:
        """Return the element types of the inputs and outputs, which their dtypes do not always determine (i4, i48)."""
        from ..lowering.graph.types import TensorType
        function, kernels = self.module.function(self.traced.name), self.kernels
        pairs = [*zip(kernels.inputs, function.arguments), *zip(kernels.outputs, function.body.yields)]
        return {buffer: value.type.element.name for buffer, value in pairs if isinstance(value.type, TensorType)}

    def quantized(self) -> dict[Buffer, Quantized]:
        """Return the quantization of inputs, outputs, variables and constants for which the graph gives one."""
        from .graph_tensors import quantized_buffers
        variables = [use.buffer for use in self.program.variables]
        return quantized_buffers(self.traced.module, self.traced.function, self.kernels.inputs, self.kernels.outputs, variables,
                                 self.program.constants)
