"""A model as an object: its entry functions are attributes and items, to be traced, lowered, compiled, called (`entry`)."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.errors import AttributeProblem, KeyProblem, Problem, printable
from ...runtime.later import Later, now
from ...runtime.public_names import closest, public_class
from ...runtime.variables import checked_context, process
from ..cache.models import CachedModel, Outline
from ..calls import Results, through, until_quick
from ..given_options import given
from .entry import Entry, graph_of

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.memory.planner import Memory
    from ...lowering.options import CompileOptions
    from ...lowering.rewrite.tensorflow import Bindings
    from ...lowering.target.target import Target
    from ...runtime.limits import Limits
    from ...runtime.variables import Context
    from ..aot import Artifact
    from ..projects.recording import Calls
    from ..source import ImportedSource
    from ..tools.check.crosscheck import CrossCheck


@public_class
class Model:
    """The entry functions of a module. Calling the model calls its only entry, or `main`. The only entry can also be accessed
    as `main`, whatever its name. The model's variables belong to its `context`: its own, or the process's for MLIR (`load`)."""
    if TYPE_CHECKING:
        def __call__(self, *inputs: Any, out: Any = None, context: Context | None = None,
                     num_threads: int | None = None, **named: Any) -> Results: ...
    else:
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, module: Later[Module], outlines: Sequence[Outline], cached: CachedModel | None = None,
                 bindings: Bindings | None = None, imported: ImportedSource | None = None) -> None:
        self._module, self.imported = module, imported
        self.is_stand_in = False
        """True if `module` is only for display: entries that were made one by one have graphs of their own."""
        self.entries = {o.name: Entry(o, graph_of(module, o.name, bindings, imported=imported), cached) for o in outlines}
        self.__call__ = until_quick(self, through(self, "_call"), through(self, "_quick"))  # type: ignore[method-assign]

    @classmethod
    def of_entries(cls, entries: Mapping[str, Entry], module: Module) -> Model:
        """Return a model of entries that were made one by one; `module` is displayed for it."""
        model = cls(now(module), ())
        model.entries, model.is_stand_in = dict(entries), True
        return model

    def within(self, context: Context | None) -> Model:
        """Return the model with the variables of all its entries in that context; None leaves it unchanged. Models whose
        variables have the same names share them within one context, and not across two."""
        if checked_context(context) is None:
            return self
        return self.with_entries({name: entry.within(context) for name, entry in self.entries.items()})

    def limited(self, limits: Limits | None) -> Model:
        """Return the model with its entries within limits; None leaves it unchanged."""
        if limits is None:
            return self
        return self.with_entries({name: entry.limited(limits) for name, entry in self.entries.items()})

    def with_entries(self, entries: Mapping[str, Entry]) -> Model:
        """Return the model with other entries."""
        model = Model(self._module, (), imported=self.imported)
        model.entries, model.is_stand_in = dict(entries), self.is_stand_in
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graphs, and the names of contexts; the receiving process takes the code from its cache, or compiles it."""
        return model_again, (self._module, dict(self.entries), self.imported)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        """Return the object itself: code is shared, as functions are, and its variables belong to a context."""
        return self

    @property
    def context(self) -> Context:
        """The namespace of the variables of all entries, to read, set, reset and save them."""
        return next((entry.context for entry in self.entries.values()), process)

    @property
    def module(self) -> Module:
        """The graphs of all functions."""
        return self._module()

    def entry(self, name: str | None = None) -> Entry:
        """Return the entry of that name. Without a name or for `main`, return the only entry, whatever its name, and otherwise
        `main`."""
        if name in (None, "main") and len(self.entries) == 1:
            name = next(iter(self.entries))
        elif name is None and "main" in self.entries:
            name = "main"
        if name in self.entries:
            return self.entries[name]
        found = next((f for f in self.module.functions if f.name == name), None) if name else self.module.function()
        if found is not None and found.name in self.entries:
            return self.entries[found.name]
        if found is not None:
            raise KeyProblem(f"{found.name} is private, it cannot be called from outside", found.position, kind="argument",
                             help=f"the entries are {', '.join(self.entries) or 'none'}")
        raise no_entry(KeyProblem, str(name), self.entries)

    def __getitem__(self, name: str) -> Entry:
        return self.entry(name)

    def __getattr__(self, name: str) -> Entry:
        entries: dict[str, Entry] = self.__dict__.get("entries", {})
        if name == "main" and len(entries) == 1:
            return next(iter(entries.values()))
        if name not in entries:
            raise no_entry(AttributeProblem, name, entries)
        return entries[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.entries})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def _call(self, *inputs: Any, out: Any = None, context: Context | None = None, num_threads: int | None = None,
              **named: Any) -> Any:
        """Call the only entry, or `main`."""
        return self.entry()(*inputs, out=out, context=context, num_threads=num_threads, **named)

    def _quick(self) -> Callable[..., Any] | None:
        """Return the quick call of the entry once it is compiled."""
        return self.entry()._quick()

    def save(self, directory: str | os.PathLike[str], name: str, options: CompileOptions | None = None,
             memory: Memory | None = None, *, self_contained: bool = False, library: bool = False, main: bool = False,
             namespace: str | None = None, state: str = "own", emit: str | None = None, pool_form: str = "binary",
             project: str | None = None, calls: Calls | Mapping[str, Calls] | None = None, debug: bool = False,
             target: Target | None = None) -> Artifact:
        """Write all entry functions as one object with its C header, as `Lowered.save` does for one function; with `emit` "c"
        as C source, for any processor unless the options name one; with a `project` as a folder for a build system, whose
        example makes `calls` of the only entry, or of each entry by its name."""
        from ...lowering.options import for_object
        from ..aot import ArtifactForm
        from ..projects.save_project import emitted, save
        options = given("save", options, target=target, memory=memory)
        form = ArtifactForm(self_contained, library, main, namespace, state,
                            emitted(emit, project, options.target if options else None), pool_form, debug)
        options = for_object(options, form.emit)
        lowered = [entry.lower(options) for entry in self]
        return save(lowered, directory, name, form, project, calls)

    def check(self, *inputs: Any, options: CompileOptions | None = None, memory: Memory | None = None,
              target: Target | None = None, **named: Any) -> CrossCheck:
        """Check the only entry, or `main` (`Entry.check`)."""
        return self.entry().check(*inputs, options=options, memory=memory, target=target, **named)

    def show(self, whole: bool = False) -> str:
        """Return the module as MLIR text, with long constants elided unless `whole`."""
        from ...lowering.stage_text import graph_text
        return graph_text(self.module, whole)

    def __str__(self) -> str:
        return self.show()

    def __repr__(self) -> str:
        return printable(f"<Model with {', '.join(self.entries) or 'no entries'}>")


def model_again(module: Later[Module], entries: Mapping[str, Entry], imported: ImportedSource | None) -> Model:
    """Return the model of a pickle's contents."""
    return Model(module, (), imported=imported).with_entries(entries)


def no_entry(raised: type[Problem], name: str, entries: Iterable[str]) -> Problem:
    """Return the Problem for an entry that a model does not have."""
    names = list(entries)
    meant = None if name.startswith("_") else closest(name, names)
    help = f"did you mean {meant}?" if meant else None
    if names and not name.startswith("_") and hasattr(Entry, name):
        help = f"an entry has {name}: model.{'main' if len(names) == 1 else names[0]}.{name}"
    return raised(f"the model has no entry {name}; it has {', '.join(names) or 'none'}", kind="argument", help=help)
