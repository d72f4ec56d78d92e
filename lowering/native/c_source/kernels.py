"""The kernels of a file: a static function each, with a comment on its computation. Functions that differ in names alone are
one.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ....runtime.records import dataclass
from ...loops.ir import Function
from .c_text import COLUMNS
from .helpers import Helpers
from .kernel_function import PLACEHOLDER, KernelFunction, Memory


@dataclass(slots=True)
class Kernels:
    """The functions of one file. `definitions` is keyed by name; `comments` holds the comments before each definition, by its
    name."""
    helpers: Helpers
    has_fma: bool = False
    definitions: dict[str, str] = field(default_factory=dict)
    comments: dict[str, list[str]] = field(default_factory=dict)
    by_text: dict[str, str] = field(default_factory=dict)

    def add(self, function: Function, memory: Sequence[Memory], name: str, parameters: Sequence[str], comment: str = "") -> str:
        """The name of the definition: the given one, or that of a function that does the same."""
        writer = KernelFunction(function, memory, self.helpers, self.has_fma)
        body = writer.body()
        given = writer.parameters()
        unused = "".join(f"    (void){name};\n" for name in writer.unused())
        text = f"({', '.join(given) or 'void'}) {{\n{unused}{body}\n}}"
        found = self.by_text.setdefault(text, name)
        if found == name:
            head = f"static void {name}("
            broken = ",\n    ".join(given)
            if len(head) + sum(len(g) + 2 for g in given) > COLUMNS:
                text = f"(\n    {broken}) {{\n{unused}{body}\n}}"
            self.definitions[name] = f"static void {name}" + PLACEHOLDER.sub(lambda m: parameters[int(m[1])], text)
        if comment:
            self.comments.setdefault(found, []).append(comment)
        return found

    def lines(self) -> list[str]:
        """Definitions with their comments."""
        return ["\n".join([*self.comments.get(name, ()), text]) for name, text in self.definitions.items()]
