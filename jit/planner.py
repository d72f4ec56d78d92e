"""`tosaic.planner`: user-defined algorithms for the memory planner. An algorithm registered here has a name that `Memory` and
`--planner` take; each of its plans is checked.

    @tosaic.planner.register("stacked")
    def stacked(buffers, pools):
        places, end = {}, 0
        for b in buffers:
            start = tosaic.planner.aligned(end, b.alignment)
            places[b.name], end = tosaic.planner.PoolAllocation(pools[0].name, start), start + b.size_bytes
        return places

An algorithm takes buffers (sizes, alignments, the names of conflicting buffers, live ranges, candidate pools) and pools, and
returns the pool allocation of each buffer, by its name: TVM's interface. An algorithm with a parameter `memory_pressure`
receives the maximum number of bytes that are live at one time. `allocate` runs an algorithm by itself. A package provides an
algorithm to all programs by an entry point of the group `tosaic.memory_planners`.
"""
from __future__ import annotations

from ..lowering.memory.algorithms.lower_bound import lower_bound
from ..lowering.memory.algorithms.registry import Algorithm
from ..lowering.memory.algorithms.registry import algorithm as register
from ..lowering.memory.algorithms.registry import names as algorithms
from ..lowering.memory.algorithms.run import allocate
from ..lowering.memory.buffers import BufferInfo, PoolAllocation, PoolInfo, aligned, with_conflicts

__all__ = ["Algorithm", "BufferInfo", "PoolAllocation", "PoolInfo", "algorithms", "aligned", "allocate", "lower_bound",
           "register", "with_conflicts"]
