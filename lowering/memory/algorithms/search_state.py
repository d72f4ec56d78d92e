"""The state of the exact search of `search_kernel` while it runs: a record of arrays of integers."""
from __future__ import annotations

from ....runtime.records import dataclass
from .compiled_python import Ints

NONE, FOUND, STOPPED = 0, 1, 2
"""Result of a search: the proof that there is no plan, a plan, or a stop at its limit of nodes."""

EXHAUSTED, COMPLETE = -1, -2
HUGE = 1 << 60

DEPTH, TRAIL, COMPONENTS, LISTED, PENDING, OPEN, SCANNED, STUCK, NODES = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Indices of `Search.now`: the sizes of the stacks, the first pending component, the open and the scanned buffers in the
component of the last choice, the section in which that choice found no room (-1: another reason), and the nodes so far."""


@dataclass(slots=True)
class Search:
    """The state of a search. Buffers, sections and components have numbers; a buffer is open until it is placed. A frame is one
    decision: which buffer comes next. A component is a set of open buffers that conflict only among themselves."""
    # buffers
    size: Ints
    alignment: Ints
    conflict_start: Ints
    conflict: Ints
    section_start: Ints
    section: Ints
    low: Ints
    """First section of a buffer; `high` is the one after its last."""
    high: Ints
    rank: Ints
    twin: Ints
    """Number of an equal buffer with the rank before a buffer's own; -1 for none."""
    offset: Ints
    """Least offset of a buffer that is possible now; its final offset once the buffer is placed."""
    placed: Ints
    # sections
    member_start: Ints
    member: Ints
    grain: Ints
    """Alignment of a section, in bytes: the offsets of all members are multiples of it."""
    total: Ints
    """Bytes that the open members take, rounded up to the grain."""
    limit: Ints
    """Bytes that the section may take, rounded in the same way."""
    crossing: Ints
    """Number of open buffers that are in this section, or around it, and in the one before."""
    hint: Ints
    """The member that was last found low enough."""
    blame: Ints
    """Number of times that the section made the search backtrack."""
    # offsets to go back to
    trail_buffer: Ints
    trail_offset: Ints
    # frames
    chosen: Ints
    parent: Ints
    free: Ints
    """True if no buffer can be on top of the chosen one: no other choice is better."""
    frame_trail: Ints
    frame_component: Ints
    frame_pending: Ints
    frame_components: Ints
    frame_listed: Ints
    # components
    component_first: Ints
    """Start of the slice `listed[component_first:component_last]`, by rank, that includes the members: the buffers whose first
    section is in component_low .. component_high - 1."""
    component_last: Ints
    component_low: Ints
    component_high: Ints
    component_frame: Ints
    """The decision that made the component; -1 for none."""
    component_next: Ints
    listed: Ints
    # one division of a component
    piece: Ints
    piece_size: Ints
    piece_low: Ints
    piece_component: Ints
    now: Ints
