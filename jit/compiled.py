"""A compiled function, the same for a caller whether its code is new or comes from the cache. The stages before it are in
`stages`, which a start from the cache does not even import.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ..runtime.later import Later, now
from ..runtime.public_names import public_class
from ..runtime.records import dataclass
from .calls import Calls, Numbers, Results, until_quick

if TYPE_CHECKING:
    from ..lowering.options import CompileOptions
    from ..runtime.arguments import Tensor
    from ..runtime.executable import Executable
    from ..runtime.variables import Context
    from .descriptors import Interface, TensorDescriptor
    from .stage_data import LoweredData
    from .tools.report import Report
    from .tracing.pytree import Structure


Stage = TypeVar("Stage", bound="LoweredData", covariant=True)


@public_class
class Compiled(Generic[Stage]):
    """A function as machine code. Call it with arrays in the order of `inputs`, by name, or as one mapping by name.

    It returns one array, a tuple of several, or the nest of arrays that the Python function returned. `out=` takes the arrays
    that the outputs are written to; `context=` the namespace of variables of this call (by default, that of the compile);
    `num_threads=` the maximum number of threads (no more than at compile time).
    """
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None,
                     num_threads: int | None = None, **named: Any) -> Results: ...
    else:
        __slots__ = ("__call__", "__weakref__", "_lowered", "_results", "calls", "executable")

    def __init__(self, lowered: Later[Stage], executable: Executable, results: Structure | None = None) -> None:
        self._lowered, self.executable, self._results = lowered, executable, results
        self.calls = Calls(executable, results)
        self.calls.graph = lambda: lowered().traced
        self.__call__ = until_quick(self, self.calls.ordinary, self.calls.quick)  # type: ignore[method-assign]

    @property
    def lowered(self) -> Stage:
        """The stage before. If the code came from the cache, the function is lowered on first access."""
        return self._lowered()

    @property
    def name(self) -> str:
        return self.executable.signature.name

    @property
    def inputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the inputs, in order; as strings, names."""
        return described(self.executable.signature.inputs)

    @property
    def outputs(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the outputs, in order; as strings, names."""
        return described(self.executable.signature.outputs)

    @property
    def variables(self) -> tuple[TensorDescriptor, ...]:
        """Descriptors of the variables that the function uses; as strings, names."""
        return described(d.tensor for d in self.executable.code.variables)

    @property
    def context(self) -> Context:
        """The namespace of the function's variables."""
        return self.executable.context

    @property
    def _interface(self) -> Interface:
        from .descriptors import Interface
        return Interface(self.name, self.inputs, self.outputs)

    def quantize(self, *inputs: Any, **named: Any) -> Numbers:
        """Return the stored arrays of float inputs: by position, by name, or as one mapping by name (`Entry.quantize`)."""
        return self._interface.quantized(inputs, named)

    def dequantize(self, *outputs: Any) -> Numbers:
        """Return the real numbers of stored outputs (`Entry.dequantize`)."""
        return self._interface.dequantized(outputs)

    def show(self, stage: str = "loops") -> str:
        """Return one stage of the function's compilation as text."""
        return self.lowered.show(stage)

    def __str__(self) -> str:
        return f"{self.executable.signature}\n{self.report()}"

    def __repr__(self) -> str:
        return f"<Compiled {self.executable.signature}>"

    def report(self) -> Report:
        """Return memory and time: the arena and its bytes that are live at once, constants, variables, kernels, seconds of each
        stage."""
        from .tools.report import report
        return report(self.lowered)

    def bind(self, context: Context) -> Compiled[Stage]:
        """Return the same code with its variables in another context. Closing one closes both."""
        return Compiled(self._lowered, self.calls.bound(context), self._results)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph and the options; the receiving process takes the code from its cache, or compiles it."""
        return compiled_again, (self.executable.checked_recipe(), self.executable.context)

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: object) -> Compiled:
        """Return the object itself: code is shared, as functions are, and its variables belong to a context."""
        return self

    def close(self) -> None:
        """Release the code's memory; this also happens when nothing refers to the code any more."""
        self.executable.close()


def described(tensors: Iterable[Tensor]) -> tuple[TensorDescriptor, ...]:
    """Return descriptors of compiled code's tensors; a call needs none, so that a start does not import them."""
    from .descriptors import TensorDescriptor
    return tuple(map(TensorDescriptor.of, tensors))


# ---- made again in another process -----------------------------------------------------------------------------------------
class CompilableGraph(Protocol):
    """The part of `stages.Traced` that this module needs."""
    def compile(self, options: CompileOptions | None = None, context: Context | None = None) -> Compiled: ...


class CompilableLoops(Protocol):
    """The part of `stages.Lowered` that this module needs."""
    def compile(self, context: Context | None = None) -> Compiled: ...


@dataclass(frozen=True, slots=True)
class GraphRecipe:
    """The content of a pickle in place of code: a graph (a `Later`, which pickles as its value), and the options of the
    compile. The receiving process takes the code from its cache, or compiles it for its machine."""
    traced: Callable[[], CompilableGraph]
    options: CompileOptions | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit the source of the graph, which holds its constants once more: the unpickled code is not checked."""
        from dataclasses import replace
        traced: Any = self.traced()
        return GraphRecipe, (now(replace(traced, source=None, imported=None)), self.options)

    def compiled(self, context: Context) -> Compiled:
        return self.traced().compile(self.options, context)

    def __call__(self, context: Context) -> Executable:
        return self.compiled(context).executable


@dataclass(frozen=True, slots=True)
class LoweredRecipe:
    """The recipe of a function that was compiled from its lowered stage: that very stage, for the machine it is for."""
    lowered: CompilableLoops

    def compiled(self, context: Context) -> Compiled:
        return self.lowered.compile(context)

    def __call__(self, context: Context) -> Executable:
        return self.compiled(context).executable


def compiled_again(recipe: GraphRecipe | LoweredRecipe, context: Context) -> Compiled:
    return recipe.compiled(context)
