"""The pickle of a jitted function: its module and qualified name, as pickle does with functions, or the function itself for
cloudpickle (used by Dask, Ray and joblib): lambdas, nested functions, functions of a notebook or a script.
"""
from __future__ import annotations

import sys
from typing import Any

BY_VALUE = "cloudpickle"
"""Part of the module name of every pickler that takes functions by value: cloudpickle itself, Ray's and joblib's copy."""


def importable_name(function: Any) -> str | None:
    """Return the qualified name by which a process that imports the function's module finds it there; None if it does not. For
    definitions of `__main__`, only other processes of the same script do (those that multiprocessing spawns)."""
    name = getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    if name is None or found is None or "<" in name or (found.__name__ == "__main__" and takes_functions()):
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


def takes_functions() -> bool:
    """True if the current pickler takes functions by value. Picklers do not tell; the innermost frame that belongs neither to
    pickle nor to tosaic is the pickler's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in ("pickle", "copyreg", __name__, OWNER):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and BY_VALUE in str(frame.f_globals.get("__name__"))


OWNER = __name__.rpartition(".")[0] + ".decorator"
