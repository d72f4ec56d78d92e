"""What the exact search of `search_kernel` knows while it runs: its record, as arrays of integers."""
from __future__ import annotations

from ....runtime.records import dataclass
from .compiled_python import Ints

NONE, FOUND, STOPPED = 0, 1, 2
"""How a search ends: with the proof that there is no plan, with a plan, or at its limit of nodes."""

EXHAUSTED, COMPLETE = -1, -2
HUGE = 1 << 60

DEPTH, TRAIL, COMPONENTS, LISTED, PENDING, OPEN, SCANNED, STUCK, NODES = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""What `Search.now` holds: the sizes of the stacks, the first component that is pending, what the last choice has seen of
its component, the section that it found no room in (-1: it was not that), and the nodes so far."""


@dataclass(slots=True)
class Search:
    """What the search knows. Buffers, sections and components have numbers; a buffer is open until it is placed. A frame is one
    decision: which buffer comes next. A component is a set of open buffers that conflict among themselves only."""
    # buffers
    size: Ints
    alignment: Ints
    conflict_start: Ints
    conflict: Ints
    section_start: Ints
    section: Ints
    low: Ints
    """First section of a buffer, and `high` the one after its last."""
    high: Ints
    rank: Ints
    twin: Ints
    """A buffer that is its equal and has the rank before it; -1 for none."""
    offset: Ints
    """The least that is possible now; where a buffer lies, once it is placed."""
    placed: Ints
    # sections
    member_start: Ints
    member: Ints
    grain: Ints
    """What the offsets of all members are multiples of."""
    total: Ints
    """Bytes that the open members take, rounded up to the grain."""
    limit: Ints
    """Bytes that the section may take, rounded like that."""
    crossing: Ints
    """Open buffers that are in this section, or around it, and in the one before."""
    hint: Ints
    """The member that was found last to lie low enough."""
    blame: Ints
    """How often the section was why the search went back."""
    # offsets to go back to
    trail_buffer: Ints
    trail_offset: Ints
    # frames
    chosen: Ints
    parent: Ints
    free: Ints
    """True if nothing can lie on top of the chosen buffer: no other choice is better."""
    frame_trail: Ints
    frame_component: Ints
    frame_pending: Ints
    frame_components: Ints
    frame_listed: Ints
    # components
    component_first: Ints
    """The members are among `listed[component_first:component_last]`, by rank: those whose first section is in
    component_low .. component_high - 1."""
    component_last: Ints
    component_low: Ints
    component_high: Ints
    component_frame: Ints
    """The decision that made it; -1 for none."""
    component_next: Ints
    listed: Ints
    # one division of a component
    piece: Ints
    piece_size: Ints
    piece_low: Ints
    piece_component: Ints
    now: Ints
