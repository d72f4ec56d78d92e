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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..runtime.errors import printable_text
from ..runtime.garbage_collection import seldom_collecting
from ..runtime.later import now
from ..runtime.public_names import public_class
from ..runtime.records import dataclass
from ..runtime.variables import Context, checked_context, process
from .cache.programs import CachedCompiler, CodeRequest, compile, keep_findings
from .compiled import Compiled, GraphRecipe, LoweredRecipe
from .given_options import given
from .stage_data import LoweredData, TracedData

if TYPE_CHECKING:
    from ..lowering.graph.graph import Function, Module
    from ..lowering.graph.types import Array
    from ..lowering.loops.ir import Function as LoopFunction
    from ..lowering.memory.planner import Memory
    from ..lowering.native.process.concurrent_codegen import ConcurrentCodegen
    from ..lowering.options import CompileOptions
    from ..lowering.target.target import Target
    from ..runtime.machine_code import Image
    from .aot import Artifact
    from .tools.check.crosscheck import CrossCheck
    from .tools.profile import Profile
    from .tools.report import Report
    from .tools.tune import Tuning

@public_class
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Traced(TracedData):
    """A function as a tensor graph: print it, lower it, compile it, check it, tune it."""

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

    def _repr_html_(self) -> str:
        """What a notebook shows: the graph's picture, where it is small enough to be one, its operators, its text."""
        from .tools.graph_picture import graph_html
        return graph_html(self.module, self.function)

    def lower(self, options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> Lowered:
        """Down to loops and a memory plan, as the `options` say. Raises a Problem where the graph is wrong, or has something
        that cannot be compiled, or the memories are too small. (`target` and `memory` are deprecated: they are options.)"""
        return lower(self, given("lower", options, target=target, memory=memory))

    def compile(self, options: CompileOptions | None = None, context: Context | None = None, memory: Memory | None = None,
                *, target: Target | None = None) -> Compiled[Lowered]:
        """`lower().compile()`, or the machine code of an earlier process from the cache on disk (`cache`). Variables are in
        `context`, or in that of the model or the function, or in the process. (`target` and `memory` are deprecated.)"""
        options = given("compile", options, target=target, memory=memory)
        compiled = compile(self, CodeRequest(options), checked_context(context) or self.context, COMPILER)[0]
        compiled.executable.recipe = GraphRecipe(now(self), options)
        return compiled

    def tune(self, inputs: Sequence[Array], options: CompileOptions | None = None, calls: int = 5, *,
             memory: Memory | None = None) -> Tuning:
        """Search for faster schedules on this machine, by measuring calls with these arrays. What is found is kept in the cache
        on disk, where it is on, for every later compile of this function with these options."""
        from .tools.tune import tune
        options = given("tune", options, memory=memory)
        tuning = tune(self.lower, inputs, options, calls)
        keep_findings(self, CodeRequest(options), tuning.findings, COMPILER)
        return tuning

    def check(self, *inputs: Any, options: CompileOptions | None = None, memory: Memory | None = None,
              target: Target | None = None, **named: Any) -> CrossCheck:
        """The compiled function against the reference interpreter; against the interpreter of TensorFlow's operations, too,
        where the graph comes from there. The graph of an imported model is held against the model in its own system, where
        that is installed.

        Takes arrays as a call does, or a list of calls, each a list of arrays or a mapping by name. Raises a Problem for
        inputs that a call would refuse, and where there is nothing to compare. (`target` and `memory` are deprecated.)"""
        from .tools.check.calls import given_calls, without_options
        from .tools.check.crosscheck import crosscheck
        inputs, options, memory = without_options(inputs, options, memory)
        calls, module = given_calls(self.name, inputs, named), prepared(self.module)
        options = given("check", options, target=target, memory=memory)
        return crosscheck(module, module.function(self.name), calls, executable, options, self.source, self.imported)


@public_class
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lowered(LoweredData):
    """A function after the pipeline: print each stage, compile it, save it as an object, profile it, report on it."""

    def __str__(self) -> str:
        return self.show()

    def _repr_html_(self) -> str:
        """What a notebook shows: the plan over time, as the report has it."""
        return self.report()._repr_html_()

    def compile(self, context: Context | None = None) -> Compiled[Lowered]:
        """Machine code in this process, with its variables in `context`, or in that of the model or the function, or in the
        process."""
        return self.compile_with_image(context)[0]

    def compile_with_image(self, context: Context | None = None,
                           concurrent: ConcurrentCodegen | None = None) -> tuple[Compiled[Lowered], Image]:
        """The same, and the machine code as data; `concurrent` has functions that are compiled already."""
        from ..lowering.native.process.load import native_code
        from ..lowering.target.presets import check_runs_here
        from ..runtime.executable import Executable
        check_runs_here(self.target)
        chosen, start = checked_context(context) or self.traced.context or process, time.perf_counter()
        code, image = native_code(self.program, self.plan, self.target, self.elements(), concurrent=concurrent,
                                  threads=self.threads, quantized=self.quantized())
        executable = Executable(code, chosen, recipe=LoweredRecipe(self))
        seconds = self.seconds | {"native": time.perf_counter() - start}
        return Compiled(now(replace(self, seconds=seconds)), executable, self.traced.results), image

    def save(self, directory: str | os.PathLike[str], name: str | None = None, *, self_contained: bool = False,
             library: bool = False, main: bool = False, namespace: str | None = None, state: str = "own",
             emit: str | None = None, pool_form: str = "binary", project: str | None = None,
             calls: Sequence[Sequence[Array]] | None = None, debug: bool = False) -> Artifact:
        """Write an object file and a C header for `target` to a directory: `<name>.o` and `tosaic_<name>.h`.

        A `self_contained` object has its workspace and constant pools inside. Constant pools that the caller places come as
        files, "binary" or as an "array" of C (`pool_form`). `library` adds `lib<name>.a`, which has them, too, `main` a
        `main.c` to start from. Objects of one `namespace` share variables of one name; with the `state` "caller", calls are
        given the memory of the variables, and one object has many instances.
        With `emit` "c" there is C source, `<name>.c`, in place of the object. With `debug` the object says for debuggers which
        line of the model's text each kernel is for.

        A `project` is a folder for a build system (`projects/systems`) instead, with an example that makes recorded `calls`
        (one list of arrays each; without them, random ones) and compares.
        """
        from .aot import ArtifactForm
        from .projects.save_project import emitted, save
        form = ArtifactForm(self_contained, library, main, namespace, state, emitted(emit, project, self.target), pool_form,
                            debug)
        return save([self], directory, name or self.traced.name, form, project, calls)

    def profile(self, inputs: Sequence[Array], calls: int = 100, traced: int = 1) -> Profile:
        """Where the time of a call with these arrays goes, kernel by kernel; its `trace` has the last `traced` calls, on as
        many threads as the function is compiled for."""
        from .tools.profile import profile
        return profile(self, inputs, calls, traced)

    def report(self, ladder: bool = False, code: bool = False, boards: str = "", io_elsewhere: bool = False) -> Report:
        """Memory and time, before anything has run; with a `ladder` of simpler plans to compare with, with the sizes of
        `code`, which takes a compile, and with the verdict for some `boards` ("all", or names: "Pico,nRF52840"), which takes
        one for each of their processors, where asked. The RAM of a board has to hold the caller's inputs and outputs, too,
        unless they lie elsewhere (`io_elsewhere`)."""
        from ..lowering.target.boards import boards_named
        from .tools.report import report
        from .tools.report.judge_boards import judge_boards
        return report(self, ladder, code, judge_boards(self, boards_named(boards), io_elsewhere) if boards else ())


def lower_and_compile(traced: TracedData, options: CompileOptions | None, context: Context | None
                      ) -> tuple[Compiled[Lowered], Image]:
    """All stages, and the machine code as data: kernels are compiled while others are scheduled."""
    from ..lowering.native.process.concurrent_codegen import concurrent_codegen
    from ..lowering.target.presets import host
    target = (options.target if options else None) or host()
    with seldom_collecting(), concurrent_codegen(target) or nullcontext() as concurrent:
        lowered = lower(traced, options, concurrent.add if concurrent else None)
        return lowered.compile_with_image(context, concurrent)


def lower(traced: TracedData, options: CompileOptions | None = None, ready: Callable[[LoopFunction], None] | None = None
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


COMPILER = CachedCompiler(lower, lower_and_compile)


def prepared(module: Module) -> Module:
    """The module after all graph passes."""
    from ..lowering.pipeline import rewritten
    return rewritten(module)


def executable(module: Module, function: Function, options: CompileOptions | None) -> Callable[..., Any]:
    """A function of a prepared module as code that takes a context, for the cross-check; it has a context of its own."""
    return lower(Traced(module, function.name), options).compile(Context("executable"))
