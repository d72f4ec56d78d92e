"""The reference: the public modules as pdoc sees them, made anew so that names stand where users write them (`tosaic.ops.exp`),
with the texts of the examples behind the docstrings. `missing` says which public names lack what.
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pdoc.doc
import tosaic
from examples import block_of_pages, code_of, code_of_pages, sections
from operator_tables import generated

WITH_OPS, OF_OPS = ("tosaic.Tensor", "tosaic.TensorHandle"), "`tosaic.ops."
"""Classes whose methods are functions of `tosaic.ops`, and how what is said of one begins."""
NAMESPACES = ("fft", "linalg", "random", "special")
"""Namespaces of NumPy and SciPy in `tosaic.ops`, if it has them."""
INTERNAL = {"tosaic.CoreRuntime": frozenset((
    "after_fork", "begin_recording", "cancelled", "cpu", "decoded", "default", "effects", "end_recording", "go_on_after_fork",
    "handlers", "is_shut_down", "locate", "originate", "queue", "quick", "run_invocation", "run_later", "schedule", "track",
    "untrack")),
    "tosaic.Compiled": frozenset(("calls",)), "tosaic.Jit": frozenset(("keeps_empty",)),
    "tosaic.Lowered": frozenset(("compile_with_image",)),
    "tosaic.Model": frozenset(("is_stand_in", "of_entries", "with_entries")), "tosaic.Tensor": frozenset(("scope",)),
    "tosaic.TensorSpec": frozenset(("is_tensor_spec",))}
"""Names of public classes that are for the rooms beside them, and on no page."""


def modules() -> dict[str, ModuleType]:
    """`tosaic`, and the namespaces in it, by their public names."""
    found: dict[str, ModuleType] = {}
    add(found, "tosaic", tosaic, [name for name in tosaic.__all__ if name != "jit"])
    from tosaic.jit.api import jit
    found["tosaic"].jit = jit  # type: ignore[attr-defined]
    found["tosaic"].__all__.append("jit")
    return found


def add(found: dict[str, ModuleType], name: str, real: Any, names: list[str]) -> None:
    module = found[name] = ModuleType(name, inspect.getdoc(real))
    module.__all__ = list(names)  # type: ignore[attr-defined]
    for each in names:
        value = getattr(real, each)
        below = names_of(value)
        if below:
            add(found, f"{name}.{each}", value, below)
            value = found[f"{name}.{each}"]
        setattr(module, each, value)
    for each in NAMESPACES if name == "tosaic.ops" else ():
        value = getattr(real, each, None)
        if each not in names and names_of(value):
            add(found, f"{name}.{each}", value, names_of(value))
            setattr(module, each, found[f"{name}.{each}"])
            module.__all__.append(each)


def names_of(value: Any) -> list[str]:
    """What a namespace has; nothing of what is none."""
    if isinstance(value, ModuleType):
        return list(getattr(value, "__all__", []))
    return [n for n in dir(value) if not n.startswith("_")] if type(value).__name__ == "Namespace" else []


def documented(found: dict[str, ModuleType]) -> dict[str, pdoc.doc.Module]:
    """pdoc's view of the modules, their texts completed."""
    docs = {name: pdoc.doc.Module(module) for name, module in found.items()}
    for doc in docs.values():
        for member in doc.members.values():
            complete(doc.modulename, member)
    return docs


def complete(module: str, doc: pdoc.doc.Doc[Any]) -> None:
    """Put what the examples say behind a docstring, for a name and those in it."""
    name = f"{module}.{doc.qualname}"
    own = own_text(doc)
    doc.__dict__["docstring"] = "\n\n".join(t for t in (own, *extras(name, doc.obj, own)) if t)
    if isinstance(doc, pdoc.doc.Class):
        hidden = INTERNAL.get(name, frozenset())
        doc.__dict__["own_members"] = [m for m in doc.members.values() if is_ours(doc, m) and m.name not in hidden]
        for member in doc.own_members:
            if not member.name.startswith("_"):
                complete(module, member)


def is_ours(cls: pdoc.doc.Class, member: pdoc.doc.Doc[Any]) -> bool:
    """True if a member is the class's own, or of a base of tosaic's or ONNX's, which has no page."""
    place, _ = member.taken_from
    return place == cls.modulename or (place.startswith(("tosaic.", "onnx.")) and not member.name.startswith("_"))


def own_text(doc: pdoc.doc.Doc[Any]) -> str:
    """The docstring, unless it is one of Python's own types."""
    if isinstance(doc, pdoc.doc.Variable) and not isinstance(doc.obj, property) and doc.obj is not pdoc.doc.empty:
        own = type(doc.obj).__doc__ or ""
        return "" if doc.docstring == inspect.cleandoc(own) else doc.docstring
    return doc.docstring


def extras(name: str, value: Any, own: str) -> Iterator[str]:
    """What is said of a name besides its docstring."""
    if name in sections():
        yield sections()[name]
    elif not own and (of_ops := function_of_ops(name)):
        yield of_ops
    elif made := generated(name, value, own):
        yield made
    elif name.count(".") == 1 and (found := block_of_pages(f"{name}(")):
        yield f"```python\n{found}```"


def function_of_ops(name: str) -> str:
    """What a method says that is a function of `tosaic.ops`, whose page has an example."""
    group, _, method = name.rpartition(".")
    return f"{OF_OPS}{method}` of it." if group in WITH_OPS and method in tosaic.ops.__all__ else ""


def missing(docs: dict[str, pdoc.doc.Module]) -> list[str]:
    """What public names lack: a sentence, an example, a word on errors."""
    found = []
    for module in docs.values():
        if not first_sentence(module.docstring):
            found.append(f"{module.modulename} has no sentence")
        for doc in module.members.values():
            if isinstance(doc, pdoc.doc.Module):
                continue
            name = f"{module.modulename}.{doc.name}"
            found += [f"{name} has no {what}" for what in lacking(doc)]
            if isinstance(doc, pdoc.doc.Class):
                found += [f"{name}.{m.name} has no {what}" for m in own_members(doc) for what in lacking_in(doc, m)]
    return found


def own_members(cls: pdoc.doc.Class) -> list[pdoc.doc.Doc[Any]]:
    return [m for m in cls.own_members if not m.name.startswith("_")]


def lacking(doc: pdoc.doc.Doc[Any]) -> Iterator[str]:
    if not first_sentence(doc.docstring):
        yield "sentence"
    if not re.search(rf"(?<!\w){re.escape(doc.name)}(?!\w)", code_of(doc.docstring)):
        yield "example in docs/examples or its table"
    if isinstance(doc, pdoc.doc.Function) and not re.search(r"Problem|[Rr]aises|never fails", doc.docstring):
        yield "word on errors"


def lacking_in(cls: pdoc.doc.Class, member: pdoc.doc.Doc[Any]) -> Iterator[str]:
    """A member's sentence may be its class's, which names it; its example may be anywhere that tests run code."""
    if not first_sentence(member.docstring) and not re.search(rf"`[^`]*\b{member.name}\b[^`]*`", cls.docstring):
        yield "sentence"
    if member.docstring.startswith(OF_OPS):
        return
    used = rf"\.{member.name}\b|\b{member.name}=|def {member.name}\("
    if not re.search(used, code_of("\n".join(sections().values())) + code_of(member.docstring) + code_of_pages()):
        yield "example"


def first_sentence(text: str) -> str:
    """The words before the first block or paragraph."""
    words = re.split(r"\n\s*\n|```", text.strip(), maxsplit=1)[0].strip()
    return words if len(words.split()) >= 2 else ""
