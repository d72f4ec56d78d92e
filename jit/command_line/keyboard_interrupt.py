"""Ctrl-C of the command line where Python would lose it. An interrupt is an exception in the code that runs at that moment; in
a `__del__`, a weak reference's callback or a hook of a fork, Python reports it as ignored, and the command would go on.
"""
from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 0.01
"""Seconds until a lost interrupt is sent again: by then the callback, and the hook that reports it, have ended."""


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """Send an interrupt again that Python ignores in this context, until it interrupts something other than a callback."""
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
    """Interrupt from another thread: in the hook itself, whose exceptions are ignored too, the main thread would lose it
    again."""
    timer = threading.Timer(PAUSE, interrupt)
    timer.daemon = True
    timer.start()
    return timer


def interrupt() -> None:
    """End the main thread's wait, with a signal where the system has them."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def forget_interrupt() -> None:
    """Let the process end with an exit code. Python remembers an interrupt that has passed through `exec` of a text, as in the
    creation of a dataclass, and would end by the signal although the interrupt was caught; the next `exec` clears that
    state."""
    exec("")
