"""The variables of a function into which models were inlined: each variable stays in the context that it has in its model."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .variable import Declaration, Variable
from .variables import Context


class JoinedContext(Context):
    """A view of several contexts: the variables in `homes` are those of another context, under their names there; all others
    are those of `base`. The view holds none itself."""

    def __init__(self, base: Context, homes: Mapping[str, tuple[Context, str]]) -> None:
        super().__init__(base.name)
        self.base, self.homes = base, dict(homes)
        for context in self._members():
            context.watchers.add(self)

    def __repr__(self) -> str:
        return f"JoinedContext({', '.join(repr(c.name) for c in self._members())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return JoinedContext, (self.base, self.homes)

    def _members(self) -> Iterator[Context]:
        return iter(dict.fromkeys([self.base, *(context for context, _ in self.homes.values())]))

    def home(self, name: str) -> tuple[Context, str]:
        context, own = self.homes.get(name, (self.base, name))
        return context.home(own)

    def declare(self, declarations: Sequence[Declaration]) -> tuple[tuple[Variable, ...], int]:
        """Return the variables of a program, each declared in its home context."""
        generation, found = self.generation, dict[str, Variable]()
        for member in self._members():
            own = [d for d in declarations if self.home(d.name)[0] is member]
            variables, _ = member.declare([named(d, self.home(d.name)[1]) for d in own])
            found.update(zip((d.name for d in own), variables))
        return tuple(found[d.name] for d in declarations), generation

    def delete(self, name: str) -> None:
        context, own = self.home(name)
        context.delete(own)

    def clear(self) -> None:
        for name in list(self):
            self.delete(name)

    def _known(self) -> Mapping[str, Variable]:
        others = ((name, context._known().get(own)) for name, (context, own) in self.homes.items())
        return {**self.base._known(), **{name: variable for name, variable in others if variable is not None}}


def named(declaration: Declaration, name: str) -> Declaration:
    """Return the declaration of a variable with that name."""
    return declaration._replace(tensor=replace(declaration.tensor, name=name))
