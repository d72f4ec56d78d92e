"""tosaic.jit, the public objects: functions and models, their stages, tools, the command line. It may import lowering and
runtime.

    @tosaic.jit
    def step(x): ...

The module is called like a function: `tosaic.jit` compiles a Python function of tensors, once for every signature that it is
called with. Its options are those of `tosaic.jit.api.jit`.
"""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """The package as a module that can be called, so that `@tosaic.jit` and `import tosaic.jit.decorator` both work."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        from .api import jit
        return jit(*arguments, **named)

    @property
    def __signature__(self) -> Any:
        """The signature of a call, for `inspect.signature` and `help`."""
        import inspect

        from .api import jit
        return inspect.signature(jit)

    def __reduce__(self) -> tuple[Any, ...]:
        from importlib import import_module
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = CallableModule
