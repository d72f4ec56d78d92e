"""Independence of a loop's iterations: no iteration loads or stores an element that another one stores. Independent iterations
may run at the same time.

Iterations are independent where all accesses of one lie in a window narrower than the step from iteration to iteration, at
least modulo a number of which everything else is a multiple (the stride of an outer dimension).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from ...elements.expression import Buffer
from ..ir import For
from ..ranges import Interval, LinearForm
from .accesses import Access, Accesses

PLAIN = 1 << 50
"""A modulus that is larger than every buffer: places are compared as they are."""


def are_independent(accesses: Accesses, loop: For, buffers: Set[Buffer]) -> bool:
    """True if the iterations of a loop, whatever those of the loops around it, are independent in these buffers."""
    if accesses.iterations[loop.index] == 1:
        return True
    found = accesses.inside(loop.body).accesses
    return all(independent_in(accesses, loop, buffer, [a for a in found if a.buffer is buffer]) for buffer in buffers)


def independent_in(accesses: Accesses, loop: For, buffer: Buffer, found: Sequence[Access]) -> bool:
    symbol = accesses.symbol(loop)
    forms = dict.fromkeys(a.base for a in found if a.base is not None)
    if any(a.base is None for a in found):
        return False
    steps = {f.terms.get(symbol, 0) for f in forms}
    if len(steps) != 1 or steps == {0}:
        return not forms
    step, iterations = abs(steps.pop()), accesses.iterations[loop.index]
    rest = {f: LinearForm({s: c for s, c in f.terms.items() if s != symbol}, f.const) for f in forms}
    places = [(rest[a.base], offset, a.active) for a in found if a.base is not None for offset in a.offsets]
    return any(width(places, modulus, bounds) <= min(step, modulus - step * (iterations - 1))
               for bounds in (accesses.symbols.interval, accesses.symbols.closest)
               for modulus in moduli(buffer, rest.values(), step * iterations))


def width(places: Iterable[tuple[LinearForm, int, int]], modulus: int, bounds: Callable[[LinearForm], Interval]) -> int:
    """The elements of a window that has all these accesses, each a form, an offset to it and a number of neighbours, modulo a
    number. `bounds` are of a form, closer or cheaper."""
    first, end = [], []
    found: dict[LinearForm, Interval] = {}
    alike: dict[frozenset[tuple[int, int]], Interval] = {}
    for form, offset, active in places:
        if (known := found.get(form)) is None:
            terms = {symbol: c for symbol, c in form.terms.items() if c % modulus}
            key = frozenset(terms.items())
            if key not in alike:
                alike[key] = bounds(LinearForm(terms))
            known = found[form] = alike[key]
        start = (form.const + offset) % modulus
        first.append(start + known[0])
        end.append(start + known[1] + active)
    return max(end) - min(first)


def moduli(buffer: Buffer, forms: Iterable[LinearForm], least: int) -> Iterator[int]:
    """Numbers of which the steps of outer loops may be multiples, no less than `least`; one that is too large to matter
    first."""
    yield PLAIN
    found = {abs(c) for f in forms for c in f.terms.values()} | {*buffer.strides}
    yield from sorted((n for n in found if n >= least), reverse=True)
