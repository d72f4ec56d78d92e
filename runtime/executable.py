"""A callable program: native code with its constants, its variables and a free list of workspaces.

A call checks its arguments, takes a workspace, writes the addresses of its arrays into the workspace's frame, holds the locks
of the program's variables and enters native code, which runs without the interpreter's lock. Calls of one executable from
several threads run in parallel, unless they share a variable. A call that fails changes no variable.
"""
from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, Protocol

from .arena import ALIGNMENT, Array, Workspace, address
from .arguments import Signature
from .errors import Position, Problem
from .interrupts import INTERRUPTED
from .interrupts import process as interrupts
from .records import dataclass
from .threads import PoolCode, checked
from .threads import process as threads
from .variable import Declaration, Locks
from .variables import Context, process

MAX_LOCKED_STEPS = 200_000
"""Maximum number of steps of a run (terms of sums, or cycles if vectors make those fewer) that holds the interpreter's lock:
well under a millisecond."""


class Failure(NamedTuple):
    """An error that only a run can detect, and the kind of its Problem."""
    message: str
    position: Position | None = None
    help: str | None = None
    kind: str = "variable"


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Native code, and its requirements.

    `run` takes a frame's address: pointers to the inputs, the outputs, the variables' data, the variables' written flags, then
    `pools` (offsets in an arena of `arena_nbytes` bytes) and `constants`. It returns 0, 1 + the number of a failure, or
    INTERRUPTED. If `tasks`, the maximum number that run at the same time, is above 1, the pools are followed by a pool of
    threads, whose code `thread_pool` returns; if its loops check the interrupt flag, then by the address that `interrupts`
    returns. `release` releases the code's memory. `run_address` is the address of `run`, `steps` bounds the computation of one
    run, and `caller` returns the address of the code for function objects (`function_object.py`), or 0.
    """
    signature: Signature
    run: Callable[[int], int]
    release: Callable[[], None]
    arena_nbytes: int = 0
    arena_alignment: int = ALIGNMENT
    pools: tuple[int, ...] = ()
    constants: tuple[Array, ...] = ()
    variables: tuple[Declaration, ...] = ()
    failures: tuple[Failure, ...] = ()
    run_address: int = 0
    steps: float = float("inf")
    caller: Callable[[], int] = int
    tasks: int = 1
    thread_pool: Callable[[], PoolCode | None] | None = None
    interrupts: Callable[[], int] | None = None

    def threads(self, most: int | None = None) -> int:
        """Return the address of the pool of threads for a call with at most that many; 0 if the code runs without one."""
        if self.thread_pool is None:
            return 0
        return threads.structure(self.thread_pool, self.tasks if most is None else min(most, self.tasks))


class Workspaces:
    """The workspaces of one code: the free ones, and their total number. A call holds one while it runs, so they also determine
    when the code may be released: when it is closed and all of them are free."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._bound = len(code.signature.inputs) + len(code.signature.outputs) + 2 * len(code.variables)
        threads = (code.threads(),) if code.tasks > 1 else ()
        flag = () if code.interrupts is None else (code.interrupts(),)
        self._fixed = (*threads, *flag, *(address(c) for c in code.constants))
        self.threads_at = self._bound + len(code.pools)
        self._free: list[Workspace] = []
        self._made = 0
        self._lock = threading.Lock()
        self._is_released = False
        self.is_closed = False
        _live.add(self)

    def take(self) -> Workspace:
        """Take a workspace for exclusive use: the one that was used last, whose arena is still in the caches."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = self._make()
        workspace.taken.value = 1
        if self.is_closed:
            self.give(workspace)
            raise Problem(f"{self._code.signature.name} has been closed", kind="argument", help="load it again")
        return workspace

    def give(self, workspace: Workspace) -> None:
        """Put a workspace back."""
        workspace.taken.value = self.is_closed
        self._free.append(workspace)
        if self.is_closed:
            self._release_if_idle()

    def reserve(self) -> Workspace:
        """Return a workspace that is free now, for calls that hold the interpreter's lock while they use it, and only use it
        while it is not `taken`."""
        workspace = self.take()
        self.give(workspace)
        return workspace

    def close(self) -> None:
        """Refuse new calls, and release the code, now or after the last running call."""
        self.is_closed = True
        for workspace in list(self._free):
            workspace.taken.value = 1
        self._release_if_idle()

    def _make(self) -> Workspace:
        with self._lock:
            self._made += 1
        code = self._code
        return Workspace(code.arena_nbytes, code.arena_alignment, self._bound, code.pools, self._fixed)

    def _release_if_idle(self) -> None:
        with self._lock:
            if self._is_released or len(self._free) < self._made:
                return
            self._is_released = True
        self._free.clear()
        self._code.release()

    def after_fork(self) -> None:
        """Reset the state in a forked child: calls of other threads are gone, and their workspaces with them."""
        self._lock = threading.Lock()
        self._made = len(self._free)


_live: weakref.WeakSet[Workspaces] = weakref.WeakSet()


def _after_fork() -> None:
    for workspaces in list(_live):
        workspaces.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Binding(NamedTuple):
    """A program's variables in one context, for one generation."""
    generation: int
    pointers: tuple[int, ...]
    locks: Locks


class Recipe(Protocol):
    """Makes an executable again, in another process; it can be pickled."""
    def __call__(self, context: Context) -> Executable: ...


def remade(recipe: Recipe, context: Context) -> Executable:
    return recipe(context)


class Executable:
    """A compiled function. Call it with arrays: `outputs = executable(x, y)`.

    `close()` releases its code; an executable without references does so by itself.
    """
    __slots__ = ("_run", "_signature", "binding", "code", "context", "recipe", "workspaces")

    def __init__(self, code: Code, context: Context = process, workspaces: Workspaces | None = None,
                 recipe: Recipe | None = None) -> None:
        self.recipe = recipe
        self.code, self._run, self._signature = code, code.run, code.signature
        self.context = context
        self.binding = self._bind()
        self.workspaces = workspaces or Workspaces(code)

    @property
    def signature(self) -> Signature:
        """Name, inputs and outputs of the function."""
        return self._signature

    @property
    def arena_nbytes(self) -> int:
        """Bytes of the arena that each running call uses."""
        return self.code.arena_nbytes

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the function uses."""
        return tuple(d.name for d in self.code.variables)

    @property
    def is_closed(self) -> bool:
        return self.workspaces.is_closed

    def __repr__(self) -> str:
        return f"<Executable {self._signature}{' (closed)' if self.is_closed else ''}>"

    def __call__(self, *inputs: Any, out: Any = None, num_threads: int | None = None) -> tuple[Array, ...]:
        """Run the function. `inputs` are arrays in order, or one mapping from names to arrays; `out` may give the arrays that
        the outputs are written to, `num_threads` the maximum number of threads. Raises a Problem for a wrong argument, and for
        an error that the run itself detects; raises the exception of a signal handler that runs during a loop
        (KeyboardInterrupt for Ctrl-C); then no variable has changed."""
        signature = self._signature
        arrays = signature.arrays(inputs)
        pointers = [address(a) for a in arrays]
        results = signature.results(out, pointers)
        pointers += [address(a) for a in results]
        binding = self.binding
        if binding.generation != self.context.generation:
            binding = self.binding = self._bind()
        pointers += binding.pointers
        workspace = self.workspaces.take()
        try:
            workspace.bind(pointers)
            if num_threads is not None:
                self.limit(workspace, checked(num_threads))
            if binding.pointers:
                with binding.locks:
                    status = self._run(workspace.frame_address)
            else:
                status = self._run(workspace.frame_address)
        finally:
            if num_threads is not None:
                self.limit(workspace, None)
            self.workspaces.give(workspace)
        if status == INTERRUPTED:
            interrupts.raise_error()
        if status:
            self.fault(status)
        return results if out is None else signature.given(out)

    @contextmanager
    def entered(self, *inputs: Any, num_threads: int | None = None) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """Prepare runs that the caller makes itself, as a timer does: yield the address of a frame with these inputs, and the
        memory of variables and of their written flags, as addresses and bytes. The variables are locked meanwhile."""
        arrays = self._signature.arrays(inputs)
        pointers = [address(a) for a in arrays]
        results = self._signature.results(None, pointers)
        binding = self.binding = self._bind()
        workspace = self.workspaces.take()
        try:
            self.limit(workspace, num_threads)
            workspace.bind([*pointers, *(address(a) for a in results), *binding.pointers])
            nbytes = [d.tensor.nbytes for d in self.code.variables]
            with binding.locks:
                yield workspace.frame_address, tuple(zip(binding.pointers, [*nbytes, *[1] * len(nbytes)]))
        finally:
            self.limit(workspace, None)
            self.workspaces.give(workspace)

    def limit(self, workspace: Workspace, threads: int | None) -> None:
        """Let runs in a workspace use `threads` threads; None: as many as the code is compiled for."""
        if self.code.tasks > 1:
            workspace.frame[self.workspaces.threads_at] = self.code.threads(threads)

    def bind(self, context: Context) -> Executable:
        """Return the same code with the variables of another context. Closing one closes both."""
        return Executable(self.code, context, self.workspaces, self.recipe)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without machine code: the recipe makes it again, with variables in the context of that name."""
        return remade, (self.checked_recipe(), self.context)

    def checked_recipe(self) -> Recipe:
        """Return the recipe; raise a Problem if there is none."""
        if self.recipe is None:
            raise Problem(f"{self._signature.name} cannot be pickled: it is code alone, and no graph", kind="argument",
                          help="pickle the model, its entry or the compiled function that it comes from")
        return self.recipe

    def __copy__(self) -> Executable:
        return self

    def __deepcopy__(self, memo: object) -> Executable:
        """Return the object itself: code is shared, as functions are, and its variables belong to a context."""
        return self

    def close(self) -> None:
        """Release the code's memory after the running calls; later calls raise a Problem."""
        self.workspaces.close()

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _bind(self) -> Binding:
        variables, generation = self.context.declare(self.code.variables)
        addresses: Sequence[tuple[int, int]] = [v.addresses for v in variables]
        return Binding(generation, (*(data for data, _ in addresses), *(written for _, written in addresses)),
                       Locks(variables))

    def fault(self, status: int) -> NoReturn:
        """Raise the failure of a run's status other than 0."""
        failure = self.code.failures[status - 1]
        raise Problem(failure.message, failure.position, kind=failure.kind, help=failure.help)
