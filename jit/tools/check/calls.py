"""The calls that `check` makes, from its caller's arguments: arrays as the function takes them, for one call, or a list of
calls. Inputs are validated here as a call of compiled code validates them, before any engine runs: two engines that refuse the
same array would prove nothing.
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
    """Return the inputs of a function as compiled code has them. Outputs play no part."""
    return Signature(function.name, tuple(map(tensor_of, function.arguments)), ())


def tensor_of(value: Value) -> Tensor:
    type = value.type
    if not isinstance(type, TensorType) or not type.is_static:
        raise Problem(f"input {value.name} is {type}, whose shape is not known", value.position, kind="shape",
                      help="specialize the entry for the shapes of the inputs: entry.specialize({...})")
    return Tensor(value.name, type.element.storage, type.dims, type.element.name)


def checked_calls(function: Function, calls: Iterable[Any]) -> Calls:
    """Return the arrays of each call, in the order of the function's inputs. Raise a Problem for arrays that a call would
    refuse, and if there is no call."""
    signature = signature_of(function)
    found = [checked_call(signature, number, call) for number, call in enumerate(calls)]
    return found or no_calls(function.name)


def checked_call(signature: Signature, number: int, call: Any) -> Sequence[Array]:
    """Return the arrays of one call, given as a list, a mapping by name, or the only array."""
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
    """Return the calls that the arguments of `check` describe: a list of calls if they are one list or tuple, whose items are
    calls; inputs of one call otherwise."""
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
    """Return the inputs of `check`, its options and its memory. The options and memory may follow the list of calls without a
    keyword."""
    calls, *rest = given or ((),)
    if not (rest and isinstance(calls, list | tuple) and all(map(is_option, rest)) and len(rest) <= 2):
        return tuple(given), options, memory
    return (calls,), rest[0] if options is None else options, rest[1] if len(rest) == 2 and memory is None else memory


def is_option(value: Any) -> bool:
    from ....lowering.memory.planner import Memory
    from ....lowering.options import CompileOptions
    return value is None or isinstance(value, CompileOptions | Memory)
