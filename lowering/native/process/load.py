"""Program and plan -> code in this process, which the runtime calls."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....runtime.arena import ALIGNMENT, aligned
from ....runtime.arguments import Signature, Tensor
from ....runtime.errors import Problem
from ....runtime.executable import Code, Executable, Failure
from ....runtime.machine_code import Image, is_debugged
from ....runtime.threads import MOST
from ....runtime.variable import Declaration
from ....runtime.variables import Context, process
from ...elements.affine import Axis
from ...elements.expression import Buffer, Expr, Reduce
from ...elements.traverse import free_axes, nodes
from ...graph.quantized import Quantized, quantization_of
from ...kernels.kernel import Kernel, Loop, walk
from ...loops.cost import cycles
from ...loops.ir import Function
from ...loops.program import Program
from ...machine_code.codegen import Engine, compiled_image, debugged_image, image_with
from ...machine_code.llvm_writer import plain
from ...memory.buffers import aligned as rounded
from ...memory.plan import Plan
from ...target.presets import host
from ...target.target import Target
from ..driver.buffer_addresses import BufferAddresses, Place, Slot
from ..driver.module import PlacedProgram, constants_read, kernel_positions, module_text, pool_slots, pools_used
from ..driver.parallel_steps import is_parallel, most_tasks
from ..driver.timed_driver import COUNTERS
from ..driver.variable_rollback import rollback_of
from ..llvm.emit import EmittedEarlier
from . import interrupt_flag
from .function_object_code import caller
from .thread_pool import thread_pool

if TYPE_CHECKING:
    from .concurrent_codegen import ConcurrentCodegen


PREFIX = "program"
"""Prefix of the symbols of a program in this process."""


def load(program: Program, plan: Plan, target: Target | None = None, context: Context = process,
         elements: Mapping[Buffer, str] | None = None) -> Executable:
    """Return the program as machine code of this process (`target` None: the machine that it runs on), with its variables in
    `context`. `elements` gives the element types of inputs and outputs that their dtype does not determine (i4, i48).

    Raises a Problem if a variable exists in the context with another type.
    """
    return Executable(native_code(program, plan, target, elements)[0], context)


def native_code(program: Program, plan: Plan, target: Target | None = None,
                elements: Mapping[Buffer, str] | None = None, text: str | None = None,
                concurrent: ConcurrentCodegen | None = None, threads: int = MOST,
                quantized: Mapping[Buffer, Quantized] | None = None) -> tuple[Code, Image]:
    """Return the code that `load` binds to variables, and its image, from which another process can load it again. `text` is
    another module with the same entry; `concurrent` has the functions that are compiled already. The code runs on at most
    `threads` threads, and no more than it has tasks. `quantized` gives the quantization of inputs, outputs and variables."""
    target = target or host()
    image = image_with(concurrent, native_text(program, plan, target, concurrent.emitted), target) if concurrent else None
    if image is None and text is None and is_debugged():
        image = debugged_image(native_text(program, plan, target), kernel_positions([placed(program, plan)]), target)
    image = image or compiled_image(text or native_text(program, plan, target), target)
    engine = Engine("", target, image=image._replace(functions=named_functions(program, plan, image, concurrent)))
    named, numbers = elements or {}, quantized or {}
    inputs, outputs = (tuple(tensor(b, named.get(b, ""), numbers.get(b)) for b in buffers)
                       for buffers in (program.inputs, program.outputs))
    pools, nbytes, alignment = arena_layout(program, plan)
    places = frame_places(program, plan)
    return Code(
        Signature(program.name, inputs, outputs), engine.function(f"{PREFIX}.run"), engine.close, nbytes, alignment, pools,
        tuple(aligned(b.data) for b in constants_read(program) if b.data is not None),
        tuple(Declaration(tensor(v.buffer, v.element, numbers.get(v.buffer)), None if v.initial is None else v.initial.data,
                          v.position, v.external) for v in program.variables),
        tuple(Failure(f.message, f.position, f.help, f.kind) for f in program.faults), engine.address(f"{PREFIX}.run"),
        steps_of(program, target), caller, min(threads, most_tasks(program)), thread_pool if is_parallel(program) else None,
        interrupt_flag.words if places.interrupts else None), engine.image


def named_functions(program: Program, plan: Plan, image: Image, concurrent: ConcurrentCodegen | None
                    ) -> tuple[tuple[str, int, int], ...]:
    """Return the functions of an image, named after the program and its kernels, even those that were compiled before the
    kernels had numbers."""
    names: dict[str, str] = {}
    if concurrent is not None:
        for function, name in zip(program.functions, placed(program, plan).kernel_names()):
            names.setdefault(concurrent.name_of(function), name)
    own = plain(program.name)
    return tuple((names.get(name, name).replace(PREFIX, own, 1), offset, nbytes) for name, offset, nbytes in image.functions)


def steps_of(program: Program, target: Target) -> float:
    """Return the maximum number of elements and terms of sums that one run computes, or its approximate cycles if those are
    fewer; infinity if a loop may run for ever."""
    if not program.kernels or has_loops(program):
        return float("inf")
    return sum(work_of(k, f, target) for k, f in zip(program.kernels, program.functions))


def has_loops(program: Program) -> bool:
    """True if a run may go on for ever."""
    return any(isinstance(s, Loop) for s in walk(program.steps))


def is_interruptible(program: Program) -> bool:
    """True if a run in this process can be ended by the interrupt flag."""
    return has_loops(program) and interrupt_flag.is_supported()


def work_of(kernel: Kernel, function: Function, target: Target) -> float:
    """Return a kernel's elements and terms, or its cycles if those are fewer (vectors hold many); rows that are only known at
    run time count as terms."""
    return terms_of(kernel) if function.rows else min(terms_of(kernel), cycles(function, target.costs))


def terms_of(kernel: Kernel) -> int:
    """Return the number of elements and terms of sums that a kernel computes; a sum that several elements share counts once."""
    sums = [{*free_axes(e) - bound(e), *e.axes} for e in nodes(kernel.value) if isinstance(e, Reduce)]
    return sum(math.prod(a.extent for a in axes) for axes in [set(kernel.axes), *sums])


def bound(e: Expr) -> set[Axis]:
    """Return the axes of all reductions."""
    return {a for node in nodes(e) if isinstance(node, Reduce) for a in node.axes}


def tensor(buffer: Buffer, element: str = "", quantized: Quantized | None = None) -> Tensor:
    """Return a buffer as the runtime describes it."""
    return Tensor(buffer.name, buffer.dtype, buffer.shape, element, quantization_of(quantized))


def native_text(program: Program, plan: Plan, target: Target, earlier: EmittedEarlier | None = None) -> str:
    """Return the program's module in LLVM IR; its entry is `i32 @program.run(ptr %frame)`. Functions emitted `earlier` are only
    declared."""
    return module_text([placed(program, plan)], target, earlier=earlier)


def placed(program: Program, plan: Plan) -> PlacedProgram:
    """Return the program of a module of this process."""
    return PlacedProgram(PREFIX, program, frame_places(program, plan), exported=True)


def timed_text(program: Program, plan: Plan, target: Target) -> str:
    """Return `native_text` with a record of each step's begin and end times, in an array after the constants of the frame."""
    if target.architecture not in COUNTERS:
        raise Problem(f"a profile needs a processor's counter, and that of {target.architecture} is not known",
                      kind="unsupported")
    places, events = frame_places(program, plan), Slot(frame_size(program, plan))
    return module_text([PlacedProgram(PREFIX, program, places, exported=True, events=events)], target)


def frame_places(program: Program, plan: Plan) -> BufferAddresses:
    """Return the layout of the frame of `runtime.executable.Code`: inputs, outputs, variables, their flags, pools (and the room
    for copies of variables), the thread pool if there are parallel steps, the interrupt flag if there are loops, constants."""
    variables = [v.buffer for v in program.variables]
    order = [*program.inputs, *program.outputs, *variables]
    buffers: dict[Buffer, Place] = {b: Slot(i) for i, b in enumerate(order)}
    flags: dict[Buffer, Place] = {b: Slot(len(order) + i) for i, b in enumerate(variables)}
    first = len(order) + len(variables)
    buffers |= pool_slots(program, plan, first)
    after = first + len(pools_used(plan))
    threads, interrupts = is_parallel(program), is_interruptible(program)
    buffers |= {b: Slot(after + 1 + threads + interrupts + i) for i, b in enumerate(constants_read(program))}
    return BufferAddresses(buffers, flags, Slot(after), Slot(after + 1) if threads else None,
                           Slot(after + 1 + threads) if interrupts else None)


def frame_size(program: Program, plan: Plan) -> int:
    """Return the number of pointers in the frame."""
    places = frame_places(program, plan)
    assert isinstance(places.rollback, Slot)
    return places.rollback.index + 1 + is_parallel(program) + is_interruptible(program) + len(constants_read(program))


def arena_layout(program: Program, plan: Plan) -> tuple[tuple[int, ...], int, int]:
    """Return the layout of one arena that holds the pools in sequence, then the room for copies of variables: offsets, bytes,
    alignment."""
    offsets, end, alignment = [], 0, ALIGNMENT
    for pool in pools_used(plan):
        alignment = max(alignment, pool.alignment)
        offsets.append(rounded(end, max(ALIGNMENT, pool.alignment)))
        end = offsets[-1] + pool.size_bytes
    nbytes = rollback_of(program, is_interruptible(program)).nbytes
    offsets.append(rounded(end, ALIGNMENT) if nbytes else 0)
    return tuple(offsets), offsets[-1] + nbytes if nbytes else end, alignment
