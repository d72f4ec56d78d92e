"""The stages of a compile as objects: Traced -> Lowered -> Compiled. Each prints as text, and makes the next.

    traced.lower()     graph rewritten, kernels fused, loops scheduled, memory planned
    lowered.compile()  machine code in this process, ready to be called with arrays

`show` prints the results of the passes of `lowering/pipeline.py`: graph, kernels, schedule, loops, plan, llvm, asm.
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
        """Return the graph as MLIR text, with long constants elided unless `whole`, or a later stage of `lower(options)`.
        `after` names a pass of `lowering/pipeline.py` whose result is shown."""
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
        """Return the graph as HTML for a notebook: its picture if it is small enough, its operators, its text."""
        from .tools.graph_picture import graph_html
        return graph_html(self.module, self.function)

    def lower(self, options: CompileOptions | None = None, memory: Memory | None = None, *,
              target: Target | None = None) -> Lowered:
        """Lower to loops and a memory plan with these `options`. Raises a Problem if the graph is wrong, or has something that
        cannot be compiled, or the memories are too small. (`target` and `memory` are deprecated: they are options.)"""
        return lower(self, given("lower", options, target=target, memory=memory))

    def compile(self, options: CompileOptions | None = None, context: Context | None = None, memory: Memory | None = None,
                *, target: Target | None = None) -> Compiled[Lowered]:
        """Return `lower().compile()`, or the machine code of an earlier process from the cache on disk (`cache`). Variables are
        in `context`, or in that of the model or the function, or in the process. (`target` and `memory` are deprecated.)"""
        options = given("compile", options, target=target, memory=memory)
        compiled = compile(self, CodeRequest(options), checked_context(context) or self.context, COMPILER)[0]
        compiled.executable.recipe = GraphRecipe(now(self), options)
        return compiled

    def tune(self, inputs: Sequence[Array], options: CompileOptions | None = None, calls: int = 5, *,
             memory: Memory | None = None) -> Tuning:
        """Search for faster schedules on this machine, by measuring calls with these arrays. The cache on disk, if it is on,
        keeps the results for every later compile of this function with these options."""
        from .tools.tune import tune
        options = given("tune", options, memory=memory)
        tuning = tune(self.lower, inputs, options, calls)
        keep_findings(self, CodeRequest(options), tuning.findings, COMPILER)
        return tuning

    def check(self, *inputs: Any, options: CompileOptions | None = None, memory: Memory | None = None,
              target: Target | None = None, **named: Any) -> CrossCheck:
        """Compare the compiled function with the reference interpreter, and with the interpreter of TensorFlow's operations if
        the graph comes from there. The graph of an imported model is compared with the model in its own system, if that is
        installed.

        Takes arrays as a call does, or a list of calls, each a list of arrays or a mapping by name. Raises a Problem for inputs
        that a call would refuse, and if there is nothing to compare. (`target` and `memory` are deprecated.)"""
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
        """Return the plan over time as HTML for a notebook, as in the report."""
        return self.report()._repr_html_()

    def compile(self, context: Context | None = None) -> Compiled[Lowered]:
        """Compile to machine code in this process, with variables in `context`, or in that of the model or the function, or in
        the process."""
        return self.compile_with_image(context)[0]

    def compile_with_image(self, context: Context | None = None,
                           concurrent: ConcurrentCodegen | None = None) -> tuple[Compiled[Lowered], Image]:
        """Compile, and return the machine code as data, too; `concurrent` has functions that are compiled already."""
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

        A `self_contained` object contains its workspace and constant pools. Constant pools that the caller places are written
        as files, "binary" or as a C "array" (`pool_form`). `library` adds `lib<name>.a`, which also contains them, `main` a
        `main.c` to start from. Objects of one `namespace` share variables of the same name; with the `state` "caller", each
        call takes the memory of the variables, and one object has many instances. With `emit` "c", C source, `<name>.c`,
        replaces the object. With `debug` the object has debug information that maps each kernel to its line of the model's
        text.

        A `project` is a folder for a build system (`projects/systems`) instead, with an example that makes recorded `calls`
        (one list of arrays each; without them, random ones) and compares.
        """
        from .aot import ArtifactForm
        from .projects.save_project import emitted, save
        form = ArtifactForm(self_contained, library, main, namespace, state, emitted(emit, project, self.target), pool_form,
                            debug)
        return save([self], directory, name or self.traced.name, form, project, calls)

    def profile(self, inputs: Sequence[Array], calls: int = 100, traced: int = 1) -> Profile:
        """Measure the time of a call with these arrays, kernel by kernel; the profile's `trace` has the last `traced` calls, on
        as many threads as the function is compiled for."""
        from .tools.profile import profile
        return profile(self, inputs, calls, traced)

    def report(self, ladder: bool = False, code: bool = False, boards: str = "", io_elsewhere: bool = False) -> Report:
        """Report memory and time, before anything has run: optionally with a `ladder` of simpler plans to compare with, with
        the sizes of `code`, which takes a compile, and with the verdict for some `boards` ("all", or names: "Pico,nRF52840"),
        which takes one for each of their processors. The RAM of a board must hold the caller's inputs and outputs, too, unless
        they are elsewhere (`io_elsewhere`)."""
        from ..lowering.target.boards import boards_named
        from .tools.report import report
        from .tools.report.judge_boards import judge_boards
        return report(self, ladder, code, judge_boards(self, boards_named(boards), io_elsewhere) if boards else ())


def lower_and_compile(traced: TracedData, options: CompileOptions | None, context: Context | None
                      ) -> tuple[Compiled[Lowered], Image]:
    """Run all stages, and return the machine code as data, too: kernels are compiled while others are scheduled."""
    from ..lowering.native.process.concurrent_codegen import concurrent_codegen
    from ..lowering.target.presets import host
    target = (options.target if options else None) or host()
    with seldom_collecting(), concurrent_codegen(target) or nullcontext() as concurrent:
        lowered = lower(traced, options, concurrent.add if concurrent else None)
        return lowered.compile_with_image(context, concurrent)


def lower(traced: TracedData, options: CompileOptions | None = None, ready: Callable[[LoopFunction], None] | None = None
          ) -> Lowered:
    """Lower a graph to loops and a plan, with every stage verified (`lowering/pipeline.py`). `ready` is called with functions
    as soon as they are scheduled, most of which the program will have."""
    from ..lowering import pipeline
    from ..lowering.options import CompileOptions
    clock = pipeline.Clock()
    found = pipeline.run(pipeline.start(traced.module, traced.name, options or CompileOptions(), ready), clock=clock)
    assert found.kernels is not None and found.plan is not None
    return Lowered(traced, found.graph, found.kernels, found.program, found.plan, found.target, found.threads,
                   found.options, clock.seconds)


COMPILER = CachedCompiler(lower, lower_and_compile)


def prepared(module: Module) -> Module:
    """Return the module after all graph passes."""
    from ..lowering.pipeline import rewritten
    return rewritten(module)


def executable(module: Module, function: Function, options: CompileOptions | None) -> Callable[..., Any]:
    """Compile a function of a prepared module for the cross-check, as code that takes a context and has a context of its
    own."""
    return lower(Traced(module, function.name), options).compile(Context("executable"))
