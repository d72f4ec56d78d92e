"""Forks a child and asks it something."""
from __future__ import annotations

import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Callable

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_child(check: Callable[[], bool], seconds: float = 60) -> bool:
    """True if `check` is true in a forked child, within `seconds`. What it raises there is on its standard error; a child
    that hangs says where."""
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(0.9 * seconds, file=sys.__stderr__)
        try:
            os._exit(0 if check() else 1)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False
