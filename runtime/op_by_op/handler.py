"""Op handlers, which run operations. A handler runs an invocation or passes it on to its fallback; the last of a chain supports
nothing. A client subclasses `OpHandler` for its own.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import Problem
from ..public_names import closest, public_class
from .attributes import EMPTY, FrozenOpAttrs
from .callbacks import hold
from .chain import Chain
from .handle import TensorHandle
from .reporting import INTERRUPTS, problem_of, sound

if TYPE_CHECKING:
    from .core import CoreRuntime


@dataclass(slots=True, eq=False)
class OpInvocation:
    """One call of an operation, which is passed from handler to handler.

    The handler owns `arguments`, and fills all of `results` (a list with one element for each result, initially None) and
    `out_chain` if there is a `chain`. `problem` is the error that was found immediately, if any: its handler sets it besides
    the results.
    """
    op_name: str
    location: object
    arguments: list[TensorHandle]
    attributes: FrozenOpAttrs = EMPTY
    results: list[TensorHandle | None] = field(default_factory=list)
    chain: Chain | None = None
    out_chain: Chain | None = None
    problem: Problem | None = None
    runtime: CoreRuntime | None = None

    def fill(self, error: Problem) -> None:
        """Set all missing results, and a missing out chain, to this error."""
        self.results[:] = [TensorHandle(self.runtime, None, None, error) if r is None else r for r in self.results]
        if self.chain is not None and self.out_chain is None:
            self.out_chain = Chain(error)

    def fail(self, error: Problem) -> None:
        """Set every result, and the out chain, to this error."""
        self.results[:] = [TensorHandle(self.runtime, None, None, error) for _ in self.results]
        self.out_chain = None if self.chain is None else Chain(error)


@public_class
class OpHandler:
    """Runs operations. Subclasses override `execute`."""

    def __init__(self, fallback: OpHandler | None = None) -> None:
        self.fallback = fallback

    def execute(self, invocation: OpInvocation) -> bool:
        """Run the operation and fill the invocation's results; return False if this handler does not know it."""
        return False

    def run(self, invocation: OpInvocation) -> bool:
        """Run the operation on this handler, or on the first of its fallbacks that knows it."""
        handler: OpHandler | None = self
        while handler is not None:
            if handler.execute(invocation):
                return True
            handler = handler.fallback
        return False


def run_handler(handler: OpHandler, invocation: OpInvocation) -> Problem | None:
    """Run an operation; return a Problem if the handler raises one, or has left a result out."""
    try:
        is_done = handler.run(invocation)
    except Problem as problem:
        return sound(problem, f"the handler of {invocation.op_name}")
    except BaseException as error:
        if isinstance(error, INTERRUPTS):
            hold(error)
        return problem_of(error, f"the handler of {invocation.op_name}")
    if not is_done:
        return Problem(f"{invocation.op_name} was not supported by any handler", kind="unsupported", help=advice(invocation))
    if not all(isinstance(r, TensorHandle) for r in invocation.results) or (
            invocation.chain is not None and not isinstance(invocation.out_chain, Chain)):
        return Problem(f"the handler of {invocation.op_name} has left a result or the chain out", kind="argument",
                       help="fill invocation.results, and out_chain where there is a chain")
    return None


def advice(invocation: OpInvocation) -> str:
    """Return help for an operation that no handler knows: the name that was probably meant."""
    names = () if invocation.runtime is None else tuple(invocation.runtime.cpu.names())
    spelled = {n.lower().rpartition(".")[2]: n for n in names} | {n.lower(): n for n in names}
    wanted = invocation.op_name.lower()
    meant = closest(wanted, spelled) or closest(wanted.rpartition(".")[2], spelled)
    if meant is None or spelled[meant] == invocation.op_name:
        return "register the operation, or choose a handler that has it"
    return f"did you mean {spelled[meant]}? otherwise register the operation, or choose a handler that has it"


class NullOpHandler(OpHandler):
    """The end of a chain: every operation is an error."""

    def execute(self, invocation: OpInvocation) -> bool:
        invocation.problem = Problem(f"{invocation.op_name} was not supported by NullOpHandler", kind="unsupported",
                                     help=advice(invocation))
        if invocation.runtime is not None:
            invocation.problem = invocation.runtime.originate(invocation.problem, invocation.location, invocation.op_name)
        invocation.fail(invocation.problem)
        return True


Write = Callable[[str], object]
