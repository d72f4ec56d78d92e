"""C programs that call a model, made for whatever its C interface asks for, and what they must print."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tosaic.jit.aot import Artifact, ArtifactForm
from tosaic.jit.stages import Lowered
from tosaic.lowering.graph.types import Array
from tosaic.lowering.native.c_object.c_names import c_name, macro
from tosaic.lowering.native.c_object.pools import CPool

GUARD = 64
"""Bytes around each pool that must stay as they are."""

PLAIN = ArtifactForm()

FRAME = r"""
#include "console.h"
#include "HEADER"

static inline void hex(const void *data, size_t size) {
    const unsigned char *p = data;
    char text[3] = {0};
    for (; size--; ++p) {
        text[0] = "0123456789abcdef"[*p / 16];
        text[1] = "0123456789abcdef"[*p % 16];
        console_write(text);
    }
    console_write("\n");
}

static inline void paint(unsigned char *p, size_t size) { while (size--) *p++ = 0xA5; }

static inline int is_painted(const unsigned char *p, size_t size) {
    while (size--) if (*p++ != 0xA5) return 0;
    return 1;
}
"""


@dataclass
class Caller:
    """A program that calls the entry functions of a model, each call with inputs that are in the program. Constants are in
    it, too, or linked."""
    entries: Sequence[Lowered]
    artifact: Artifact
    form: ArtifactForm = PLAIN
    constants_from_macro: bool = False
    constants_linked: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        return self.artifact.header.stem

    @property
    def holds_state(self) -> bool:
        """True if the program holds the memory of the variables."""
        return self.form.state == "caller" and any(e.program.variables for e in self.entries)

    def source(self, calls: Sequence[tuple[int, Sequence[Array]]]) -> str:
        """The program for calls of an entry (by number) with its inputs; it prints each output in hexadecimal, on a
        line."""
        self.lines = [FRAME.replace("HEADER", self.artifact.header.name)]
        for kind in ("workspace", "constant"):
            self.pools(kind, [p for p in self.artifact.pools if p.kind == kind and not self.form.self_contained])
        start = f"{self.prefix}_reset()"
        if self.holds_state:
            self.lines += [f"static struct {self.prefix}_state state;"]
            start = f"{self.prefix}_init(&state)"
        bodies = [self.call(number, entry, inputs) for number, (entry, inputs) in enumerate(calls)]
        return "\n".join([*self.lines, "int main(void) {", "    int code = 0;", f"    if ({start}) return 4;", *bodies,
                          "    return 0;", "}", ""])

    def pools(self, kind: str, pools: Sequence[CPool]) -> None:
        """Arrays for the pools, and the structure of them."""
        if not pools:
            return
        members = []
        for p in pools:
            name = f"{self.prefix.upper()}_{p.macro}"
            is_linked = kind == "constant" and self.constants_linked
            memory = f"{self.prefix}_{p.stem}" if is_linked else f"{p.name}_memory + {GUARD if kind == 'workspace' else 0}"
            members.append(f"{memory}, {name}_SIZE" if p.nbytes else "0, 0")
            if p.nbytes and kind == "workspace":
                self.lines.append(f"static TOSAIC_ALIGNED({max(GUARD, p.alignment)}) unsigned char {p.name}_memory"
                                  f"[{name}_SIZE + {2 * GUARD}];")
                assert GUARD % p.alignment == 0
            elif p.nbytes and not is_linked:
                data = f"{name}_DATA" if self.constants_from_macro else ", ".join(map(str, p.data))
                self.lines.append(f"static const TOSAIC_ALIGNED({name}_ALIGNMENT) "
                                  f"unsigned char {p.name}_memory[] = {{{data}}};")
        self.lines.append(f"static const struct {self.prefix}_{kind}_pools {kind}_pools = {{{', '.join(members)}}};")

    def call(self, number: int, which: int, inputs: Sequence[Array]) -> str:
        """A function that makes one call; the statement of main that calls it."""
        entry = self.entries[which]
        name = self.prefix if len(self.entries) == 1 else f"{self.prefix}_{c_name(entry.program.name)}"
        body: list[str] = []
        used = [p for p in self.artifact.pools if p.kind == "workspace" and p.nbytes and not self.form.self_contained]
        body += [f"    paint({p.name}_memory, sizeof {p.name}_memory);" for p in used]
        is_mapped = any(b.kind == "input" or b.kind == "output" for b in entry.plan.buffers)
        for kind, buffers in (("inputs", entry.program.inputs), ("outputs", entry.program.outputs)):
            if buffers and is_mapped:
                given = "" if self.form.self_contained else "&workspace_pools"
                body.append(f"    const struct {name}_{kind} {kind} = {name}_map_{kind}({given});")
            elif buffers:
                self.arrays(number, kind, inputs, [f"{name.upper()}_{kind[:-1].upper()}_{macro(c_name(b.name))}_SIZE"
                                                   for b in buffers])
                members = ", ".join(f"(void *){kind}{number}_{i}, sizeof {kind}{number}_{i}" for i in range(len(buffers)))
                body.append(f"    const struct {name}_{kind} {kind} = {{{members}}};")
        if is_mapped:
            body += self.input_statements(number, entry, inputs)
        body.append(f"    if ({name}_run({', '.join(self.passed(entry, is_mapped))}) != TOSAIC_OK) return 2;")
        for p in used:
            size = f"{self.prefix.upper()}_{p.macro}_SIZE"
            for behind in ("", f" + {GUARD} + {size}"):
                body.append(f"    if (!is_painted({p.name}_memory{behind}, {GUARD})) return 3;")
        for b in entry.program.outputs:
            member = c_name(b.name)
            body.append(f"    hex(outputs.{member}, outputs.{member.rstrip('_')}_size);")
        self.lines += [f"static int call{number}(void) {{", *body, "    return 0;", "}"]
        return f"    if ((code = call{number}()) != 0) return code;"

    def passed(self, entry: Lowered, is_mapped: bool) -> list[str]:
        state = ["&state"] if self.holds_state and entry.program.variables else []
        own = [] if is_mapped else [f"&{kind}" for kind in ("inputs", "outputs") if getattr(entry.program, kind)]
        kinds = [] if self.form.self_contained else dict.fromkeys(p.kind for p in self.artifact.pools)
        return [*state, *own, *(f"&{kind}_pools" for kind in kinds)]

    def arrays(self, number: int, kind: str, inputs: Sequence[Array], sizes: Sequence[str]) -> None:
        for i, size in enumerate(sizes):
            if kind == "inputs":
                data = ", ".join(map(str, inputs[i].tobytes()))
                self.lines.append(f"static const TOSAIC_ALIGNED(16) unsigned char inputs{number}_{i}[{size}] = {{{data}}};")
            else:
                self.lines.append(f"static TOSAIC_ALIGNED(16) unsigned char outputs{number}_{i}[{size}];")

    def input_statements(self, number: int, entry: Lowered, inputs: Sequence[Array]) -> list[str]:
        """Statements that write the inputs to where they are mapped."""
        found = []
        for i, (buffer, array) in enumerate(zip(entry.program.inputs, inputs)):
            self.lines.append(f"static const unsigned char inputs{number}_{i}[] = {{{', '.join(map(str, array.tobytes()))}}};")
            found.append(f"    for (size_t i = 0; i < sizeof inputs{number}_{i}; ++i) ((unsigned char *)inputs."
                         f"{c_name(buffer.name)})[i] = inputs{number}_{i}[i];")
        return found


def random_calls(entries: Sequence[Lowered], count: int, seed: int = 7) -> list[tuple[int, list[Array]]]:
    """Calls of all entries in turn, with inputs that use the whole range of bytes."""
    random = np.random.default_rng(seed)
    calls = []
    for number in range(count):
        which = number % len(entries)
        calls.append((which, [values(random, b.shape, b.dtype) for b in entries[which].program.inputs]))
    return calls


def values(random: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        low, high = (limits.min, limits.max) if kind.itemsize == 1 else (0, 20)  # wide ones may count the iterations of a loop
        return random.integers(low, high, shape, kind, endpoint=True)
    return random.random(shape) < 0.5 if kind.kind == "b" else random.standard_normal(shape).astype(kind)


def printed(entries: Sequence[Lowered], calls: Sequence[tuple[int, Sequence[Array]]]) -> str:
    """What the program must print: the outputs that the same entries give here, on one state."""
    from tosaic.runtime.variables import Context
    context = Context("expected")
    compiled = [e.compile(context).executable for e in entries]
    return "".join(f"{a.tobytes().hex()}\n" for which, inputs in calls for a in compiled[which](*inputs))
