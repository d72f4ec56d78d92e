"""What was counted, as tables in Markdown, and what differs where nothing should."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .boards import Count
from .compiled import Figures
from .layers import Network


@dataclass(frozen=True, slots=True)
class Row:
    """A network on a processor. `layers` are tosaic's counts layer by layer, `kernels` CMSIS-NN's: each empty where it was not
    asked for or cannot be had. `peer_arena` is TFLite Micro's, or why there is none."""
    title: str
    processor: str
    network: Network
    figures: Figures
    layers: Sequence[Count]
    kernels: Sequence[Count]
    peer_arena: int | str

    @property
    def kernels_instructions(self) -> int:
        return sum(count.instructions for count in self.kernels)


HEAD = ("network, int8", "processor", "arena", "TFLite Micro's", "state", "flash", "stack", "instructions", "CMSIS-NN's",
        "ratio")
LAYER_HEAD = ("layer", "products", "tosaic", "CMSIS-NN", "ratio", "a product, tosaic", "CMSIS-NN")


def network_table(rows: Iterable[Row]) -> str:
    return markdown(HEAD, map(network_line, rows))


def network_line(row: Row) -> tuple[str, ...]:
    f = row.figures
    return (row.title, row.processor, number(f.arena), number(row.peer_arena), number(f.state), number(f.flash),
            number(f.stack), number(f.instructions), counted(row.kernels_instructions),
            ratio(row.kernels_instructions, f.instructions))


def layer_table(row: Row) -> str:
    """Layer by layer, and their sum; a whole network's instructions are in the other table."""
    lines = []
    for index, layer in enumerate(row.network.layers):
        lines.append(layer_line(layer.name, layer.products, *(c[index].instructions if c else 0
                                                              for c in (row.layers, row.kernels))))
    own = sum(count.instructions for count in row.layers)
    lines.append(layer_line("all", sum(layer.products for layer in row.network.layers), own, row.kernels_instructions))
    return f"{row.title}, {row.processor}\n\n{markdown(LAYER_HEAD, lines)}"


def layer_line(name: str, products: int, own: int, kernel: int) -> tuple[str, ...]:
    each = (f"{count / products:.2f}" if products and count else "-" for count in (own, kernel))
    return name, counted(products), counted(own), counted(kernel), ratio(kernel, own), *each


def ratio(theirs: int, own: int) -> str:
    """Above 1 tosaic takes fewer."""
    return f"{theirs / own:.2f}" if theirs and own else "-"


def number(value: int | str) -> str:
    """With its thousands; a dash for a reason why there is none."""
    return f"{value:,}" if isinstance(value, int) else "-"


def counted(value: int) -> str:
    """The same of what is never 0 where it was counted."""
    return number(value) if value else "-"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


# ---- what must be equal ------------------------------------------------------------------------------------------------
def differences(row: Row) -> Iterator[str]:
    """What is not equal to the bit: the network's outputs to the interpreter's and to those of LiteRT's reference kernels, and
    each layer's to LiteRT's."""
    where = f"{row.title} on {row.processor}"
    if row.figures.outputs != row.figures.interpreted:
        yield f"{where}: not what the interpreter has"
    for data, expected in zip(row.figures.outputs, row.network.expected, strict=True):
        yield from unequal(f"{where}: tosaic", data, expected)
    for name, counts in (("tosaic", row.layers), ("CMSIS-NN", row.kernels)):
        for layer, count in zip(row.network.layers, counts, strict=bool(counts)):
            yield from unequal(f"{where}, {layer.name}: {name}", count.data, layer.expected)


def unequal(where: str, data: bytes, expected: np.ndarray) -> Iterator[str]:
    found = np.frombuffer(data, expected.dtype)
    apart = np.abs(found.astype(np.int32) - expected.reshape(-1))
    if apart.any():
        yield f"{where} differs from LiteRT in {np.count_nonzero(apart)} of {apart.size}, by {apart.max()} at most"

