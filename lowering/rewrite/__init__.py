"""Graph -> graph. `rewrite` is the list of passes that every graph goes through before fusion."""
from __future__ import annotations

from ..graph.graph import Module
from .legalize import legalize
from .prune import prune


def rewrite(module: Module) -> Module:
    """Legalise what converters leave behind, then drop what nobody needs."""
    return prune(legalize(module))
