"""Kernels as text: each stored buffer with the expression of its element, and the steps. For `show` and golden tests."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...runtime.records import dataclass
from ..elements.affine import Affine, Axis, Computed, Range, Wrapped
from ..elements.expression import Apply, Buffer, Cast, Const, Expr, Guard, IndexValue, Load, Reduce
from ..elements.traverse import children, nodes
from .kernel import Branch, CheckTrue, CheckWritten, Compute, Kernel, Kernels, Loop, MarkWritten, Parallel, Step

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "and": "&", "or": "|",
         "xor": "^", "shl": "<<", "ashr": ">>"}


def print_kernels(kernels: Kernels) -> str:
    lines = [f"kernels {kernels.name}"]
    lines += [f"  {'input' if b.role == 'argument' else b.role} {typed(b)}" for b in kernels.inputs]
    lines += [f"  output {typed(b)}" for b in kernels.outputs]
    lines += [f"  {'external ' * v.external}variable {typed(v.buffer)}{'' if v.initial is None else ' = ' + data(v.initial)}"
              for v in kernels.variables]
    lines += [line for number, kernel in enumerate(kernels.kernels) for line in print_kernel(number, kernel)]
    lines += ["  steps", *print_steps(kernels.steps, "    ")]
    return "\n".join(lines) + "\n"


def typed(buffer: Buffer) -> str:
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"


def data(buffer: Buffer) -> str:
    """The data of a constant: all of it where it is short."""
    assert buffer.data is not None
    flat = buffer.data.reshape(-1)
    shown = ", ".join(str(x) for x in flat[:4].tolist())
    return f"[{shown}{', ...' if flat.size > 4 else ''}]"


def print_kernel(number: int, kernel: Kernel) -> Iterator[str]:
    names = Names(kernel.value)
    axes = ", ".join(f"{names.axis(a)}<{a.extent}" for a in kernel.axes)
    value = names.expression(kernel.value)
    yield f"  kernel {number}: {kernel.origin}"
    yield f"    {typed(kernel.out)} at [{axes}] ="
    for name, text in names.shared.values():
        yield f"      {name} := {text}"
    yield f"      {value}"
    for buffer, name in names.constants.items():
        yield f"      where {name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}] = {data(buffer)}"


def print_steps(steps: Sequence[Step], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Compute(kernel, rows, parts):
                yield (f"{indent}compute {kernel}" + (f" rows {rows[0]} to {rows[1]}" if rows else "")
                       + (f" in {parts} parts" if parts > 1 else ""))
            case Parallel(own):
                yield f"{indent}parallel"
                for part in own:
                    yield f"{indent}  part"
                    yield from print_steps(part, indent + "    ")
            case Branch(condition, then, otherwise):
                yield f"{indent}if {condition.name}"
                yield from print_steps(then, indent + "  ")
                yield f"{indent}else"
                yield from print_steps(otherwise, indent + "  ")
            case Loop(test, condition, body):
                yield f"{indent}loop"
                yield from print_steps(test, indent + "  ")
                yield f"{indent}while {condition.name}"
                yield from print_steps(body, indent + "  ")
            case CheckWritten(variable, fault):
                yield f"{indent}check {variable.name} is written, fault {fault}"
            case CheckTrue(condition, fault):
                yield f"{indent}check {condition.name} is true, fault {fault}"
            case MarkWritten(variable):
                yield f"{indent}mark {variable.name} written"


class Names:
    """Names within one kernel: axes (two of one name get numbers), constants, and expressions that are used more than once,
    which are written out once (`shared`)."""

    def __init__(self, whole: Expr) -> None:
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
            return buffer.name
        return self.constants.setdefault(buffer, f"c{len(self.constants)}")

    def expression(self, whole: Expr) -> str:
        """The text, made from left to right, so that names have numbers in the order in which they are read; without recursion,
        because chains may be long. `texts` holds the one being made last, before it those that it stands in."""
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
                    text = "".join(texts.pop()).replace("+ -", "- ")
                    texts[-1].append(text)
                case EndOfShared(e):
                    self.shared[id(e)] = f"%{len(self.shared)}", "".join(texts.pop())
                    texts[-1].append(self.shared[id(e)][0])
                case Expr() as e if id(e) in self.shared:
                    texts[-1].append(self.shared[id(e)][0])
                case Expr() as e:
                    if self.uses[id(e)] > 1 and not isinstance(e, (Const, Load, IndexValue)):
                        texts.append([])
                        stack.append(EndOfShared(e))
                    stack += reversed(list(self.parts(e)))
        return "".join(texts[0])

    def parts(self, e: Expr) -> Iterable[Piece]:
        """What the text of a node is made of, from left to right."""
        match e:
            case Const(value, dtype):
                return (str(value) if dtype in ("float32", "int32") else f"{value}:{dtype}",)
            case IndexValue(index, _):
                return "index(", index, ")"
            case Load(buffer, index):
                return f"{self.buffer(buffer)}[", *separated(index, ", "), "]"
            case Apply(primitive, (a, b), _) if primitive in INFIX:
                return "(", a, f" {INFIX[primitive]} ", b, ")"
            case Apply(primitive, args, _):
                return f"{primitive}(", *separated(args, ", "), ")"
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
    """The text of an index ends here."""


@dataclass(frozen=True, slots=True)
class EndOfShared:
    """The text of an expression that has a name ends here."""
    expression: Expr


Piece = str | Expr | Affine | Axis | EndOfIndex | EndOfShared


def separated(pieces: Sequence[Piece], by: str) -> list[Piece]:
    return [x for piece in pieces for x in (by, piece)][1:]


def parts_of_index(index: Affine) -> Iterator[Piece]:
    for number, (term, c) in enumerate(index.terms):
        yield (" + " if number else "") + ("" if c == 1 else f"{c}*")
        match term:
            case Axis():
                yield term
            case Wrapped(source, extent):
                yield from ("(", source, f") mod {extent}")
            case Computed(value, extent):
                yield from (f"clamp<{extent}>(", value, ")")
    if index.const or not index.terms:
        yield (" + " if index.terms else "") + str(index.const)


def conditions(where: Sequence[Range]) -> list[Piece]:
    return [x for n, r in enumerate(where) for x in (f"{' and ' if n else ''}{r.low} <= ", r.index, f" < {r.high}")]
