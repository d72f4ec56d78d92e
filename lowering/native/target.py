"""What a schedule and the emitter need to know of the machine."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A machine: LLVM's names for it, its vector unit and its caches. Sizes in bytes, rates per cycle."""
    triple: str
    cpu: str
    features: str
    vector_bytes: int = 16
    vector_registers: int = 16
    fma_per_cycle: float = 2
    loads_per_cycle: float = 2
    fma_latency: int = 4
    l2_bytes: int = 1 << 20
    streaming_bytes: int = 8 << 20
    has_dot4: bool = False
    """u8 x s8 products summed four a lane (VNNI)."""
    has_masked: bool = False
    """Masked vector loads and stores cost as much as plain ones."""

    def lanes(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in a vector."""
        return max(1, self.vector_bytes // itemsize)
