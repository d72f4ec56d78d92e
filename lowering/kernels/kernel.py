"""The result of fusing a graph: kernels (one stored buffer each, with the expression of its element) and the steps that run
them. The steps are data: a table that the planner, the driver, threads and profiles all read.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from ...runtime.errors import Position, Problem, printable
from ...runtime.records import dataclass
from ..elements.affine import Axis
from ..elements.expression import Buffer, Expr


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The assignment out[axes] = value, for all axes; the value reads the old elements of `out`. `origin` names the operators
    that the kernel computes, the last one first."""
    out: Buffer
    axes: tuple[Axis, ...]
    value: Expr
    origin: str = ""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Compute:
    """Run kernel number `kernel`, all of it or rows low to high of its outermost axis. With `tasks` above 1 its loops are
    divided into that number of tasks, which may run at the same time."""
    kernel: int
    rows: tuple[int, int] | None = None
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class Parallel:
    """Run all tasks, at the same time or in any order; each runs its steps one after the other. Buffers with `copies` have one
    copy for each task."""
    tasks: tuple[tuple[Compute, ...], ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Run `then` if the one element of `condition` is true, else `otherwise`."""
    condition: Buffer
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeat: run `test`, stop if the one element of `condition` is false, run `body`."""
    test: tuple[Step, ...]
    condition: Buffer
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CheckWritten:
    """Raise fault number `fault`, which ends the run, unless the variable has been written."""
    variable: Buffer
    fault: int


@dataclass(frozen=True, slots=True)
class CheckTrue:
    """Raise fault number `fault`, which ends the run, unless the one element of `condition` is true."""
    condition: Buffer
    fault: int


@dataclass(frozen=True, slots=True)
class MarkWritten:
    """Mark the variable as written."""
    variable: Buffer


Step = Compute | Parallel | Branch | Loop | CheckWritten | CheckTrue | MarkWritten


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that only a run can show: its message, the operator's position, and the kind of the Problem that it becomes."""
    message: str
    position: Position | None = None
    help: str | None = None
    kind: str = "variable"

    @property
    def problem(self) -> Problem:
        return Problem(self.message, self.position, kind=self.kind, help=self.help)


@dataclass(frozen=True, slots=True)
class VariableUse:
    """A variable that the program uses: its buffer, the initial value if the program declares one, and the position of its
    declaration. An `external` variable is only read: another program declares it."""
    buffer: Buffer
    element: str
    initial: Buffer | None
    position: Position | None = None
    external: bool = False


@dataclass(frozen=True, slots=True)
class Kernels:
    """A function of the graph after fusion. `outputs` may name the same buffer twice, or an input."""
    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    variables: tuple[VariableUse, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        return printable(f"<Kernels {self.name}: {len(self.kernels)} kernels, {len(self.steps)} steps>")


def rebuilt(steps: tuple[Step, ...], change: Callable[[Step], Step]) -> tuple[Step, ...]:
    """Return the steps, each replaced by what `change` makes of it, including those inside branches and loops, but not those
    of tasks."""
    def one(step: Step) -> Step:
        match step:
            case Branch(condition, then, otherwise):
                return Branch(condition, rebuilt(then, change), rebuilt(otherwise, change))
            case Loop(test, condition, body):
                return Loop(rebuilt(test, change), condition, rebuilt(body, change))
            case _:
                return change(step)

    return tuple(map(one, steps))


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield every step in order, including those inside branches, loops and tasks."""
    for step in steps:
        yield step
        match step:
            case Parallel(tasks):
                for task in tasks:
                    yield from task
            case Branch(_, then, otherwise):
                yield from walk(then)
                yield from walk(otherwise)
            case Loop(test, _, body):
                yield from walk(test)
                yield from walk(body)


def conditions(steps: tuple[Step, ...]) -> set[Buffer]:
    """Return the buffers whose one element decides the next step of a run: the conditions of branches, loops and checks."""
    return {s.condition for s in walk(steps) if isinstance(s, (Branch, Loop, CheckTrue))}
