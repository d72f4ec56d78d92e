"""The constants of a machine for cost models: the cost of an instruction, an iteration, a barrier or a line of code.

Cost functions are beside the decisions that they serve (`grep -rn "costs\\." lowering`) and share their primitives in
`loops.cost`; the numbers are here, one field each with its unit in its name, and are a field of `Target`. A limit of an
algorithm, which is not a property of a machine, stays with the algorithm.

Each value says how it was found in one of four ways. *Estimated*: from tables of instructions, or by counting. *Chosen*: set by
hand while whole models and kernels were measured; no measurement of it alone is recorded. *Measured*: by a test of its own.
*Known*: documented of such machines. All measurements were made on one kind of machine (x86-64 with AVX-512 and AMX, 2 MB of
second-level cache); the other presets have the same values until somebody measures there.
"""
from __future__ import annotations

from typing import NamedTuple

from ...runtime.records import dataclass


class LoadPrices(NamedTuple):
    """Cycles of the loads of a register tile's step, beside its products."""
    row_element_cycles: float
    """An element of a row, from the first-level cache, to all lanes."""
    panel_vector_cycles: float
    """A vector of a panel, from the second-level cache."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of operations on a machine. Cycles are of one core."""

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

    # ---- caches ------------------------------------------------------------------------------------------------------
    cache_line_bytes: int = 64
    """Bytes of a line of each cache."""
    cache_set_stride_bytes: int = 4096
    """Distance of addresses that map to the same set of a first-level cache, whatever its size: a page, so that the set is
    found while the address is translated. Known."""
    few_sets_stride_bytes: int = 2048
    """Distance of rows that map to few sets of a first-level cache. Known: half of the above."""
    l3_bytes_per_cycle: float = 10
    """Throughput of the third-level cache. Chosen."""
    memory_bytes_per_cycle: float = 2.0
    """Throughput of weights from memory that no loop prefetches. Measured: weights of ResNet-50's convolutions of 3 x 3, as
    minimal filters and as limbs have them; 9 to 14 MB of a layer instead of 2 to 9 made the whole 10 to 25 % slower."""
    shared_cache_bytes: int = 0
    """Size of the third-level cache, on machines where stores of several threads are faster into it than past it. Measured on
    AMD Zen 5 with 32 MB: on two threads a chain of operators, 33 MB with its input, took three quarters of the time, a softmax
    nine tenths; on one thread stores past the caches were faster by a tenth, for a normalisation of rows by a third. On Intel's
    they were on two threads, too."""
    prefetch_distance_bytes: int = 1024
    """Distance from the loads to their prefetches, for kernels that write more than the caches hold. The processor prefetches
    by itself, but not into its nearest cache, and not far if stores alternate with the loads. Chosen."""

    # ---- register tiles of contractions (`schedule.contraction`) -----------------------------------------------------
    tile_prices: LoadPrices = LoadPrices(0.05, 0.3)
    """Load prices of vector products. Chosen."""
    blocked_tile_prices: LoadPrices = LoadPrices(0.1, 0.8)
    """Load prices of products so large that nothing else counts. Chosen."""
    int8_tile_prices: LoadPrices = LoadPrices(0.25, 0.35)
    """Load prices of large products of bytes: many rows are many streams of few bytes each. Chosen."""
    integer_tile_prices: LoadPrices = LoadPrices(0.5, 0.15)
    """Load prices of slow integer products: the multiplier unit broadcasts an element to all lanes. Chosen."""
    tile_line_fraction: float = 1.0
    """Cost of a line of a register tile's code, relative as in `window_line_fraction`. Chosen."""
    tile_shape_fraction: float = 0.02
    """Fraction of the total time that one more tile shape must save. Chosen."""
    dual_tile_rows: int = 2
    """Rows of a tile of products of bytes by pairs of 16 bits. Chosen: four sums and their operands fit thirteen registers."""
    dual_tile_columns: int = 2
    """Columns of that tile. Chosen for the same reason."""
    dual_row_columns: int = 4
    """Columns of that tile with one row. Chosen for the same reason."""
    spare_registers: int = 1
    """Vector registers that a register tile leaves to LLVM, which needs more than all of 32. With 16, where a product takes no
    element from memory, LLVM needs one more, because it loads the next element before the last product of the previous one.
    Measured: with one, AVX2 took 12.2 ms for MobileNetV1 f32 and 5.9 for MobileNetV2, with two 8.9 and 5.0; others took as
    long."""
    crowded_tile_rows: int = 8
    """Maximum number of rows of a tile whose rows are a multiple of `cache_set_stride_bytes` apart: more would not fit the ways
    of the first-level cache. Known."""
    int32_product_cycles: float = 1.5
    """A product of vectors of int32 and its sum. Estimated: several instructions on x86."""
    int64_product_cycles: float = 2.0
    """The same of int64. Estimated."""
    spilled_vector_cycles: float = 4
    """A vector of sums that is spilled until its epilogue. Chosen."""
    condition_test_cycles: float = 2
    """A test of the conditions of a run of packed elements. Chosen."""
    column_pack_cycles: float = 0.5
    """Additional cycles of an element if columns of b are packed one by one. Chosen."""
    tile_configuration_cycles: float = 300
    """Giving tile registers their shapes. Chosen."""
    tile_panel_cycles: float = 40
    """A panel of a block of tile registers beside its steps and sums. Chosen."""

    # ---- windows and outputs without sums (`schedule.window`, `contraction.constant_outputs`) ------------------------
    addition_latency_cycles: float = 4
    """Latency of an addition. Known; `Target.fma_latency` is the same of a fused multiply-add, and less on machines with short
    pipelines."""
    short_loop_iteration_cycles: float = 1.5
    """An iteration of a short loop over the steps of a window beside its work; `iteration_cycles` is for loops of any kind.
    Chosen."""
    row_iteration_cycles: float = 4
    """An iteration of a loop inside several others, whose rows are not contiguous in memory. Chosen."""
    appended_store_cycles: float = 1.5
    """A vector store that directly follows the previous one in memory, with its share of the loop; `store_cycles` is the store
    alone. Chosen."""
    waiting_sums_fraction: float = 0.05
    """Additional fraction of the whole time with tiles of half as many rows, because sums wait for themselves. Chosen."""
    waiting_float_sums_fraction: float = 0.2
    """The same for floats, and for sums that share their operands. Chosen."""

    window_line_fraction: float = 1.0
    """Cost of a line of a window's code, relative to its cost where programs are compiled to run at once. Chosen."""

    # ---- elementwise (`schedule.elementwise`) ------------------------------------------------------------------------
    single_vector_fraction: float = 0.3
    """Additional fraction of the time of many vectors that one vector at a time takes. Chosen."""
    in_order_single_vector_fraction: float = 1.0
    """The same for long chains of operations, where several vectors could alternate, on a processor that does not look far
    enough ahead to see the next vector's operations. Chosen."""
    out_of_order_single_vector_fraction: float = 0.05
    """The same on a processor that does look far enough ahead. Chosen."""
    long_single_vector_fraction: float = 0.3
    """The same on that processor, for chains longer than `out_of_order_instructions`. Chosen."""
    out_of_order_instructions: int = 90
    """Maximum number of instructions of one vector beyond which that processor still sees the next vector's. Chosen."""

    # ---- threads (`schedule.parallelize`) ----------------------------------------------------------------------------
    task_grain_cycles: int = 15_000
    """Minimum work of a task. Estimated: about five microseconds, many times the time to hand out work and to wait for it."""
    repeated_fill_cycles: int = 10_000
    """Maximum time of a scratch fill that each task repeats, instead of being a phase of its own. Chosen."""
    barrier_cycles: int = 4_000
    """A phase beside its work: all threads wait for the last one. Chosen."""
    task_claim_cycles: int = 1_000
    """Claiming one more task: a word that threads share, and the cached data of the previous task. Chosen."""
    tasks_per_thread: tuple[int, ...] = (1, 2)
    """Numbers of tasks per thread that are tried. Measured: with four, products of floats whose weights come from memory were 4
    % slower."""
    thread_imbalance_fraction: float = 0.10
    """Fraction by which a thread takes longer than others; the others wait for its last task. Chosen."""
    own_scratch_bytes: int = 1 << 13
    """Maximum private scratch of a task if there are more tasks than threads. Chosen."""

    # ---- whole operations before they are compiled (`jit.op_by_op.cost_estimate`) ------------------------------------
    moved_byte_nanoseconds: float = 0.03
    """A byte that is read or written. Measured: 33 GB/s, for a sum of 3000 x 1000 f32 on one core."""
    element_nanoseconds: float = 0.05
    """An element of a result, in vectors. Measured."""
    product_nanoseconds: float = 0.02
    """A term of a sum of products. Measured: products of 512 x 512 in f32, and convolutions, on one core."""
    function_nanoseconds: float = 0.3
    """An element of a function that is computed by a polynomial or by division. Measured: exp."""


COSTS = Costs()
"""Costs of a machine without known costs of its own."""
