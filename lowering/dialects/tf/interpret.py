"""Interpreter of graphs of TensorFlow's dialects, operation by operation. Everything made of these graphs is checked against
it.

Functions run in program order; a `tf_executor.graph` runs as in TensorFlow's executor (`tf_executor.interpret`). Variables live
in an `Environment`, by name, from one call to the next.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....runtime.errors import Problem
from ...graph.foreign import callees, find, spelling
from ...graph.graph import Block, Function, Module, Operation, Value
from ...graph.types import Array, TensorType
from ..standard.operators import scalar_tensor
from ..tf_executor.operators import Graph
from .operator import RECEIVE, SEND, TensorFlowOp
from .references import REFERENCES
from .types import is_resource, variable_type
from .values import Datum, NamedVariable

Scope = dict[Value, Datum]
COMPLEX = re.compile(r"dense<[\[(][^<>]*> : tensor<(\d+x)*complex<f32>>")
MAX_ITERATIONS = 1 << 24
"""Maximum number of iterations of one loop: more count as an infinite loop."""
NUMPY_ERRORS = (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError)
DEPTH = 200
"""Maximum depth of functions that call each other."""


@dataclass
class Environment:
    """A module, the values of its variables by name (None: not initialised), and the tensors in transit from a Send to its
    Recv."""
    module: Module
    variables: dict[str, Array | None] = field(default_factory=dict)
    rendezvous: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    rfc_merge: bool = False
    """True if a Merge with a dead control input is dead, as in the dialect's design document; in TensorFlow it is live."""
    depth: int = 0
    observe: Callable[[Operation, Sequence[Datum]], None] | None = None
    """A function that is called after every operation that has run, with its results; None for a dead operation of an executor
    graph."""
    written: Callable[[Operation, str, Array], None] | None = None
    """A function that is called after every write, with the operation, the variable and its new contents."""

    def __post_init__(self) -> None:
        for operation in self.module.declarations:
            if operation.op.variable_effect == "declare":
                self.declare(operation)
            if spelling(operation) == "tf_saved_model.global_tensor":
                value = getattr(find(operation, "value"), "array", None)
                self.variables.setdefault(str(find(operation, "sym_name")), None if value is None else np.array(value))

    def function(self, name: str) -> Function:
        return self.module.function(name)

    # ---- variables -----------------------------------------------------------------------------------------------
    def declare(self, operation: Operation) -> None:
        """Declare a variable of TOSA: the first declaration sets its value."""
        op: Any = operation.op
        self.variables.setdefault(op.symbol, None if op.initial is None else np.array(op.initial))

    def read(self, handle: Datum) -> Array:
        value = self.variables.get(named(handle))
        if value is None:
            raise Problem(f"variable {named(handle)} is read before it has a value", kind="variable")
        return value

    def assign(self, operation: Operation, handle: Datum, value: Array) -> None:
        self.variables[named(handle)] = held = np.array(value)
        if self.written is not None:
            self.written(operation, named(handle), held)


def named(handle: Datum) -> str:
    """Return the name of the variable that a value must be a handle of."""
    if not isinstance(handle, NamedVariable):
        raise Problem("what stands for a variable is no handle of one", kind="type")
    return handle.name


def interpret(environment: Environment, name: str | None, arguments: Sequence[Datum]) -> tuple[Datum, ...]:
    """Return the results of a function. Arguments are arrays, or `NamedVariable`s, without those that the module binds to its
    own variables."""
    function = environment.module.function(name)
    with np.errstate(all="ignore"):
        return call(environment, function, bound(function, arguments))


def bound(function: Function, arguments: Sequence[Datum]) -> list[Datum]:
    """Return the arguments, with handles for those that the module binds to a variable."""
    given, result = list(arguments), []
    attributes = function.argument_attributes or ({},) * len(function.arguments)
    for value, own in zip(function.arguments, attributes, strict=True):
        symbol = own.get("tf_saved_model.bound_input")
        if symbol is not None and is_resource(value.type):
            result.append(NamedVariable(str(symbol.path[-1])))
            continue
        if not given:
            raise Problem(f"@{function.name} takes more than {len(arguments)} arguments", kind="argument")
        result.append(checked(given.pop(0), value))
    if given:
        raise Problem(f"@{function.name} takes {len(arguments) - len(given)} arguments, not {len(arguments)}", kind="argument")
    return result


def checked(datum: Datum, value: Value) -> Datum:
    """Return an argument after checking it against its type."""
    type = scalar_tensor(value.type)
    if isinstance(type, TensorType):
        array = np.asarray(datum)
        known = type.shape is None or (len(type.shape) == array.ndim and all(
            n is None or n == m for n, m in zip(type.shape, array.shape)))
        if array.dtype != type.element.dtype or not known:
            raise Problem(f"argument %{value.name} is {value.type}, not {array.dtype}{list(array.shape)}", kind="argument")
        return array
    return datum


def call(environment: Environment, function: Function, arguments: Sequence[Datum]) -> tuple[Datum, ...]:
    if environment.depth >= DEPTH:
        raise Problem(f"@{function.name}: functions call each other more than {DEPTH} deep", function.position,
                      kind="unsupported")
    if len(arguments) != len(function.arguments):
        raise Problem(f"@{function.name} takes {len(function.arguments)} values, it is given {len(arguments)}",
                      function.position, kind="type")
    environment.depth += 1
    try:
        return run_block(environment, function.body, dict(zip(function.arguments, arguments, strict=True)))
    finally:
        environment.depth -= 1


def run_block(environment: Environment, block: Block, scope: Scope) -> tuple[Datum, ...]:
    """Run the operations of a block in order, with the enclosing values in `scope`; return the values that it yields."""
    for operation in block.operations:
        try:
            results = run(environment, operation, scope)
        except Problem as problem:
            raise problem.of(spelling(operation)).at(operation.position) from None
        scope.update(zip(operation.results, results, strict=True))
        if environment.observe is not None:
            environment.observe(operation, results)
    return tuple(scope[v] for v in block.yields)


def run(environment: Environment, operation: Operation, scope: Scope) -> Sequence[Datum]:
    """Return the results of one operation."""
    if isinstance(operation.op, Graph):
        from ..tf_executor.interpret import run_graph
        return run_graph(environment, operation, scope)
    if not isinstance(operation.op, TensorFlowOp):
        from ..standard.interpret import run_operation
        return counted(operation, run_operation(environment, operation, scope))
    name, operands = spelling(operation), [scope[v] for v in operation.operands]
    try:
        if (special := SPECIAL.get(name)) is not None:
            return counted(operation, special(environment, operation, operands, scope))
        if (found := REFERENCES.get(name)) is not None:
            results = found(operation, *operands)
            return counted(operation, [as_datum(r) for r in (results if isinstance(results, tuple) else (results,))])
    except NUMPY_ERRORS as error:  # shapes that do not fit, as NumPy reports them
        raise Problem(f"{name}: {error}", operation.position, kind="shape") from error
    raise Problem(f"operator {name} is not known", operation.position, kind="unsupported")


def counted(operation: Operation, results: Sequence[Datum]) -> Sequence[Datum]:
    """Return the results after checking that there are as many as the operation has."""
    if len(results) != len(operation.results):
        raise Problem(f"it has {len(results)} results, not {len(operation.results)}", operation.position, kind="type")
    return results


def as_datum(value: Any) -> Datum:
    return np.asarray(value) if isinstance(value, np.generic | np.ndarray) else value


# ---- constants, control flow, calls ------------------------------------------------------------------------------
def constant(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    value = find(operation, "value")
    array = getattr(value, "array", None)
    written = getattr(value, "text", None)
    if array is None and isinstance(written, str) and COMPLEX.fullmatch(written):
        return [complex_array(written)]
    return [value if array is None else array]


def complex_array(written: str) -> Array:
    """Return a constant of complex numbers that is written as pairs (real, imaginary), not as bytes."""
    elements, _, type = written.removeprefix("dense<").rpartition("> : tensor<")
    try:
        pairs = np.array(json.loads(elements.replace("(", "[").replace(")", "]")), np.float32)
    except ValueError:
        raise Problem("complex numbers are written as (real, imaginary)", kind="syntax") from None
    dims = [int(n) for n in type.split("x")[:-1] if n.isdecimal()]
    return np.broadcast_to(pairs[..., 0] + np.complex64(1j) * pairs[..., 1], dims)


def nothing(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return []


def is_true(datum: Datum) -> bool:
    """Return a condition as a bool: a number is true if it is not zero, a string if it is not empty, a tensor of rank above 0
    if it has elements."""
    array = np.asarray(datum)
    if array.ndim:
        return array.size > 0
    return bool(array.item())


def functions_of(operation: Operation, *names: str) -> list[str]:
    found = callees(operation)
    return [f for name in names for f in found.get(name, ())]


def if_(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    """Run If, with a function as condition (the dialect's design document) or with the first operand."""
    found = callees(operation)
    if "cond" in found:
        condition = call(environment, environment.function(found["cond"][0]), operands)[0]
        rest, branches = operands, functions_of(operation, "true_branch", "false_branch", "then_branch", "else_branch")
    else:
        condition, *rest = operands
        branches = functions_of(operation, "then_branch", "else_branch")
    return call(environment, environment.function(branches[0 if is_true(condition) else 1]), rest)


def case(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    index, *rest = operands
    branches = functions_of(operation, "branches")
    return call(environment, environment.function(branches[branch_of(index, len(branches))]), rest)


def branch_of(index: Array, count: int) -> int:
    """Return the index of a branch: the last branch for an index out of range."""
    return int(index) if 0 <= int(index) < count else count - 1


def while_(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    condition, body = (environment.function(functions_of(operation, name)[0]) for name in ("cond", "body"))
    return iterate(operation, operands, lambda state: call(environment, condition, state)[0],
                 lambda state: call(environment, body, state))


def iterate(operation: Operation, state: Sequence[Datum], condition: Callable[[Sequence[Datum]], Datum],
          body: Callable[[Sequence[Datum]], Sequence[Datum]]) -> Sequence[Datum]:
    for _ in range(MAX_ITERATIONS):
        if not is_true(condition(state)):
            return state
        state = body(state)
    raise Problem(f"a loop of more than {MAX_ITERATIONS} iterations", operation.position, kind="unsupported")


def if_region(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return run_block(environment, operation.regions[0 if is_true(operands[0]) else 1], dict(scope))


def case_region(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return run_block(environment, operation.regions[branch_of(operands[0], len(operation.regions))], dict(scope))


def while_region(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    def inside(block: Block, state: Sequence[Datum]) -> Sequence[Datum]:
        return run_block(environment, block, {**scope, **dict(zip(block.arguments, state, strict=True))})
    condition, body = operation.regions
    return iterate(operation, operands, lambda state: inside(condition, state)[0], lambda state: inside(body, state))


def call_function(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    found = find(operation, "f") or find(operation, "callee")
    if not hasattr(found, "path"):
        raise Problem(f"{spelling(operation)} does not say which function it calls", operation.position, kind="attribute")
    return call(environment, environment.function(str(found.path[-1])), operands)


def check(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    if not is_true(operands[0]):
        shown = [np.asarray(x).tolist() for x in operands[1:]]
        raise Problem(f"an assertion fails: {shown}", operation.position, kind="check")
    return []


# ---- variables, Send and Recv --------------------------------------------------------------------------------------
def handle_of(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    name = str(find(operation, "shared_name") or operation.results[0].name)
    environment.variables.setdefault(name, None)
    return [NamedVariable(name)]


def read(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return [environment.read(operands[0])]


def assign(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    handle, value = operands
    declared = variable_type(operation.operands[0].type)
    if declared is not None and declared.is_static and declared.dims != value.shape:
        raise Problem(f"variable {named(handle)} is {declared}, what is written has the shape {list(value.shape)}",
                      kind="variable")
    environment.assign(operation, handle, value)
    return []


def assign_add(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    environment.assign(operation, operands[0], environment.read(operands[0]) + operands[1])
    return []


def assign_sub(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    environment.assign(operation, operands[0], environment.read(operands[0]) - operands[1])
    return []


def is_initialized(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return [np.array(environment.variables.get(named(operands[0])) is not None)]


def gather_variable(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    return [REFERENCES["tf.Gather"](operation, environment.read(operands[0]), operands[1])]


def channel(operation: Operation) -> tuple[Any, ...]:
    """Return the key that a Send and its Recv share."""
    incarnation = getattr(find(operation, "send_device_incarnation"), "value", 0)
    return (*(find(operation, n) for n in ("tensor_name", "send_device", "recv_device")), incarnation)


def send(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    environment.rendezvous[channel(operation)] = operands[0]
    return []


def receive(environment: Environment, operation: Operation, operands: Sequence[Datum], scope: Scope) -> Sequence[Datum]:
    if channel(operation) not in environment.rendezvous:
        raise Problem(f"nothing was sent as {channel(operation)[0]!r}", operation.position, kind="deadlock")
    return [environment.rendezvous.pop(channel(operation))]


Special = Callable[[Environment, Operation, Sequence[Datum], Scope], Sequence[Datum]]
SPECIAL: Mapping[str, Special] = {
    "tf.Const": constant, "tf.NoOp": nothing, "tf.If": if_, "tf.StatelessIf": if_, "tf.Case": case, "tf.StatelessCase": case,
    "tf.While": while_,
    "tf.StatelessWhile": while_, "tf.IfRegion": if_region, "tf.CaseRegion": case_region, "tf.WhileRegion": while_region,
    **dict.fromkeys(("tf.PartitionedCall", "tf.StatefulPartitionedCall", "tf.LegacyCall", "func.call"), call_function),
    "tf.Assert": check, "tf.VarHandleOp": handle_of, "tf.ReadVariableOp": read,
    "tf.AssignVariableOp": assign, "tf.AssignAddVariableOp": assign_add, "tf.AssignSubVariableOp": assign_sub,
    "tf.VarIsInitializedOp": is_initialized, "tf.ResourceGather": gather_variable,
    **dict.fromkeys(SEND, send), **dict.fromkeys(RECEIVE, receive)}
"""Operations that do more than compute their results from their operands."""
