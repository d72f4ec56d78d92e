"""Open `.tosa` files in Arm's adapter for Model Explorer, where `tosa-adapter-model-explorer` (half a gigabyte) is installed:

    python tests/flatbuffer/viewers.py FILE...

prints each graph with its nodes, or what went wrong, and ends with 1 where something did. Netron is a page: `netron FILE`.
"""
from __future__ import annotations

import sys
from collections import Counter
from typing import Any


def faults(graph: Any) -> list[str]:
    """What a person would not see in a graph: nodes by the same name, edges from nowhere, results without a type."""
    nodes = {n.id: n for n in graph.nodes}
    same = [f"{name} is {count} nodes" for name, count in Counter(n.id for n in graph.nodes).items() if count > 1]
    edges = [f"{n.id} reads {e.sourceNodeId}, which is no node" for n in graph.nodes for e in n.incomingEdges
             if e.sourceNodeId not in nodes]
    plain = [f"{n.id} shows no result" for n in graph.nodes if n.label != "GraphOutputs" and not n.outputsMetadata]
    return [*same, *edges, *plain]


def main(paths: list[str]) -> int:
    from tosa_adapter_model_explorer.main import TosaFlatbufferAdapter
    adapter, wrong = TosaFlatbufferAdapter(), 0
    for path in paths:
        for graph in adapter.convert(path, {})["graphs"]:
            found = faults(graph)
            wrong += len(found)
            print(f"{path}: {graph.id}: {len(graph.nodes)} nodes", *found, sep="\n  ")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
