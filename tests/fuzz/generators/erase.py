"""Modules of static types with types taken out of them: extents become `?`, ranks unknown, as front ends write them that leave
to the compiler what follows. And static faults put into them, one operand each.
"""
from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from tosaic.lowering.dialects.tosa.variable import VariableRead
from tosaic.lowering.graph.graph import Block, Function, Module, Operation, Value
from tosaic.lowering.graph.types import F16, F32, I8, I16, I32, TensorType, Type
from tosaic.lowering.graph.verify import MAXIMUM_RANK
from tosaic.runtime.errors import Position, Problem, Source

UNRANKED = 0.3
"""The share of types that lose their rank, of those that lose something."""
Values = dict[Value, Value]


@dataclass(frozen=True, slots=True)
class Eraser:
    """Makes a share of the types less known."""
    rng: random.Random
    share: float = 0.7

    def module(self, module: Module) -> Module:
        return replace(module, functions=tuple(self.function(f, f.arguments) for f in module.functions))

    def function(self, function: Function, arguments: tuple[Value, ...]) -> Function:
        results = tuple(map(self.type, function.result_types))
        return replace(function, body=self.block(function.body, {}, arguments), result_types=results)

    def block(self, source: Block, outer: Values, arguments: tuple[Value, ...]) -> Block:
        values = {**outer, **dict(zip(source.arguments, arguments))}
        operations = []
        for old in source.operations:
            new = self.operation(old, values)
            values.update(zip(old.results, new.results))
            operations.append(new)
        yields = tuple(values[v] for v in source.yields)
        return replace(source, arguments=arguments, operations=tuple(operations), yields=yields)

    def operation(self, old: Operation, values: Values) -> Operation:
        operands = tuple(values[v] for v in old.operands)
        regions = tuple(self.block(r, values, tuple(map(self.value, r.arguments))) for r in old.regions)
        results = old.results if is_data(old) else tuple(map(self.value, old.results))
        op = old.op
        if isinstance(op, VariableRead):
            op = VariableRead(op.symbol, results[0].type)
        return replace(old, op=op, operands=operands, results=results, regions=regions)

    def value(self, value: Value) -> Value:
        return replace(value, type=self.type(value.type), constant=None)

    def type(self, type: Type) -> Type:
        if not isinstance(type, TensorType) or self.rng.random() > self.share:
            return type
        return TensorType(None, type.element) if self.rng.random() < UNRANKED else self.open(type)

    def open(self, type: TensorType) -> TensorType:
        part = self.rng.choice((0.3, 0.7, 1.0))
        return TensorType(tuple(None if self.rng.random() < part else n for n in type.dims), type.element)


def is_data(operation: Operation) -> bool:
    """True if an operation is a constant: its data have the shape that they have."""
    return operation.op.name in ("tosa.const", "tosa.const_shape")


def erased(module: Module, rng: random.Random, share: float = 0.7) -> Module:
    """The module, its arguments and constants as they are, with a share of all other types less known."""
    return Eraser(rng, share).module(module)


def opened(module: Module, rng: random.Random, kept: Collection[Value]) -> Module:
    """The module of one function with extents of its arguments open, those of `kept` as they are, and all that may follow from
    them, too."""
    eraser = Eraser(rng, 1.0)
    function, = module.functions
    arguments = tuple(a if a in kept else replace(a, type=eraser.open(a.tensor)) for a in function.arguments)
    return replace(module, functions=(eraser.function(function, arguments),))


def types_of(block: Block) -> Iterator[Type]:
    """The types of all values, in order."""
    yield from (v.type for v in block.arguments)
    for operation in block.operations:
        for region in operation.regions:
            yield from types_of(region)
        yield from (v.type for v in operation.results)
    yield from (v.type for v in block.yields)


# ---- faults ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Fault:
    """A module in which one operation has a wrong operand, the line of that operation, and the arguments that it depends on."""
    module: Module
    operation: Operation
    needs: frozenset[Value]


def faulty(module: Module, rng: random.Random) -> Fault | None:
    """The module of one function with an operand of one of its operations replaced by an argument of another type that the
    operator cannot take; None where it takes all that are tried. Each operation stands on a line of its own."""
    function, = module.functions
    lined = on_lines(function)
    places = [(n, k) for n, o in enumerate(lined.body.operations) for k in range(len(o.operands))
              if not o.op.variable_effect and not (o.regions and is_carried(o, k))]
    rng.shuffle(places)
    for number, operand in places[:4]:
        operation = lined.body.operations[number]
        for type in wrong_types(operation.operands[operand].type, rng):
            argument = Value("wrong", type)
            operands = tuple(argument if k == operand else v for k, v in enumerate(operation.operands))
            wrong = replace(operation, operands=operands)
            if not is_refused(wrong):
                continue
            operations = (*lined.body.operations[:number], wrong, *lined.body.operations[number + 1:])
            body = replace(lined.body, arguments=(*lined.arguments, argument), operations=operations)
            needs = needed(body, wrong)
            return Fault(replace(module, functions=(replace(lined, body=body, argument_attributes=()),)), wrong, needs)
    return None


def on_lines(function: Function) -> Function:
    """The function with operation n on line n + 1."""
    source = Source("lines")
    operations = tuple(replace(o, position=Position(source, n, 1)) for n, o in enumerate(function.body.operations, 1))
    return replace(function, body=replace(function.body, operations=operations))


def is_carried(operation: Operation, operand: int) -> bool:
    """True if arguments of the operation's regions take the type of an operand, whatever it is."""
    return operand >= len(operation.operands) - len(operation.regions[-1].arguments)


def wrong_types(type: Type, rng: random.Random) -> list[Type]:
    """Types that are not that one, in random order."""
    if not isinstance(type, TensorType):
        return []
    found: list[Type] = [TensorType(type.dims, e) for e in (F32, F16, I8, I16, I32) if e != type.element]
    for axis, n in enumerate(type.dims):
        found.append(TensorType((*type.dims[:axis], n + rng.choice((1, 2, 5)), *type.dims[axis + 1:]), type.element))
    found.append(TensorType(type.dims[1:] if type.rank == MAXIMUM_RANK else (*type.dims, 1), type.element))
    found.append(TensorType(type.dims[1:], type.element))
    rng.shuffle(found)
    return found


def is_refused(operation: Operation) -> bool:
    """True if the operator's rule refuses its operands, whatever results are declared."""
    try:
        operation.op.types(operation.operands, operation.regions)
    except Problem:
        return True
    return False


def needed(body: Block, operation: Operation) -> frozenset[Value]:
    """The arguments that the operands of an operation of a block follow from."""
    makers = {r: o for o in body.operations for r in o.results}
    found: set[Value] = set()
    todo = [operation]
    while todo:
        current = todo.pop()
        inside = [o for region in current.regions for o in region.walk()]
        yields = [v for o in (current, *inside) for r in o.regions for v in r.yields]
        for value in (*current.operands, *(v for o in inside for v in o.operands), *yields):
            if value not in found:
                found.add(value)
                if value in makers:
                    todo.append(makers[value])
    return frozenset(v for v in body.arguments if v in found)
