"""The calls that `check` makes, from what its caller gives: arrays as the function itself takes them, for one call, or a list
of calls. Inputs are tested here as a call of compiled code tests them, before any engine runs: two engines that refuse one
array would agree about nothing.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ....lowering.graph.graph import Function, Value
from ....lowering.graph.types import Array, TensorType
from ....runtime.arguments import Signature, Tensor
from ....runtime.errors import Problem, TypeProblem

if TYPE_CHECKING:
    from ....lowering.memory.planner import Memory
    from ....lowering.options import CompileOptions

Calls = Sequence[Sequence[Array]]


def signature_of(function: Function) -> Signature:
    """Inputs of a function as compiled code has them. Outputs play no part."""
    return Signature(function.name, tuple(map(tensor_of, function.arguments)), ())


def tensor_of(value: Value) -> Tensor:
    type = value.type
    if not isinstance(type, TensorType) or not type.is_static:
        raise Problem(f"input {value.name} is {type}, whose shape is not known", value.position, kind="shape",
                      help="specialize the entry for the shapes of the inputs: entry.specialize({...})")
    return Tensor(value.name, type.element.storage, type.dims, type.element.name)


def checked_calls(function: Function, calls: Iterable[Any]) -> Calls:
    """The arrays of each call, in the order of the function's inputs; a Problem for one that a call would refuse, and where
    there is no call."""
    signature = signature_of(function)
    found = [checked_call(signature, number, call) for number, call in enumerate(calls)]
    return found or no_calls(function.name)


def checked_call(signature: Signature, number: int, call: Any) -> Sequence[Array]:
    """The arrays of one call: a list of them, a mapping by name, or the only one."""
    arguments = call if isinstance(call, list | tuple) else (call,)
    try:
        return list(signature.arrays(arguments))
    except Problem as problem:
        raise type(problem)(f"call {number}: {problem.message}", problem.position, kind=problem.kind,
                            help=problem.help) from None


def no_calls(name: str) -> NoReturn:
    raise Problem(f"there are no calls of {name} to compare", kind="argument",
                  help="give the arrays of one call, check(x, y), or a list of calls, check([[x, y], ...])")


def given_calls(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """The calls that the arguments of `check` stand for: a list of calls where they are one list or tuple, whose items are
    calls each; inputs of one call otherwise."""
    if named and given:
        raise TypeProblem(f"check of {name} takes inputs in order or by name, not both", kind="argument",
                          help="give one mapping with all names")
    if named:
        return [dict(named)]
    if len(given) == 1 and isinstance(given[0], list | tuple | Iterator):
        return list(given[0]) or no_calls(name)
    return [tuple(given)]


def without_options(given: Sequence[Any], options: CompileOptions | None, memory: Memory | None
                    ) -> tuple[tuple[Any, ...], CompileOptions | None, Memory | None]:
    """The inputs of `check`, and its options and memory, which may stand behind the list of calls without a keyword."""
    calls, *rest = given or ((),)
    if not (rest and isinstance(calls, list | tuple) and all(map(is_option, rest)) and len(rest) <= 2):
        return tuple(given), options, memory
    return (calls,), rest[0] if options is None else options, rest[1] if len(rest) == 2 and memory is None else memory


def is_option(value: Any) -> bool:
    from ....lowering.memory.planner import Memory
    from ....lowering.options import CompileOptions
    return value is None or isinstance(value, CompileOptions | Memory)
