"""How a jitted function travels: by its module and qualified name, as pickle does with functions, or as the function itself,
which cloudpickle takes (Dask, Ray and joblib have it): lambdas, functions inside others, what a notebook or a script defines.
"""
from __future__ import annotations

import sys
from typing import Any

BY_VALUE = "cloudpickle"
"""In the name of the module of every pickler that takes functions as they are: cloudpickle itself, Ray's and joblib's copy."""


def importable_name(function: Any) -> str | None:
    """The qualified name by which a process that imports the function's module finds it there; None where it does not. What
    `__main__` defines has one for other processes of the same script alone (what multiprocessing spawns)."""
    name = getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    if name is None or found is None or "<" in name or (found.__name__ == "__main__" and takes_functions()):
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


def takes_functions() -> bool:
    """True if who pickles now takes functions by value. Picklers do not say it; the innermost frame that is neither pickle's
    nor ours is theirs."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in ("pickle", "copyreg", __name__, OWNER):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and BY_VALUE in str(frame.f_globals.get("__name__"))


OWNER = __name__.rpartition(".")[0] + ".decorator"
