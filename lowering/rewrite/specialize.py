"""Graph -> graph: a function with dynamic extents, rewritten for arguments of known shapes.

Extents follow from the operators' own type rules, argument by argument and operation by operation; what is computed from
shapes when compiling follows, too. A declared extent that cannot be the one that follows is a Problem.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...runtime.errors import Problem
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import UnknownOp
from ..graph.types import TensorType, Type
from ..graph.verify import compatible


def specialize(module: Module, name: str, types: Sequence[TensorType]) -> Module:
    """The module with function `name` rewritten for arguments of these types, the other functions as they are."""
    function = module.function(name)
    special = specialized(function, types)
    return replace(module, functions=tuple(special if f is function else f for f in module.functions))


def specialized(function: Function, types: Sequence[TensorType]) -> Function:
    check_inputs(function, types)
    body = block(function.body, types, {})
    return replace(function, body=body, result_types=tuple(v.type for v in body.yields))


def check_inputs(function: Function, types: Sequence[TensorType]) -> None:
    """A Problem unless the function's inputs can be of these types."""
    if len(types) != len(function.arguments):
        raise Problem(f"{function.name} takes {len(function.arguments)} inputs, not {len(types)}", kind="argument")
    for argument, type in zip(function.arguments, types):
        if not compatible(argument.type, type):
            raise Problem(f"input {argument.name} is {argument.type}, an array of {type} does not fit", kind="argument")


def block(source: Block, types: Sequence[Type], outer: Mapping[Value, Value]) -> Block:
    """The block for arguments of these types; `outer` holds the values that have a new type."""
    arguments = tuple(replace(a, type=t) for a, t in zip(source.arguments, types))
    values = {**outer, **dict(zip(source.arguments, arguments))}
    operations = []
    for old in source.operations:
        try:
            new = operation(old, values)
        except Problem as problem:
            raise problem.at(old.position) from None
        values.update(zip(old.results, new.results))
        operations.append(new)
    yields = tuple(values.get(v, v) for v in source.yields)
    return replace(source, arguments=arguments, operations=tuple(operations), yields=yields)


def operation(old: Operation, values: Mapping[Value, Value]) -> Operation:
    """The operation on operands of known types."""
    op, operands = old.op, tuple(values.get(v, v) for v in old.operands)
    regions: tuple[Block, ...] = ()
    if old.regions:
        behind = len(operands) - len(old.regions[-1].arguments)
        inner = [v.type for v in operands[behind:]]
        regions = tuple(block(r, inner, values) for r in old.regions)
    if isinstance(op, UnknownOp) or op.foreign or op.variable_effect:
        types: tuple[Type, ...] = tuple(v.type for v in old.results)
    else:
        types = op.types(operands, regions)
    data = op.constant(operands) if len(old.results) == 1 else None
    results = tuple(replace(v, type=known(v, t), constant=v.constant if data is None else data)
                    for v, t in zip(old.results, types))
    return replace(old, operands=operands, results=results, regions=regions)


def known(value: Value, found: Type) -> Type:
    """The type that was declared and the one that follows, together."""
    declared = value.type
    if not compatible(found, declared):
        raise Problem(f"%{value.name} is declared as {declared}, for these inputs it is {found}", value.position, kind="type")
    if not isinstance(found, TensorType) or not isinstance(declared, TensorType) or found.shape is None:
        return declared
    if declared.shape is None:
        return found
    return TensorType(tuple(m if n is None else n for n, m in zip(found.shape, declared.shape)), declared.element)
