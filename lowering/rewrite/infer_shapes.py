"""Graph -> graph: extents and ranks that a module leaves open, inferred as far as possible.

A type that is declared with `?` or without a rank gets the type that the operator's type rule gives for the operands, operation
by operation. In regions, too: their arguments have the operands' types. A variable that is read has its declaration's type.
Values that are computed from shapes at compile time follow as well.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..dialects.tosa.variable import VariableRead
from ..graph.graph import Block, Function, Module, Operation, Value
from ..graph.operator import Op, UnknownOp
from ..graph.types import TensorType, Type
from ..graph.verify import compatible, is_foreign, verify

DEEPEST = 64
"""Maximum depth of regions that are visited; `verify` refuses deeper regions of TOSA."""
Values = Mapping[Value, Value]


def verified(module: Module) -> Module:
    """Return the module with its shapes inferred, and verified: so that errors are found even with open extents."""
    found = infer_shapes(module)
    verify(found)
    return found


def infer_shapes(module: Module) -> Module:
    """Return the module with every type inferred as far as possible; the same object if all types are static, or if a foreign
    dialect has types of its own. Inference reports no errors: `verify` does."""
    if not any(map(is_open, module.functions)) or is_foreign(module):
        return module
    inference = Inference(declared_types(module), strict=False)
    return replace(module, functions=tuple(inference.function(f) if is_open(f) else f for f in module.functions))


def is_open(function: Function) -> bool:
    """True if the function has a type that is not static."""
    return any(isinstance(t, TensorType) and not t.is_static for t in (*function.result_types, *types(function.body)))


def types(block: Block) -> Iterator[Type]:
    """Types of all values that a block and its regions define."""
    yield from (v.type for v in block.arguments)
    for operation in block.walk():
        yield from (v.type for v in operation.results)
        for region in operation.regions:
            yield from (v.type for v in region.arguments)


def declared_types(module: Module) -> dict[str, TensorType]:
    """The types of the module's variables by their names."""
    operations = (*module.declarations, *(o for f in module.functions for o in f.body.walk()))
    found: dict[str, TensorType] = {}
    for operation in operations:
        if operation.op.variable_effect == "declare":
            op: Any = operation.op
            found.setdefault(op.symbol, op.type)
    return found


@dataclass(frozen=True, slots=True)
class Inference:
    """Shape inference that rewrites functions. A `strict` inference raises a Problem if a rule fails, or gives a type that
    contradicts the declared one; otherwise the declaration stays for `verify` to check."""
    variables: Mapping[str, TensorType]
    strict: bool

    def function(self, function: Function, arguments: Sequence[Type] | None = None) -> Function:
        """Return the function for arguments of these types, if they are given."""
        given = [v.type for v in function.arguments] if arguments is None else arguments
        body = self.block(function.body, given, {}, 0)
        found, results = [v.type for v in body.yields], function.result_types
        if not self.strict and len(results) == len(found):
            return replace(function, body=body, result_types=tuple(map(joined, results, found)))
        return replace(function, body=body, result_types=tuple(found) if self.strict else results)

    def block(self, source: Block, given: Sequence[Type], outer: Values, depth: int) -> Block:
        """Return the block for arguments of these types; `outer` holds the values that have a new type."""
        fits = len(given) == len(source.arguments)
        arguments = tuple(self.of_type(v, t) for v, t in zip(source.arguments, given)) if fits else source.arguments
        values = {**outer, **dict(zip(source.arguments, arguments))}
        operations = []
        for old in source.operations:
            try:
                new = self.operation(old, values, depth)
            except Problem as problem:
                raise problem.at(old.position) from None
            values.update(zip(old.results, new.results))
            operations.append(new)
        yields = tuple(values.get(v, v) for v in source.yields)
        return replace(source, arguments=arguments, operations=tuple(operations), yields=yields)

    def operation(self, old: Operation, values: Values, depth: int) -> Operation:
        """Return the operation on operands whose types are inferred as far as possible."""
        op, operands = self.with_declared_type(old.op), tuple(values.get(v, v) for v in old.operands)
        inner = region_operands(old, operands)
        regions = tuple(self.block(r, inner, values, depth + 1) for r in old.regions) if depth < DEEPEST else old.regions
        declared = [v.type for v in old.results]
        found = self.rule_types(op, operands, regions) or declared
        found = found if len(found) == len(declared) else declared
        data = op.constant(operands) if len(declared) == 1 else None
        results = tuple(replace(self.of_type(v, t), constant=v.constant if data is None else data)
                        for v, t in zip(old.results, found))
        return replace(old, op=with_results(op, results), operands=operands, results=results, regions=regions)

    def rule_types(self, op: Op, operands: Sequence[Value], regions: Sequence[Block]) -> tuple[Type, ...] | None:
        """Return the types that the operator's rule gives; None if there is no rule, or if it fails."""
        if isinstance(op, UnknownOp) or op.foreign or op.variable_effect in ("declare", "write") or len(regions) != op.regions:
            return None
        try:
            check_elements(operands)
            return op.types(operands, regions)
        except Problem:
            if self.strict:
                raise
            return None

    def with_declared_type(self, op: Op) -> Op:
        """Return the operator. An operator that reads a variable gets the variable's declared type."""
        if not isinstance(op, VariableRead) or op.symbol not in self.variables:
            return op
        return VariableRead(op.symbol, joined(op.type, self.variables[op.symbol]))

    def of_type(self, value: Value, found: Type) -> Value:
        """Return the value with its declared type joined with the inferred one."""
        if self.strict and not compatible(found, value.type):
            raise Problem(f"%{value.name} is declared as {value.type}, for these inputs it is {found}", value.position,
                          kind="type")
        return replace(value, type=joined(value.type, found))


def check_elements(operands: Sequence[Value]) -> None:
    """Raise a Problem if an operand has no elements: the operators' rules divide by extents."""
    for value in operands:
        if isinstance(value.type, TensorType) and 0 in (value.type.shape or ()):
            raise Problem(f"%{value.name} has no elements: {value.type}", value.position, kind="shape")


def region_operands(operation: Operation, operands: Sequence[Value]) -> list[Type]:
    """Return the types of the operands that the arguments of an operation's regions stand for: the last operands."""
    if not operation.regions or isinstance(operation.op, UnknownOp) or operation.op.foreign:
        return []
    behind = len(operands) - len(operation.regions[-1].arguments)
    return [v.type for v in operands[max(behind, 0):]]


def with_results(op: Op, results: Sequence[Value]) -> Op:
    """Return the operator. An operator that holds the types of its results (CUSTOM) gets these types."""
    held = next((f.name for f in op._fields if f.metadata.get("mlir") == "result" and f.metadata["result"] is None), None)
    types = tuple(v.type for v in results)
    return op if held is None or getattr(op, held) in (None, types) else replace(op, **{held: types})  # type: ignore[type-var]


def joined(declared: Type, found: Type) -> Any:
    """Return the join of a declared type and the inferred one; the declared type if they contradict each other."""
    if not isinstance(found, TensorType) or not isinstance(declared, TensorType) or not compatible(found, declared):
        return declared
    if found.shape is None or declared.is_static:
        return declared
    if declared.shape is None:
        return TensorType(found.shape, declared.element)
    return TensorType(tuple(m if n is None else n for n, m in zip(found.shape, declared.shape)), declared.element)
