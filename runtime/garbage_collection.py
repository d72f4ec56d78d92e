"""Less frequent garbage collection while the compiler is imported, and a model read and compiled: modules and stages create
hundreds of thousands of objects that live until the end, and hardly any cycles, so that collections of the young generation
find next to nothing.

The previous setting is restored when the last of several compiles is done. Collection is never off, so that programs that
always compile are collected, too.
"""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 500_000
"""Threshold of the young generation, in net new objects; 700 are usual. Chosen: a compile of MobileNetV2 creates 300,000; every
traversal of them would take a tenth of the time of their creation."""

STARTS = 8
"""Maximum number of times that a process moves the young generation to the old one: at its start, most objects live as long as
the process. Chosen: the imports of a few names, a model or two; later objects are traversed, so that cycles are found."""

_lock = threading.Lock()
_compiles = 0
_before = gc.get_threshold()
"""Thresholds before the first of the current compiles."""
_starts = 0
"""Number of times that the young generation was moved."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let Python collect cycles less often in this context. Contexts may be nested and in several threads."""
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
    """Move all objects to the old generation without a traversal, at a start; unless the program has frozen objects itself.
    Otherwise they would be traversed as soon as the usual threshold is restored, which takes longer than most imports."""
    global _starts
    if _starts < STARTS and gc.isenabled() and gc.get_count()[0] > _before[0] and not gc.get_freeze_count():
        _starts += 1
        gc.freeze()
        gc.unfreeze()


def restore() -> None:
    """Restore the previous thresholds, unless somebody has changed them meanwhile."""
    if gc.get_threshold() == (SELDOM, *_before[1:]):
        gc.set_threshold(*_before)


def after_fork() -> None:
    """Reset the state in a forked child: the compiles of other threads do not end."""
    global _lock
    _lock = threading.Lock()
    if _compiles:
        restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
