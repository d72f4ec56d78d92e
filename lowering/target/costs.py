"""The constants of a machine that cost models count with: what an instruction, an iteration, a barrier or a line of code costs.

Cost functions stand beside the decisions that they serve (`grep -rn "costs\\." lowering`) and share their primitives in
`loops.cost`; the numbers stand here, one field each with its unit in its name, and are a field of `Target`. What is not a
property of a machine but a limit of an algorithm stays with the algorithm.

How a value was found is said in one of three ways. *Estimated*: from tables of instructions, or by counting. *Chosen*: set by
hand while whole models and kernels were measured; no measurement of it alone is recorded. *Measured*: by a test of its own. All
measurements were made on one kind of machine (x86-64 with AVX-512 and AMX, 2 MB of second-level cache); the other presets have
the same values until somebody measures there.
"""
from __future__ import annotations

from ...runtime.records import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """What things cost on a machine. Cycles are of one core."""

    # ---- statements of the loop IR (`loops.cost`); caches are not looked at ------------------------------------------
    operation_cycles: float = 0.5
    """A scalar or vector operation. Estimated: two units start one each in a cycle."""
    division_cycles: float = 8.0
    """A division or a square root of a vector. Estimated."""
    load_cycles: float = 0.5
    """A vector load. Estimated: two in a cycle."""
    masked_load_cycles: float = 1.0
    """A vector load under a mask. Estimated."""
    gathered_lane_cycles: float = 1.0
    """Each active lane of a gather. Estimated."""
    store_cycles: float = 1.0
    """A vector store. Estimated: one in a cycle."""
    tile_load_cycles: float = 8.0
    """A tile register of a matrix unit from memory. Estimated: sixteen rows, two loads in a cycle."""
    tile_operation_cycles: float = 16.0
    """A product of two tile registers, or a store of one. Estimated: sixteen rows, one in a cycle."""
    iteration_cycles: float = 1.0
    """An iteration of a loop beside its body: counting and jumping. Estimated."""
    branch_cycles: float = 1.0
    """A condition beside its body. Estimated."""

    # ---- threads (`schedule.parallelize`) ----------------------------------------------------------------------------
    task_grain_cycles: int = 15_000
    """A task has no less work. Estimated: about five microseconds, many times what it takes to hand out work and to wait for
    it."""
    repeated_fill_cycles: int = 10_000
    """Filling scratch that takes no longer is repeated by each task instead of being a phase of its own. Chosen."""
    barrier_cycles: int = 4_000
    """A phase beside its work: all threads wait for the last one. Chosen."""
    task_claim_cycles: int = 1_000
    """Taking one more task: a word that threads share, and what was in the cache of the task before. Chosen."""
    tasks_per_thread: tuple[int, ...] = (1, 2)
    """How many tasks for each thread are tried. Measured: with four, products of floats whose weights come from memory were 4 %
    slower."""
    thread_imbalance_fraction: float = 0.10
    """How much longer a thread takes than others, in relation; what its last task takes is waited for. Chosen."""
    own_scratch_bytes: int = 1 << 13
    """Scratch that each task has for itself, at most, where there are more tasks than threads. Chosen."""

    # ---- whole operations before they are compiled (`jit.op_by_op.cost_estimate`) ------------------------------------
    moved_byte_nanoseconds: float = 0.03
    """A byte that is read or written. Measured: 33 GB/s, as a sum of 3000 x 1000 f32 has it on one core."""
    element_nanoseconds: float = 0.05
    """An element of a result, in vectors. Measured."""
    product_nanoseconds: float = 0.02
    """A term of a sum of products. Measured: products of 512 x 512 in f32, and convolutions, on one core."""
    function_nanoseconds: float = 0.3
    """An element of a function that is computed by a polynomial or by division. Measured: exp."""


COSTS = Costs()
"""Those of a machine of which nothing else is known."""
