"""Errors of a client's code (operators, callbacks, handlers) where nobody can catch them, and their conversion to Problems of
the operation in which they were raised. Nothing here raises, whatever the error, its message or the hook that prints it does.
"""
from __future__ import annotations

import sys

from ..errors import Problem

INTERRUPTS = KeyboardInterrupt, SystemExit
"""Errors that end a program: they are raised in the client's thread, in addition to their effect on the operation. All others,
including those that are no `Exception`, are errors of the operation alone."""


class Culprit:
    """Raises an error as a destructor, whose errors Python passes to `sys.unraisablehook`: the way to call the hook with
    arguments of its own type. The hook prints this object."""

    def __init__(self, error: BaseException, culprit: object) -> None:
        self.error, self.culprit = error, culprit

    def __call__(self) -> None:
        raise self.error

    def __repr__(self) -> str:
        return f"<tosaic's call of {self.culprit!r}>"


def unraisable(error: BaseException, culprit: object) -> None:
    """Report an error of `culprit` that nobody can catch to `sys.unraisablehook`, which prints it."""
    type("Reported", (), {"__del__": Culprit(error, culprit)})()


def problem_of(error: BaseException, op_name: str) -> Problem:
    """Return the error of an operation as a new Problem."""
    match error:
        case Problem() if is_sound(error):
            return error.copy().of(op_name)
        case MemoryError():
            return Problem(f"{op_name}: cannot allocate the result: {text_of(error)}", kind="memory",
                           help="free memory, or work on less")
    problem = Problem(f"{op_name} failed: {type(error).__name__}: {text_of(error)}", kind="operation")
    problem.__cause__ = error
    return problem


def sound(error: Problem, what: str) -> Problem:
    """Return this Problem, or another one if a client's own subclass has not initialized it."""
    return error if is_sound(error) else problem_of(error, what)


def is_sound(error: Problem) -> bool:
    """True if the Problem can be read and shown."""
    try:
        return isinstance(error.message, str) and isinstance(error.kind, str) and isinstance(str(error), str)
    except Exception:
        return False


def mark_reported(error: Problem) -> None:
    """Mark an error as known to a diagnostic handler."""
    error.__dict__["reported"] = True


def is_reported(error: Problem) -> bool:
    return "reported" in error.__dict__


def text_of(error: BaseException) -> str:
    """Return an error's message, whatever its `__str__` does."""
    try:
        return str(error)
    except BaseException as failure:
        return f"(its message cannot be shown: {type(failure).__name__})"


def show(text: str) -> None:
    """Print a diagnostic that no client handles, if there is a stream to print to."""
    if sys.stderr is not None:
        try:
            print(text, file=sys.stderr, flush=True)
        except Exception:  # whatever the client's file does
            return
