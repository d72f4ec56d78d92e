"""A graph as HTML for a notebook: its operators in layers, from the arguments down to the results, the number of uses of each
operator, and its text.

An operation is one layer below the last of its operands, and within its layer near the middle of them. Constants are not drawn:
a box lists the constants that it reads when the pointer is over it.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...lowering.stage_text import graph_text
from .report.lettering import SIZE, width
from .report.markup import Markup, shortened, table, tag
from .report.notebook import framed

if TYPE_CHECKING:
    from ...lowering.graph.graph import Function, Module, Operation, Value

MOST = 80
"""Maximum number of boxes in a picture: the lines between more boxes are illegible."""
TEXT_LINES = 400
"""Maximum number of lines of the graph's text that are shown."""
LONGEST = 26
"""Maximum number of characters of a line in a box."""
HIGH, GAP, BETWEEN, PADDING = 38, 26, 14, 9
"""Height of a box, distance of layers, distance of boxes, and space beside a box's text; in pixels."""


@dataclass(slots=True)
class Box:
    """The box of an argument, an operation or a result. `reads` are the values that lead to it."""
    title: str
    type: str
    about: str
    kind: str
    reads: tuple[Value, ...] = ()
    makes: tuple[Value, ...] = ()
    layer: int = 0
    left: float = 0.0

    @property
    def width(self) -> float:
        return max(width(self.title, bold=True), width(self.type)) + 2 * PADDING

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def top(self) -> float:
        return 1 + self.layer * (HIGH + GAP)


def graph_html(module: Module, function: Function) -> str:
    """Return the picture of a function, if it is small enough, with the operators that it uses and its text."""
    return framed(*parts(module, function))


def parts(module: Module, function: Function) -> Iterator[Markup]:
    operations = list(function.body.walk())
    known = known_values(function)
    counted = Counter(title_of(o) for o in operations if not is_known(o, known))
    yield tag("h1", shortened(function.name))
    yield tag("p", f"{len(function.arguments)} inputs, {len(function.body.yields)} outputs, {counted.total():,} operations, "
              f"{len(operations) - counted.total():,} constants.", class_="muted")
    boxes = boxes_of(function, known)
    if len(boxes) <= MOST:
        yield tag("section", picture(boxes, function.name))
    else:
        yield tag("p", f"{len(boxes):,} boxes are too many for a picture.", class_="note")
    rows = ([shortened(name), f"{count:,}"] for name, count in counted.most_common())
    yield tag("section", tag("details", tag("summary", f"Operators ({len(counted)})"), table(("operator", "uses"), rows, (1,))))
    lines = graph_text(module, False).split("\n")
    text = "\n".join(lines[:TEXT_LINES]) + ("\n..." if len(lines) > TEXT_LINES else "")
    yield tag("section", tag("details", tag("summary", "Text"), tag("pre", text)))


# ---- boxes -----------------------------------------------------------------------------------------------------------
def title_of(operation: Operation) -> str:
    return (operation.op.name or getattr(operation.op, "spelling", "")).removeprefix("tosa.")


def known_values(function: Function) -> set[Value]:
    """Return the constants, and the values computed from constants alone."""
    known: set[Value] = set()
    for operation in function.body.walk():
        if is_known(operation, known):
            known.update(operation.results)
    return known


def is_known(operation: Operation, known: set[Value]) -> bool:
    """True if an operation's results are known before a call."""
    of_known = bool(operation.operands) and not operation.regions and all(v in known for v in operation.operands)
    return bool(operation.results) and (of_known or all(r.constant is not None for r in operation.results))


def boxes_of(function: Function, known: set[Value]) -> list[Box]:
    """Return the boxes, in layers, each with its position."""
    boxes = [Box(short(f"%{a.name}"), short(str(a.type)), f"%{a.name}: {a.type}", "io", (), (a,)) for a in function.arguments]
    for operation in function.body.operations:
        if not is_known(operation, known):
            boxes.append(Box(short(title_of(operation)), short(", ".join(str(r.type) for r in operation.results)),
                             described(operation), "value", read_by(operation), operation.results))
    boxes += [Box("result", short(str(v.type)), f"result {number}: %{v.name}", "io", (v,))
              for number, v in enumerate(function.body.yields)]
    place(boxes)
    return boxes


def short(text: str) -> str:
    text = shortened(text).removeprefix("tensor<").removesuffix(">") if text.count("tensor<") == 1 else shortened(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST - 1]}…"


def read_by(operation: Operation) -> tuple[Value, ...]:
    """Return the operands of an operation, and the values that its regions read from outside."""
    inside = [o for region in operation.regions for o in region.walk()]
    made = {v for o in inside for v in o.results} | {a for r in operation.regions for a in r.arguments}
    return (*operation.operands, *(v for o in inside for v in o.operands if v not in made))


def described(operation: Operation) -> str:
    operands = [f"%{v.name}: {v.type}{' (constant)' * (v.constant is not None)}" for v in operation.operands]
    places = [str(operation.position)] if operation.position else []
    return "\n".join([str(operation), *(f"  {operand}" for operand in operands), *places])


def place(boxes: Sequence[Box]) -> None:
    """Assign each box its layer, and its position in the layer."""
    made = {value: box for box in boxes for value in box.makes}
    for box in boxes:
        box.layer = 1 + max((made[v].layer for v in box.reads if v in made), default=-1)
    layers: dict[int, list[Box]] = {}
    for box in boxes:
        layers.setdefault(box.layer, []).append(box)
    widest = max((row_width(row) for row in layers.values()), default=0.0)
    for number in sorted(layers):
        row = sorted(layers[number], key=lambda box: middle_of(box, made, widest))
        left = (widest - row_width(row)) / 2
        for box in row:
            box.left, left = left, left + box.width + BETWEEN


def row_width(row: Sequence[Box]) -> float:
    return sum(box.width for box in row) + BETWEEN * (len(row) - 1)


def middle_of(box: Box, made: dict[Value, Box], widest: float) -> float:
    above = [made[v].middle for v in box.reads if v in made]
    return sum(above) / len(above) if above else widest / 2


# ---- picture ---------------------------------------------------------------------------------------------------------
def picture(boxes: Sequence[Box], name: str) -> Markup:
    right = max((box.left + box.width for box in boxes), default=1.0) + 2
    bottom = max((box.top for box in boxes), default=0.0) + HIGH + 2
    made = {value: box for box in boxes for value in box.makes}
    edges = [edge(made[v], box) for box in boxes for v in dict.fromkeys(box.reads) if v in made]
    return tag("svg", *edges, *(drawn(box) for box in boxes), class_="graph", viewBox=f"-1 0 {right:.0f} {bottom:.0f}",
               width=f"{right:.0f}", font_size=SIZE, role="img",
               aria_label=f"Graph of {shortened(name)}: inputs above, results below")


def edge(above: Box, below: Box) -> Markup:
    start, end = above.top + HIGH, below.top
    bend = (end - start) / 2
    path = (f"M{above.middle:.1f} {start:.1f}C{above.middle:.1f} {start + bend:.1f} {below.middle:.1f} {end - bend:.1f} "
            f"{below.middle:.1f} {end:.1f}")
    return tag("path", d=path, fill="none", stroke="var(--muted)", stroke_width=1.1)


def drawn(box: Box) -> Markup:
    return tag("g", tag("title", box.about),
               tag("rect", x=box.left, y=box.top, width=box.width, height=HIGH, rx=5, fill=f"var(--{box.kind})",
                   stroke="var(--rule)"),
               tag("text", box.title, x=box.middle, y=box.top + 16, text_anchor="middle", font_weight=600),
               tag("text", box.type, x=box.middle, y=box.top + 31, text_anchor="middle", class_="axis"))
