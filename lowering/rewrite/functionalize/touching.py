"""Operations that read a variable or change state that outlives the graph: they must stay in order."""
from __future__ import annotations

from ...dialects.tf.effects import has_effect
from ...dialects.tf.operator import is_tensorflow
from ...graph.foreign import callees, find, spelling
from ...graph.graph import Block, Module, Operation

READS = ("tf.ReadVariableOp", "tf.ResourceGather")


class Touching:
    """The operations and functions of a module that touch such state."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[str, bool] = {}

    def block(self, block: Block) -> bool:
        """True if one of the block's operations touches the state, or a function that one of them calls does."""
        return any(map(self.operation, block.walk()))

    def operation(self, operation: Operation) -> bool:
        """True if the operation itself touches the state; the operations in its regions are not counted."""
        if not operation.op.foreign:
            return False
        called = [f for names in callees(operation).values() for f in names]
        callee = find(operation, "callee")
        called += [] if callee is None else [str(callee.path[-1])]
        if called:
            return any(map(self.function, called))
        regions = is_tensorflow(operation, "tf.IfRegion", "tf.WhileRegion", "tf.CaseRegion")
        return spelling(operation) in READS or (has_effect(operation) and not regions)

    def function(self, name: str) -> bool:
        if name not in self.functions:
            self.functions[name] = False  # while it is being looked at, for functions that call themselves
            self.functions[name] = self.block(self.module.function(name).body)
        return self.functions[name]
