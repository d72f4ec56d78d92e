"""The stages of a compile as objects: Traced -> Lowered -> Compiled. Each prints as text, and makes the next.

    traced.lower()     graph rewritten, kernels fused, loops scheduled, memory planned
    lowered.compile()  machine code in this process, ready to be called with arrays

`show` prints what the passes of `lowering/pipeline.py` make: graph, kernels, schedule, loops, plan, llvm, asm.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..runtime.errors import printable, printable_text
from ..runtime.garbage_collection import seldom_collecting
from ..runtime.later import now
from ..runtime.public_names import public
from ..runtime.variables import Context, checked_context, process
from .compiled import Compiled
from .given_options import given
from .tracing.pytree import Structure

if TYPE_CHECKING:
    from ..lowering.elements.expression import Buffer
    from ..lowering.graph.graph import Function, Module, Value
    from ..lowering.graph.quantized import Quantized
    from ..lowering.graph.types import Array
    from ..lowering.kernels.kernel import Kernels
    from ..lowering.loops.ir import Function as LoopFunction
    from ..lowering.loops.program import Program
    from ..lowering.memory.plan import Plan
    from ..lowering.memory.planner import Memory
    from ..lowering.native.process.concurrent_codegen import ConcurrentCodegen
    from ..lowering.options import CompileOptions
    from ..lowering.pipeline import State
    from ..lowering.target.target import Target
    from ..runtime.machine_code import Image
    from .aot import Artifact
    from .models.source import ImportedSource
    from .tools.check.crosscheck import CrossCheck, Source
    from .tools.profile import Profile
    from .tools.report import Report
    from .tools.tune import Tuning

@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A function as a tensor graph, as it was read or recorded. `results` is the nest in which a Python function
    returned its results; None: one array, or a tuple of several. `source` runs what the graph was made from, where that is of
    another dialect; `imported` is the model of another system that a front door has made the graph from. `context` is
    the namespace of its variables where a compile says no other; None: the process."""
    module: Module
    name: str
    results: Structure | None = None
    source: Source | None = None
    context: Context | None = None
    imported: ImportedSource | None = None

    @property
    def function(self) -> Function:
        return self.module.function(self.name)

    @property
    def interface(self) -> Function:
        """The function as compiled code has it: two arguments or results, values and scales, for one that is block-scaled."""
        from ..lowering.rewrite.decompose import decompose
        return decompose(self.module).function(self.name)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names and types of the inputs, in order."""
        return tuple(described(v) for v in self.interface.arguments)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Types of the outputs, in order."""
        return tuple(str(v.type) for v in self.interface.body.yields)

    def show(self, stage: str = "graph", whole: bool = False, *, after: str | None = None,
             options: CompileOptions | None = None) -> str:
        """The graph as MLIR text, long constants elided unless `whole`; the stages further down are those of `lower(options)`.
        `after` names a pass of `lowering/pipeline.py`: what there is behind it."""
        from ..lowering.options import CompileOptions
        from ..lowering.pipeline import start
        from ..lowering.stage_text import graph_text, known_stage, text_after
        if after is not None:
            return printable_text(text_after(start(self.module, self.name, options or CompileOptions()), after, whole))
        if known_stage(stage) == "graph":
            return graph_text(self.module, whole)
        return self.lower(options).show(stage, whole)

    def __str__(self) -> str:
        return self.show()

    @public("lower")
    def lower(self, options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> Lowered:
        """Down to loops and a memory plan, as the `options` say. Raises a Problem where the graph is wrong, or has something
        that cannot be compiled, or the memories are too small. (`target` and `memory` are deprecated: they are options.)"""
        return lower(self, given("lower", options, target=target, memory=memory))

    @public("compile")
    def compile(self, options: CompileOptions | None = None, context: Context | None = None, memory: Memory | None = None,
                *, target: Target | None = None) -> Compiled:
        """`lower().compile()`, or the machine code of an earlier process from the cache on disk (`cache`). Variables are in
        `context`, or in that of the model or the function, or in the process. (`target` and `memory` are deprecated.)"""
        from .cache.programs import Request, compile
        options = given("compile", options, target=target, memory=memory)
        return compile(self, Request(options), checked_context(context) or self.context)[0]

    def tune(self, inputs: Sequence[Array], options: CompileOptions | None = None, calls: int = 5, *,
             memory: Memory | None = None) -> Tuning:
        """Search for faster schedules on this machine, by measuring calls with these arrays. What is found is kept in the cache
        on disk, where it is on, for every later compile of this function with these options."""
        from .cache.programs import Request, keep_findings
        from .tools.tune import tune
        options = given("tune", options, memory=memory)
        tuning = tune(self, inputs, options, calls)
        keep_findings(self, Request(options), tuning.findings)
        return tuning

    def check(self, calls: Sequence[Sequence[Array]], options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> CrossCheck:
        """The compiled function against the reference interpreter on some calls, one list of arrays each; against the
        interpreter of TensorFlow's operations, too, where the graph comes from there. The graph of an imported model is held
        against the model in its own system, where that is installed."""
        from .tools.check.crosscheck import crosscheck
        module = prepared(self.module)
        options = given("check", options, target=target, memory=memory)
        return crosscheck(module, module.function(self.name), calls, executable, options, self.source, self.imported)


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """A function after each step of lowering, with the seconds that each took."""
    traced: Traced
    module: Module
    kernels: Kernels
    program: Program
    plan: Plan
    target: Target
    threads: int
    options: CompileOptions
    seconds: dict[str, float] = field(default_factory=dict)

    def show(self, stage: str = "loops", whole: bool = False) -> str:
        """One stage as text: graph, kernels, schedule, loops, plan, llvm or asm; `whole` with all constants, so that it reads
        back."""
        from ..lowering.stage_text import text_of
        return printable_text(text_of(self.state, stage, whole))

    @property
    def state(self) -> State:
        """What the passes of the pipeline have made."""
        from ..lowering.pipeline import State
        return State(self.traced.name, self.target, self.threads, self.options, self.module, self.kernels, (self.program,),
                     self.plan)

    def __str__(self) -> str:
        return self.show()

    def compile(self, context: Context | None = None) -> Compiled:
        """Machine code in this process, with its variables in `context`, or in that of the model or the function, or in the
        process."""
        return self.compile_with_image(context)[0]

    def compile_with_image(self, context: Context | None = None,
                           concurrent: ConcurrentCodegen | None = None) -> tuple[Compiled, Image]:
        """The same, and the machine code as data; `concurrent` has functions that are compiled already."""
        from ..lowering.native.process.load import native_code
        from ..lowering.target.presets import check_runs_here
        from ..runtime.executable import Executable
        check_runs_here(self.target)
        chosen, start = checked_context(context) or self.traced.context or process, time.perf_counter()
        code, image = native_code(self.program, self.plan, self.target, self.elements(), concurrent=concurrent,
                                  threads=self.threads)
        executable = Executable(code, chosen)
        seconds = self.seconds | {"native": time.perf_counter() - start}
        return Compiled(now(replace(self, seconds=seconds)), executable, self.traced.results), image

    def elements(self) -> dict[Buffer, str]:
        """Element types of the inputs and outputs, which their dtypes do not always say (i4, i48)."""
        from ..lowering.graph.types import TensorType
        function, kernels = self.module.function(self.traced.name), self.kernels
        pairs = [*zip(kernels.inputs, function.arguments), *zip(kernels.outputs, function.body.yields)]
        return {buffer: value.type.element.name for buffer, value in pairs if isinstance(value.type, TensorType)}

    def quantized(self) -> dict[Buffer, Quantized]:
        """What the integers of inputs and outputs stand for, where the graph says it."""
        from ..lowering.graph.quantized import Quantized
        from ..lowering.graph.types import TensorType
        inputs, outputs = self.traced.function.arguments, self.traced.function.body.yields
        buffers = (*self.kernels.inputs, *self.kernels.outputs)
        if len(buffers) != len(inputs) + len(outputs):  # block-scaled ones have become two each
            return {}
        return {buffer: value.type.element for buffer, value in zip(buffers, (*inputs, *outputs))
                if isinstance(value.type, TensorType) and isinstance(value.type.element, Quantized)}

    @public("save")
    def save(self, directory: str | os.PathLike[str], name: str | None = None, *, self_contained: bool = False,
             library: bool = False, main: bool = False) -> Artifact:
        """Write an object file and a C header for `target` to a directory: `<name>.o` and `tosaic_<name>.h`.

        A `self_contained` object has its workspace and constant pools inside. `library` adds `lib<name>.a`, `main` a
        `main.c` to start from; constant pools that the caller places come as files.
        """
        from .aot import Form, save
        return save([self], directory, name or self.traced.name, Form(self_contained, library, main))

    def profile(self, inputs: Sequence[Array], calls: int = 100) -> Profile:
        """Where the time of a call with these arrays goes, kernel by kernel."""
        from .tools.profile import profile
        return profile(self, inputs, calls)

    def report(self, ladder: bool = False, code: bool = False) -> Report:
        """Memory and time, before anything has run; with a `ladder` of simpler plans to compare with, and with the sizes of
        `code`, which takes a compile, where asked."""
        from .tools.report import report
        return report(self, ladder, code)


def lower_and_compile(traced: Traced, options: CompileOptions | None, context: Context | None) -> tuple[Compiled, Image]:
    """All stages, and the machine code as data: kernels are compiled while others are scheduled."""
    from ..lowering.native.process.concurrent_codegen import concurrent_codegen
    from ..lowering.target.presets import host
    target = (options.target if options else None) or host()
    with seldom_collecting(), concurrent_codegen(target) or nullcontext() as concurrent:
        lowered = lower(traced, options, concurrent.add if concurrent else None)
        return lowered.compile_with_image(context, concurrent)


def lower(traced: Traced, options: CompileOptions | None = None, ready: Callable[[LoopFunction], None] | None = None
          ) -> Lowered:
    """A graph down to loops and a plan, every stage verified (`lowering/pipeline.py`). `ready` is called with functions as soon
    as they are scheduled, most of which the program will have."""
    from ..lowering import pipeline
    from ..lowering.options import CompileOptions
    clock = pipeline.Clock()
    found = pipeline.run(pipeline.start(traced.module, traced.name, options or CompileOptions(), ready), clock=clock)
    assert found.kernels is not None and found.plan is not None
    return Lowered(traced, found.graph, found.kernels, found.program, found.plan, found.target, found.threads,
                   found.options, clock.seconds)


def prepared(module: Module) -> Module:
    """The module after all graph passes."""
    from ..lowering.pipeline import rewritten
    return rewritten(module)


def executable(module: Module, function: Function, options: CompileOptions | None) -> Callable[..., Any]:
    """A function of a prepared module as code that takes a context, for the cross-check; it has a context of its own."""
    return lower(Traced(module, function.name), options).compile(Context("executable"))


def described(value: Value) -> str:
    return printable(f"{value.name}: {value.type}")
