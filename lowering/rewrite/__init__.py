"""Graph -> graph. `rewrite` is the list of passes that every graph goes through before fusion."""
from __future__ import annotations

from ..graph.graph import Module
from .branches import inline_branches
from .decompose import decompose
from .fourier import expand_transforms
from .legalize import legalize
from .postpone_writes import postpone_writes
from .prune import prune
from .strip_quantized import strip_quantized


def rewrite(module: Module) -> Module:
    """Take quantized types as they are stored, legalise what converters leave behind, make block-scaled tensors two, write
    Fourier transforms as products, drop what nobody needs, and write variables as late as that saves copies."""
    return postpone_writes(prune(expand_transforms(decompose(legalize(inline_branches(strip_quantized(module)))))))
