"""Ctrl-C of the command line, where Python would lose it. An interrupt is an exception in whatever runs at that moment; in a
`__del__`, a weak reference's callback or a hook of a fork Python reports it as ignored, and the command would go on.
"""
from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 0.01
"""Seconds until a lost interrupt comes again: the callback, and what reports it, have ended by then."""


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """In it, an interrupt that Python ignores comes again, until something else than a callback is interrupted."""
    before = sys.unraisablehook
    coming: list[threading.Timer] = []

    def unraisable(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            if not any(timer.is_alive() for timer in coming):  # one for all that are lost together
                coming.append(interrupt_soon())
        else:
            before(ignored)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = before


def interrupt_soon() -> threading.Timer:
    """By another thread: the main one would be interrupted in the hook itself, whose exceptions are ignored, too."""
    timer = threading.Timer(PAUSE, interrupt)
    timer.daemon = True
    timer.start()
    return timer


def interrupt() -> None:
    """A signal, where there are any, ends what the main thread waits for."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def forget_interrupt() -> None:
    """After this the process can end with an exit code. Python remembers an interrupt that has passed through `exec` of a text,
    as in the making of a dataclass, and would end by the signal, although it was caught; the next `exec` forgets it."""
    exec("")
