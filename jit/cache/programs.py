"""Compilation through the cache: the key of a function's code, and the code from an entry or from the compiler."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.errors import Position, Source
from ...runtime.executable import MAX_LOCKED_STEPS, Code, Executable
from ...runtime.later import Later
from ...runtime.machine_code import Image
from ...runtime.threads import get_num_threads
from ...runtime.variables import Context, process
from .caller import caller, interrupts, keep_caller, keep_interrupts, keep_pool, thread_pool
from .code import code_of, fields_of, own_source
from .folder import folder
from .keys import NotKept, digest, is_own
from .versions import machine, versions

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.options import CompileOptions
    from ...lowering.schedule.search_space import Choices
    from ..compiled import Compiled
    from ..stage_data import LoweredData, TracedData
    from ..tracing.pytree import Structure


class CodeRequest(NamedTuple):
    """The inputs of a compile besides the graph. None means the default options, which are not even imported."""
    options: CompileOptions | None = None

    def settings(self) -> object:
        """Return all that the code depends on except the graph, as nested tuples. The machine is included for every target, as
        the machine that made the code has checked that it can run it. Raises NotKept if no key can hold it."""
        known = versions()
        if known is None or folder() is None:
            raise NotKept
        where: object = machine()
        options = self.options
        threads = get_num_threads() if options is None or (options.target is None and options.threads is None) else 1
        if threads > 1:
            where = where, threads
        if options is None:
            return known, where, None
        from ...lowering.memory.algorithms.run import find_algorithm
        from ...lowering.options import CompileOptions
        from .graph_digest import ModuleWalk
        algorithm = options.memory.algorithm
        if not isinstance(algorithm, str) or not is_own(find_algorithm(algorithm)):
            raise NotKept
        return known, where, None if options == CompileOptions() else ModuleWalk().plain(options)


def key_of(traced: TracedData, request: CodeRequest) -> bytes | None:
    """Return the key of a function's code; None if it is not kept."""
    from .graph_digest import graph_digest
    try:
        settings = request.settings()
        return digest(("code", settings, traced.name, graph_digest(traced.module)))
    except NotKept:
        return None


class CachedCompiler(NamedTuple):
    """Functions that lower a graph to loops, and compile it (`jit/stages.py`), if the cache does not have it."""
    lower: Callable[[TracedData, CompileOptions | None], LoweredData]
    lower_and_compile: Callable[[TracedData, CompileOptions | None, Context | None], tuple[Compiled, Image]]


def compile(traced: TracedData, request: CodeRequest, context: Context | None, compiler: CachedCompiler
            ) -> tuple[Compiled, bytes | None]:
    """Return the function compiled, or its code from the cache, and the key under which the cache has it now."""
    key = key_of(traced, request) if folder() else None
    if key is not None:
        kept = recall(key, context, Later(lambda: lowered(traced, request, key, compiler)), traced.results,
                       own_source(positions(traced.module)))
        if kept is not None:
            return kept, key
    compiled, image = compiler.lower_and_compile(traced, with_findings(request, key), context)
    return compiled, key if key and keep(key, compiled.executable.code, image) else None


def lowered(traced: TracedData, request: CodeRequest, key: bytes | None, compiler: CachedCompiler) -> LoweredData:
    """Return the function lowered, with the schedules that a measured search has kept for it."""
    return compiler.lower(traced, with_findings(request, key))


def with_findings(request: CodeRequest, key: bytes | None) -> CompileOptions | None:
    """Return the options with the findings that a measured search has kept for the function of that key."""
    findings = findings_of(key)
    if not findings:
        return request.options
    from dataclasses import replace

    from ...lowering.options import CompileOptions
    options = request.options or CompileOptions()
    return options if options.tuning else replace(options, tuning=findings)


def findings_of(key: bytes | None) -> Choices:
    """Return the findings that a measured search has kept for the function of that key."""
    where = folder()
    entry = where.read("tuning", key) if where and key else None
    return tuple((name, tuple(texts)) for name, texts in entry.fields["findings"].items()) if entry else ()


def keep_findings(traced: TracedData, request: CodeRequest, findings: Choices, compiler: CachedCompiler) -> bool:
    """Keep the findings of a search, and the resulting code in place of the code before; return whether it was possible."""
    where, key = folder(), key_of(traced, request)
    if where is None or key is None or not where.write("tuning", key, {"findings": dict(findings)}):
        return False
    compiled, image = compiler.lower_and_compile(traced, with_findings(request, key), Context("tune"))
    return keep(key, compiled.executable.code, image)


def recall(key: bytes, context: Context | None, lowered: Later[LoweredData], results: Structure | None,
           own: Source) -> Compiled | None:
    """Return the code of that key as a function, None if the cache does not have it. `lowered` is called when a caller asks for
    the stages before."""
    from ..compiled import Compiled
    where = folder()
    entry = where.read("code", key) if where else None
    if entry is None:
        return None
    try:
        code = code_of(entry, own, caller, thread_pool, interrupts)
    except OSError:
        return None
    return Compiled(lowered, Executable(code, process if context is None else context), results)


def keep(key: bytes, code: Code, image: Image) -> bool:
    """Write code to the cache; return whether it was possible."""
    where = folder()
    if where is None or not where.write("code", key, *fields_of(code, image)):
        return False
    if code.steps <= MAX_LOCKED_STEPS:
        keep_caller(where)
    if code.tasks > 1:
        keep_pool(where)
    if code.interrupts is not None:
        keep_interrupts(where)
    return True


def positions(module: Module) -> Iterator[Position | None]:
    """Yield the positions that errors of a run may name."""
    for operation in module.declarations:
        yield operation.position
    for function in module.functions:
        for operation in function.body.walk():
            if operation.op.variable_effect or operation.op.is_check:
                yield operation.position
