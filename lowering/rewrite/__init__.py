"""Graph -> graph. `rewrite` is the list of passes that every graph goes through before fusion."""
from __future__ import annotations

from ..graph.graph import Module
from .branches import inline_branches
from .decompose import decompose
from .fourier import expand_transforms
from .join_rescales import join_rescales
from .legalize import legalize
from .lift_checks import lift_checks
from .pad_pools import pad_pools
from .postpone_writes import postpone_writes
from .prune import prune
from .split_concats import split_concats
from .strip_quantized import strip_quantized


def rewrite(module: Module) -> Module:
    """Take quantized types as they are stored, legalise what converters leave behind, make block-scaled tensors two, write
    Fourier transforms as products, join sums of rescaled bytes, give pools their padding, split concatenations of very many
    tensors, check before branches, drop what nobody needs, and write variables as late as that saves copies."""
    legal = legalize(inline_branches(strip_quantized(module)))
    plain = join_rescales(expand_transforms(decompose(legal)))
    return postpone_writes(prune(lift_checks(split_concats(pad_pools(plain)))))
