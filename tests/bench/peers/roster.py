"""Who takes part: each peer's environment, engine, and what it is known not to take without being asked."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .cases import Case
from .environment import python


@dataclass(frozen=True, slots=True)
class Peer:
    """A column. `part` is what its environment needs of `environment.REQUIREMENTS` (nothing: this process' own);
    `compiles` says whether a second process finds what the first compiled: once for any number of threads, or for each."""
    name: str
    engine: str
    part: str = ""
    option: str = ""
    compiles: Literal["", "once", "each"] = ""
    is_default: bool = True

    @property
    def interpreter(self) -> Path:
        return python("peers") if self.part else Path(sys.executable)

    def refuses(self, case: Case) -> str:
        """The reason, where it is known; else nothing."""
        match self.engine:
            case "numpy" if case.family != "product":
                return "products alone"
            case "numpy" if case.is_quantised:
                return "int8 products do not go to its BLAS"
            case "torch" | "jax" if case.family == "network" and case.is_quantised:
                return "no way from an int8 .tflite"
        return ""


OWN = Peer("tosaic", "tosaic", compiles="each")

MACHINE = Peer("machine", "machine")
"""The unit that bounds the case, at work alone: not a peer, but in every round of batches."""

PEERS = {peer.name: peer for peer in (
    OWN,
    Peer("litert", "litert", "litert"),
    Peer("openvino", "openvino", "openvino", compiles="once"),
    Peer("iree", "iree", "iree", compiles="once"),
    Peer("iree-dt", "iree", "iree", "--iree-opt-data-tiling", compiles="once"),
    Peer("onnxruntime", "onnxruntime", "onnxruntime"),
    Peer("torch", "torch", "torch"),
    Peer("inductor", "torch", "torch", "inductor", compiles="once", is_default=False),
    Peer("jax", "jax", "jax", compiles="once"),
    Peer("numpy", "numpy", "numpy"),
)}
