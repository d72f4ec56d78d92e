"""HTML of a report, and of a graph, for a notebook: the pictures and figures of the page (`page`), with its style limited to
them, and without its script.
"""
from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterator

from .axes import LAYOUTS
from .figures import Figures, PoolLine
from .live import sharing
from .markup import Child, Markup, shortened, tag
from .page import asset, folded, legend, lines, summary, tiles
from .picture import pool_picture
from .sections import buffer_table, kernel_table, size

LAYOUT = LAYOUTS[1]
"""Size of the pictures: that of paper and tablets fits the width of a notebook's cell."""
OWN = """
& { margin: 0; padding: 12px 14px; max-width: 860px; border-radius: 8px; }
h1 { font-size: 17px; } h2 { font-size: 15px; }
section { padding: 10px 12px; box-shadow: none; }
svg.plan, svg.graph { display: block; max-width: 100%; }
pre { max-height: 320px; overflow: auto; font-size: 12px; line-height: 1.4; background: none; color: inherit; }
"""


def framed(*content: Child) -> str:
    """Return a piece of a notebook, with its own style."""
    return tag("div", tag("style", style()), *content, class_="tosaic")


@functools.cache
def style() -> Markup:
    """Return the page's style sheet and the differences for notebooks, inside the rule for our own elements: the notebook keeps
    its own."""
    page = re.sub(r"(?m)^(\s*)(:root|html|body)(?= \{)", r"\1&", asset("page.css"))
    return Markup(f".tosaic {{{page}{OWN}}}")


def report_html(report: Figures) -> str:
    """Return the figures, a picture of each pool, kernels and buffers."""
    return framed(*sections(report))


def sections(report: Figures) -> Iterator[Markup]:
    yield tag("h1", shortened(report.name))
    yield tag("p", summary(report), class_="muted")
    yield tag("div", tiles(report), class_="tiles")
    shared, mark = sharing(report.buffers), zlib.crc32(str(report).encode(errors="replace"))
    for number, pool in enumerate(report.workspace_pools):
        yield tag("section", pool_section(report, pool, shared, f"{mark:x}-{number}"))
    yield tag("section", folded(f"Kernels ({len(report.kernels):,})", kernel_table(report)))
    if report.buffers:
        yield tag("section", folded(f"Buffers ({len(report.buffers):,})", buffer_table(report)))


def pool_section(report: Figures, pool: PoolLine, shared: dict[str, list[str]], number: str) -> Iterator[Markup]:
    """Yield a pool's figures, and its picture; the names of its patterns are unique in a notebook."""
    yield tag("h2", f"Pool {shortened(pool.name)}")
    yield tag("p", f"{size(pool.nbytes)}, live at once {pool.live_bytes:,}, waste {pool.waste:,}.", class_="note")
    if not pool.peak:
        yield tag("p", "Nothing lies in this pool.", class_="empty")
        return
    yield tag("ul", legend(report.held_by(pool.name), shared), lines(pool), class_="legend")
    yield pool_picture(report, pool, shared, number, LAYOUT)
