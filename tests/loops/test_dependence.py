"""The dependence analysis beside a run of every iteration: what it says to be independent is."""
from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.dependence.access_order import may_overwrite
from tosaic.lowering.loops.dependence.dependence import Dependence
from tosaic.lowering.loops.ir import For, Function, access

from .nests import BUFFERS, Event, events, functions, loops

many = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def share_elements(done: list[Event], loop: For, buffer: Buffer) -> bool:
    """True if two iterations of a loop touch the same element, and one stores it."""
    found = [e for e in done if e.buffer is buffer and loop.index in e.iterations]
    return any(a.iterations[loop.index] != b.iterations[loop.index] and (a.is_store or b.is_store)
               and a.elements & b.elements for a, b in itertools.combinations(found, 2))


def is_carried(done: list[Event], loop: For, buffer: Buffer) -> bool:
    """True if an iteration loads what another one has stored."""
    stored: dict[int, int | None] = {}
    for event in done:
        iteration = event.iterations.get(loop.index)
        for element in event.elements if event.buffer is buffer else ():
            if event.is_store:
                stored[element] = iteration
            elif iteration is not None and stored.get(element, iteration) not in (iteration, None):
                return True
    return False


def loads_only_what_is_stored(done: list[Event], buffer: Buffer) -> bool:
    stored: set[int] = set()
    for event in done:
        if event.buffer is buffer and event.is_store:
            stored |= event.elements
        elif event.buffer is buffer and not event.elements <= stored:
            return False
    return True


@many
@given(functions())
def test_iterations_that_are_said_to_be_independent_share_no_element(function: Function) -> None:
    found, done = Dependence(function), events(function)
    for loop in loops(function.body):
        for buffer in BUFFERS:
            if found.are_independent(loop, {buffer}):
                assert not share_elements(done, loop, buffer)


@many
@given(functions(filled=True))
def test_no_iteration_of_the_outer_loop_loads_what_another_stores_unless_it_is_said(function: Function) -> None:
    """Of functions that load nothing from scratch that has not been stored."""
    scratch, done = BUFFERS[-1], events(function)
    if not loads_only_what_is_stored(done, scratch):
        return
    found, (loop,) = Dependence(function), function.body
    assert isinstance(loop, For)
    if not found.is_carried(loop, {scratch}):
        assert not is_carried(done, loop, scratch)


def loads_before_it_stores(done: list[Event], read: Buffer, written: Buffer) -> bool:
    """True if no element of the one is loaded once that of the other at its place has been stored."""
    stored: set[int] = set()
    for event in done:
        if event.buffer is read and not event.is_store and event.elements & stored:
            return False
        if event.buffer is written and event.is_store:
            stored |= event.elements
    return True


@many
@given(functions())
def test_what_may_be_overwritten_is_loaded_before(function: Function) -> None:
    done = events(function)
    for read, written in itertools.product(BUFFERS, repeat=2):
        if may_overwrite(function, read, written):
            assert loads_before_it_stores([inside(e) for e in done], read, written)


@many
@given(functions(conditions=False))
def test_without_conditions_all_that_may_be_overwritten_is_found(function: Function) -> None:
    done = [inside(e) for e in events(function)]
    for read, written in itertools.product(BUFFERS, repeat=2):
        assert may_overwrite(function, read, written) == loads_before_it_stores(done, read, written)


def inside(event: Event) -> Event:
    """Elements outside of the buffer are none (those of lanes that are masked)."""
    return Event(event.iterations, event.buffer, event.is_store, event.elements & frozenset(range(event.buffer.size)))


@many
@given(functions())
def test_a_statement_touches_the_buffers_that_it_is_said_to_touch(function: Function) -> None:
    loaded, stored = Dependence(function).touched(function.body[0])
    assert (loaded, stored) == (access(function).read, access(function).written)
