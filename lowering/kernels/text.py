"""Kernels as text: each stored buffer with the expression of its element, and the steps.

By default, the text is for people: it elides long constants and leaves out faults. With `whole`, the text is complete and
reads back (`text_reader`).
"""
from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...runtime.errors import printable
from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Computed, Range, Wrapped
from ..elements.expression import COMPARISONS, Apply, Buffer, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from ..elements.roots import Roots
from ..elements.traverse import children, nodes
from ..graph.types import BY_STORAGE
from .kernel import (
    Branch,
    CheckTrue,
    CheckWritten,
    Compute,
    Fault,
    Kernel,
    Kernels,
    Loop,
    MarkWritten,
    Parallel,
    Step,
    VariableUse,
)

WORD = re.compile(r"[A-Za-z_][\w./$-]*", re.ASCII)
SHOWN = 4
"""Maximum number of elements of a constant that are written as numbers."""

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "and": "&", "or": "|",
         "xor": "^", "shl": "<<", "ashr": ">>"}


def print_kernels(kernels: Kernels, whole: bool = False) -> str:
    """Return the text of all kernels; with `whole` a text that reads back."""
    labels = Labels()
    outs = [k.out for k in kernels.kernels]
    for buffer in (*kernels.inputs, *(v.buffer for v in kernels.variables), *kernels.outputs, *outs):
        labels.of(buffer)
    lines = [f"kernels {quoted(kernels.name)}"]
    lines += [f"  {'input' if b.role == 'argument' else b.role} {labels.typed(b)}" for b in kernels.inputs]
    lines += [f"  output {labels.typed(b)}" for b in kernels.outputs]
    lines += [variable(v, labels, whole) for v in kernels.variables]
    lines += [fault(f) for f in kernels.faults] if whole else []
    lines += [line for number, kernel in enumerate(kernels.kernels) for line in print_kernel(number, kernel, labels, whole)]
    lines += ["  steps", *print_steps(kernels.steps, "    ", labels)]
    return "\n".join(lines) + "\n"


class Labels:
    """Labels of the buffers between kernels: their names, quoted if they are not words, with a number if two are the same."""

    def __init__(self) -> None:
        self.known: dict[Buffer, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[Buffer, int] = {}

    def of(self, buffer: Buffer) -> str:
        if buffer not in self.known:
            choices = (quoted(buffer.name + (f".{n}" if n else "")) for n in itertools.count())
            self.known[buffer] = next(c for c in choices if c not in self.taken)
            self.taken.add(self.known[buffer])
        return self.known[buffer]

    def constant(self, buffer: Buffer) -> str:
        """Return the number of a constant among all; the first time also its name and its data."""
        is_new = buffer not in self.constants
        number = self.constants.setdefault(buffer, len(self.constants))
        return f" #{number}" + (f" {json.dumps(buffer.name)} = {data(buffer, True)}" if is_new else "")

    def typed(self, buffer: Buffer) -> str:
        return f"{self.of(buffer)}: {type_of(buffer)}"


def quoted(name: str) -> str:
    return name if WORD.fullmatch(name) else json.dumps(name)


def type_of(buffer: Buffer) -> str:
    return f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def variable(v: VariableUse, labels: Labels, whole: bool) -> str:
    element = f" of {v.element}" if v.element != BY_STORAGE[v.buffer.dtype].name else ""
    initial = "" if v.initial is None else " = " + data(v.initial, whole)
    return f"  {'external ' * v.external}variable {labels.typed(v.buffer)}{element}{initial}"


def fault(f: Fault) -> str:
    help = f" help {json.dumps(f.help)}" if f.help else ""
    return f"  fault {quoted(f.kind)} {json.dumps(f.message)}{help}"


def data(buffer: Buffer, whole: bool = False) -> str:
    """Return the text of a constant's data: the first elements; with `whole` the bytes of all, if there are more."""
    assert buffer.data is not None
    flat = buffer.data.reshape(-1)
    if whole and isinstance(buffer, Roots):
        return f"{'inverse ' * buffer.inverse}roots {buffer.shape[-1]}"
    if whole and (flat.size > SHOWN or flat.dtype.kind == "V"):
        return "0x" + np.ascontiguousarray(buffer.data).tobytes().hex()
    shown = ", ".join(str(x) for x in flat[:SHOWN].tolist())
    return f"[{shown}{', ...' if flat.size > SHOWN else ''}]"


def print_kernel(number: int, kernel: Kernel, labels: Labels, whole: bool = False) -> Iterator[str]:
    names = KernelNames(kernel.value, labels, (Const,)) if whole else KernelNames(kernel.value, labels)
    axes = ", ".join(f"{names.axis(a)}<{a.extent}" for a in kernel.axes)
    value = names.expression(kernel.value)
    yield f"  kernel {number}: {printable(kernel.origin)}"
    yield f"    {labels.typed(kernel.out)} at [{axes}] ="
    for name, text in names.shared.values():
        yield f"      {name} := {text}"
    yield f"      {value}"
    for buffer, name in names.constants.items():
        yield f"      where {name}: {type_of(buffer)}" + (labels.constant(buffer) if whole else f" = {data(buffer)}")


def print_steps(steps: Sequence[Step], indent: str, labels: Labels) -> Iterator[str]:
    for step in steps:
        match step:
            case Compute(kernel, rows, tasks):
                yield (f"{indent}compute {kernel}" + (f" rows {rows[0]} to {rows[1]}" if rows else "")
                       + (f" in {tasks} parts" if tasks > 1 else ""))
            case Parallel(own):
                yield f"{indent}parallel"
                for task in own:
                    yield f"{indent}  part"
                    yield from print_steps(task, indent + "    ", labels)
            case Branch(condition, then, otherwise):
                yield f"{indent}if {labels.of(condition)}"
                yield from print_steps(then, indent + "  ", labels)
                yield f"{indent}else"
                yield from print_steps(otherwise, indent + "  ", labels)
            case Loop(test, condition, body):
                yield f"{indent}loop"
                yield from print_steps(test, indent + "  ", labels)
                yield f"{indent}while {labels.of(condition)}"
                yield from print_steps(body, indent + "  ", labels)
            case CheckWritten(variable, fault):
                yield f"{indent}check {labels.of(variable)} is written, fault {fault}"
            case CheckTrue(condition, fault):
                yield f"{indent}check {labels.of(condition)} is true, fault {fault}"
            case MarkWritten(variable):
                yield f"{indent}mark {labels.of(variable)} written"


class KernelNames:
    """Names within one kernel: of axes (two of one name get numbers), of constants, and of expressions with more than one use.
    These are written out once (`shared`), except for those of the types `alone`, which are as short as a name."""

    def __init__(self, whole: Expr, labels: Labels | None = None, alone: tuple[type[Expr], ...] = (Const, Load, IndexValue)
                 ) -> None:
        self.labels, self.alone = labels or Labels(), alone
        self.axes: dict[Axis, str] = {}
        self.constants: dict[Buffer, str] = {}
        self.shared: dict[int, tuple[str, str]] = {}
        self.uses = Counter(id(child) for e in nodes(whole) for child in children(e))

    def axis(self, axis: Axis) -> str:
        if axis not in self.axes:
            taken = set(self.axes.values())
            choices = [axis.name, *(f"{axis.name}_{n}" for n in range(len(taken) + 1))]
            self.axes[axis] = next(c for c in choices if c not in taken)
        return self.axes[axis]

    def buffer(self, buffer: Buffer) -> str:
        if buffer.role != "constant":
            return self.labels.of(buffer)
        return self.constants.setdefault(buffer, f"c{len(self.constants)}")

    def expression(self, whole: Expr) -> str:
        """Return the text of an expression, made from left to right, so that names are numbered in reading order; without
        recursion, because chains may be long. The last of `texts` is the one being made; those before it enclose it."""
        texts: list[list[str]] = [[]]
        stack: list[Piece] = [whole]
        while stack:
            match stack.pop():
                case str(text):
                    texts[-1].append(text)
                case Axis() as axis:
                    texts[-1].append(self.axis(axis))
                case Affine() as index:
                    texts.append([])
                    stack += [EndOfIndex(), *reversed(list(parts_of_index(index)))]
                case EndOfIndex():
                    text = "".join(texts.pop())
                    texts[-1].append(text)
                case EndOfShared(e):
                    self.shared[id(e)] = f"%{len(self.shared)}", "".join(texts.pop())
                    texts[-1].append(self.shared[id(e)][0])
                case Expr() as e if id(e) in self.shared:
                    texts[-1].append(self.shared[id(e)][0])
                case Expr() as e:
                    if self.uses[id(e)] > 1 and not isinstance(e, self.alone):
                        texts.append([])
                        stack.append(EndOfShared(e))
                    stack += reversed(list(self.pieces_of(e)))
        return "".join(texts[0])

    def pieces_of(self, e: Expr) -> Iterable[Piece]:
        """Return the pieces of the text of a node, from left to right."""
        match e:
            case Const(value, dtype):
                return (number(value, dtype),)
            case IndexValue(index, dtype):
                return "index(" if dtype == "int32" else f"index<{dtype}>(", index, ")"
            case Load(buffer, index):
                return f"{self.buffer(buffer)}[", *separated(index, ", "), "]"
            case Apply(primitive, (a, b) as args, dtype) if primitive in INFIX and dtype == result_of(primitive, args):
                return "(", a, f" {INFIX[primitive]} ", b, ")"
            case Apply(primitive, args, dtype):
                own = "" if dtype == result_of(primitive, args) else f"<{dtype}>"
                return f"{primitive}{own}(", *separated(args, ", "), ")"
            case Cast(arg, dtype, bits):
                return f"{'bits' if bits else 'cast'}<{dtype}>(", arg, ")"
            case Guard(where, inside, outside):
                return "(", inside, " if ", *conditions(where), " else ", outside, ")"
            case Reduce(primitive, axes, body, where):
                over = ", ".join(f"{self.axis(a)}<{a.extent}" for a in axes)
                return f"{primitive} over [{over}]", *((" if ", *conditions(where)) if where else ()), " of ", body
        raise TypeError(e)


@dataclass(frozen=True, slots=True)
class EndOfIndex:
    """The end of the text of an index."""


@dataclass(frozen=True, slots=True)
class EndOfShared:
    """The end of the text of an expression that has a name."""
    expression: Expr


Piece = str | Expr | Affine | Axis | EndOfIndex | EndOfShared


def number(value: float | int, dtype: str) -> str:
    """Return the text of a constant with its type; the form of the number shows float32 and int32."""
    match dtype:
        case "float32":
            return f"{value}:float32" if isinstance(value, int) else str(value)
        case "int32" if not isinstance(value, float | bool):
            return str(value)
        case _:
            return f"{value}:{dtype}"


def result_of(primitive: str, args: Sequence[Expr]) -> str:
    """Return the dtype of a primitive of these operands; the text of a primitive with another dtype names it."""
    return "bool" if primitive in COMPARISONS else args[-1].dtype


def separated(pieces: Sequence[Piece], by: str) -> list[Piece]:
    return [x for piece in pieces for x in (by, piece)][1:]


def parts_of_index(index: Affine) -> Iterator[Piece]:
    for number, (term, c) in enumerate(index.terms):
        sign = "" if not number else " + " if c > 0 else " - "
        size = c if not number else abs(c)
        yield sign + ("" if size == 1 else f"{size}*")
        match term:
            case Axis():
                yield term
            case Wrapped(source, extent):
                yield from ("(", source, f") mod {extent}")
            case Computed(value, extent):
                yield from (f"clamp<{extent}>(", value, ")")
    if index.const or not index.terms:
        yield (" + " if index.const >= 0 else " - ") + str(abs(index.const)) if index.terms else str(index.const)


def conditions(where: Sequence[Range]) -> list[Piece]:
    return [x for n, r in enumerate(where) for x in (f"{' and ' if n else ''}{r.low} <= ", r.index, f" < {r.high}")]
