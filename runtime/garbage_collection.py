"""The garbage collector looks less often while the compiler is imported, and a model read and compiled: modules and stages
make hundreds of thousands of objects that live until the end, and hardly a cycle, so that it finds next to nothing among the
young ones.

It is as it was when the last of several compiles is done. It is never off, so that programs that always compile have it, too.
"""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 500_000
"""Objects more than before after which it looks through the young ones; 700 are usual. Chosen: a compile of MobileNetV2 makes
300,000; each look through them would take a tenth of the time that it took to make them."""

STARTS = 8
"""Times that a process takes what is young for old: at its start, most of it lives as long as the process. Chosen: the imports
of a few names, a model or two; later ones are looked through, so that cycles are found."""

_lock = threading.Lock()
_compiles = 0
_before = gc.get_threshold()
"""What was set before the first of the compiles that are being done."""
_starts = 0
"""Times that this has been done."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Within, Python looks for cycles less often. Contexts may lie in each other and in several threads."""
    global _compiles, _before
    with _lock:
        _compiles += 1
        if _compiles == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < SELDOM:  # 0: it is off
                gc.set_threshold(SELDOM, *_before[1:])
    try:
        yield
    finally:
        with _lock:
            _compiles -= 1
            if not _compiles:
                call_old()
                restore()


def call_old() -> None:
    """Let the collector take all that there is for old, without a look at it, at a start; unless the program has set it to
    leave some alone for ever. It would be looked through as soon as the usual threshold holds again, which takes longer than
    most imports."""
    global _starts
    if _starts < STARTS and gc.isenabled() and gc.get_count()[0] > _before[0] and not gc.get_freeze_count():
        _starts += 1
        gc.freeze()
        gc.unfreeze()


def restore() -> None:
    """What was set before, unless somebody has set something else meanwhile."""
    if gc.get_threshold() == (SELDOM, *_before[1:]):
        gc.set_threshold(*_before)


def after_fork() -> None:
    """In the child: the compiles of other threads do not end."""
    global _lock
    _lock = threading.Lock()
    if _compiles:
        restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
