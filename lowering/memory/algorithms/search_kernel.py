"""The exact search's inner loop, in the subset of Python that `compiled` takes: place the buffers of one pool, bottom up,
within a given size, or find that it cannot be done. Canonical depth-first placement after Moffitt's MiniMalloc
(doi 10.1145/3623278.3624752).

A plan in which nothing can be moved down has every buffer at offset 0 or on top of one that it conflicts with. So
buffers are placed by rising offset, each at the least offset that those below leave it; of equal offsets by their rank.
One that is passed over can only lie on top of a later one. The search goes back as soon as some section (a set of mutual
conflicts) has more open bytes than fit above the lowest place that is left there.
"""
from __future__ import annotations

from .search_state import (
    COMPLETE,
    COMPONENTS,
    DEPTH,
    EXHAUSTED,
    FOUND,
    HUGE,
    LISTED,
    NODES,
    NONE,
    OPEN,
    PENDING,
    SCANNED,
    STOPPED,
    STUCK,
    TRAIL,
    Search,
)


def search(s: Search, buffers: int, sections: int, capacity: int, most_nodes: int, jump: int) -> int:
    """Place every buffer within `capacity` bytes: FOUND with `offset` filled, NONE, or STOPPED after `most_nodes`. With
    `jump` it goes back at once to the last decision that bears on where it got stuck; it may then miss plans, and NONE is
    no proof."""
    s.component_first[0], s.component_last[0], s.component_low[0], s.component_high[0] = 0, buffers, 0, sections
    s.now[COMPONENTS], s.now[LISTED], s.now[PENDING] = 1, buffers, -1
    divide(s, 0, -1)
    component, parent, after, after_rank = -1, -1, -1, -1
    while True:
        s.now[STUCK] = -1
        i = COMPLETE if component < 0 else choose(s, component, after, after_rank, capacity)
        if i == COMPLETE:
            component = s.now[PENDING]
            if component < 0:
                return FOUND
            s.now[PENDING], parent = s.component_next[component], s.component_frame[component]
            after = s.offset[s.chosen[parent]] if parent >= 0 else -1
            after_rank = s.rank[s.chosen[parent]] if parent >= 0 else -1
        elif i == EXHAUSTED:
            while parent >= 0 and (s.free[parent] or (jump and s.now[STUCK] >= 0 and not bears_on(s, parent))):
                parent = s.parent[parent]
            if parent < 0:
                return NONE
            component, after, after_rank = s.frame_component[parent], s.offset[s.chosen[parent]], s.rank[s.chosen[parent]]
            go_back(s, parent)
            parent = s.parent[parent]
        else:
            if s.now[NODES] == most_nodes:
                return STOPPED
            s.now[NODES] += 1
            frame, after, after_rank = open_frame(s, i, component, parent), s.offset[i], s.rank[i]
            separates = place(s, i, frame)
            if fits(s, frame, capacity):
                parent = frame
                if separates or s.now[SCANNED] > 2 * s.now[OPEN]:
                    component = divide(s, component, frame)
            else:
                go_back(s, frame)


def bears_on(s: Search, frame: int) -> int:
    """True if a decision placed a buffer in the section that the search is stuck in, or in a section of an open buffer of it
    that lies too high there."""
    i, stuck = s.chosen[frame], s.now[STUCK]
    if s.low[i] <= stuck and stuck < s.high[i]:
        return 1
    room = s.limit[stuck] - s.total[stuck]
    for p in range(s.member_start[stuck], s.member_start[stuck + 1]):
        j = s.member[p]
        if not s.placed[j] and s.offset[j] > room and s.low[j] < s.high[i] and s.low[i] < s.high[j]:
            return 1
    return 0


def choose(s: Search, component: int, after: int, after_rank: int, capacity: int) -> int:
    """The next buffer of a component to try: the first by (offset, rank) behind the last one tried. EXHAUSTED where it would
    lie no lower than the top of another that could be moved below it (the roof), or there is no plan with the ones before
    it passed over."""
    best, least, roof, tallest, open_ = COMPLETE, HUGE, HUGE, 0, 0
    low, high = s.component_low[component], s.component_high[component]
    for p in range(s.component_first[component], s.component_last[component]):
        i = s.listed[p]
        if s.placed[i] or s.low[i] < low or s.low[i] >= high:
            continue
        open_ += 1
        offset = s.offset[i]
        if offset > after or (offset == after and s.rank[i] > after_rank):
            roof = min(roof, offset + s.size[i])
            if offset < least and (s.twin[i] < 0 or s.placed[s.twin[i]]):
                best, least = i, offset
        else:
            tallest = max(tallest, s.size[i])
    s.now[OPEN], s.now[SCANNED] = open_, s.component_last[component] - s.component_first[component]
    if open_ == 0:
        return COMPLETE
    if least >= roof or roof + tallest > capacity:
        return EXHAUSTED
    return best if has_room(s, low, high, after, after_rank, roof) else EXHAUSTED


def has_room(s: Search, low: int, high: int, after: int, after_rank: int, roof: int) -> int:
    """True if each section has an open buffer that can lie so low that the section's open bytes fit above."""
    for k in range(low, high):
        if s.total[k] > 0:
            w, room = s.hint[k], s.limit[k] - s.total[k]
            if s.placed[w] or s.offset[w] > room or (room < roof and is_passed(s, w, after, after_rank)):
                w = lies_low(s, k, room, after, after_rank, roof)
                if w < 0:
                    s.blame[k] += 1
                    s.now[STUCK] = k
                    return 0
                s.hint[k] = w
    return 1


def is_passed(s: Search, i: int, after: int, after_rank: int) -> int:
    """True if an open buffer was passed over: it will lie on top of one that is placed later, so not below the roof."""
    if s.offset[i] < after or (s.offset[i] == after and s.rank[i] <= after_rank):
        return 1
    return 0


def lies_low(s: Search, section: int, room: int, after: int, after_rank: int, roof: int) -> int:
    """An open buffer of a section that can lie at `room` or below; -1 where there is none."""
    for p in range(s.member_start[section], s.member_start[section + 1]):
        i = s.member[p]
        if not s.placed[i] and s.offset[i] <= room and (roof <= room or not is_passed(s, i, after, after_rank)):
            return i
    return -1


def open_frame(s: Search, i: int, component: int, parent: int) -> int:
    """Note what is to be restored when this decision is taken back."""
    frame = s.now[DEPTH]
    s.now[DEPTH] = frame + 1
    s.chosen[frame], s.parent[frame], s.frame_component[frame] = i, parent, component
    s.frame_trail[frame], s.frame_pending[frame] = s.now[TRAIL], s.now[PENDING]
    s.frame_components[frame], s.frame_listed[frame] = s.now[COMPONENTS], s.now[LISTED]
    return frame


def place(s: Search, i: int, frame: int) -> int:
    """Place a buffer where it is, and raise what conflicts with it. Whether nothing open crosses some boundary now."""
    top, trail, free, separates = s.offset[i] + s.size[i], s.now[TRAIL], 1, 0
    s.placed[i] = 1
    for p in range(s.conflict_start[i], s.conflict_start[i + 1]):
        j = s.conflict[p]
        if not s.placed[j]:
            free = 0
            least = (top + s.alignment[j] - 1) & -s.alignment[j]
            if least > s.offset[j]:
                s.trail_buffer[trail], s.trail_offset[trail] = j, s.offset[j]
                trail += 1
                s.offset[j] = least
    s.now[TRAIL], s.free[frame] = trail, free
    for p in range(s.section_start[i], s.section_start[i + 1]):
        k = s.section[p]
        s.total[k] -= (s.size[i] + s.grain[k] - 1) & -s.grain[k]
    for k in range(s.low[i] + 1, s.high[i]):
        s.crossing[k] -= 1
        if s.crossing[k] == 0:
            separates = 1
    return separates


def fits(s: Search, frame: int, capacity: int) -> int:
    """True if everything that the last decision raised still ends within the capacity."""
    for t in range(s.frame_trail[frame], s.now[TRAIL]):
        j = s.trail_buffer[t]
        if s.offset[j] + s.size[j] > capacity:
            return 0
    return 1


def go_back(s: Search, frame: int) -> int:
    """Take back that decision and all after it."""
    for d in range(s.now[DEPTH] - frame):
        i = s.chosen[s.now[DEPTH] - 1 - d]
        s.placed[i] = 0
        for p in range(s.section_start[i], s.section_start[i + 1]):
            k = s.section[p]
            s.total[k] += (s.size[i] + s.grain[k] - 1) & -s.grain[k]
        for k in range(s.low[i] + 1, s.high[i]):
            s.crossing[k] += 1
    for t in range(s.now[TRAIL] - s.frame_trail[frame]):
        at = s.now[TRAIL] - 1 - t
        s.offset[s.trail_buffer[at]] = s.trail_offset[at]
    s.now[DEPTH], s.now[TRAIL], s.now[PENDING] = frame, s.frame_trail[frame], s.frame_pending[frame]
    s.now[COMPONENTS], s.now[LISTED] = s.frame_components[frame], s.frame_listed[frame]
    return 0


def divide(s: Search, component: int, frame: int) -> int:
    """Cut a component where nothing open crosses a boundary, into ones that are pending. -1: it itself is done with."""
    pieces, first, last = 0, s.component_first[component], s.component_last[component]
    low, high = s.component_low[component], s.component_high[component]
    for k in range(low, high):
        if k == low or s.crossing[k] == 0:
            s.piece_size[pieces], s.piece_low[pieces] = 0, k
            pieces += 1
        s.piece[k] = pieces - 1
    s.piece_low[pieces] = high
    for p in range(first, last):
        i = s.listed[p]
        if not s.placed[i] and low <= s.low[i] and s.low[i] < high:
            s.piece_size[s.piece[s.low[i]]] += 1
    for q in range(pieces):
        if s.piece_size[q] > 0:
            new_component(s, q, frame, first, last)
    for p in range(first, last):
        i = s.listed[p]
        if not s.placed[i] and low <= s.low[i] and s.low[i] < high:
            new = s.piece_component[s.piece[s.low[i]]]
            if s.component_first[new] != first:
                s.listed[s.component_last[new]] = i
                s.component_last[new] += 1
    return -1


def new_component(s: Search, piece: int, frame: int, first: int, last: int) -> int:
    """A piece as a component. It has a list of its own, still empty, unless that would be most of the old one."""
    new = s.now[COMPONENTS]
    s.now[COMPONENTS], s.piece_component[piece] = new + 1, new
    s.component_low[new], s.component_high[new] = s.piece_low[piece], s.piece_low[piece + 1]
    s.component_frame[new], s.component_next[new] = frame, s.now[PENDING]
    s.now[PENDING] = new
    if 2 * s.piece_size[piece] > last - first:
        s.component_first[new], s.component_last[new] = first, last
    else:
        s.component_first[new], s.component_last[new] = s.now[LISTED], s.now[LISTED]
        s.now[LISTED] += s.piece_size[piece]
    return new
