"""A check of the operators of a .tflite one by one: the file is loaded again with the results of all its operators as outputs,
and LiteRT's reference kernels run each operator, extracted as a file of its own, on its operands from there.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....runtime.errors import Problem
from ...source import OperatorVerdict, first_line

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array
    from ....lowering.tflite.records import ModelRecord, OperatorRecord, SubgraphRecord

Load: TypeAlias = "Callable[[bytes, dict[str, tuple[int, ...]]], Module]"
"""Loads the bytes of a file, for inputs of these shapes."""
RESOURCE = 13
"""TensorType.RESOURCE of the schema."""


def compare_operators(data: bytes, entry: str, arrays: Sequence[Array], graph_of: Load) -> OperatorVerdict:
    """Return the number of operators of an entry that were compared on inputs, and the first that is wrong on its operands."""
    from ....lowering.tflite.decode import decode
    model = decode(data)
    number = next((s.subgraph for s in model.signatures if s.key == entry), 0)
    graph = model.subgraphs[number]
    if kinds := sorted({o.kind for o in graph.operators if o.callees}):
        return OperatorVerdict(0, reason=f"it has {', '.join(kinds)}, whose subgraphs are not cut")
    try:
        found = observed(data, model, number, arrays, graph_of)
        run = kernels(data, model, number)
    except (Problem, RuntimeError, ValueError) as error:
        return OperatorVerdict(0, reason=first_line(error))
    return compared(graph, found, run)


def compared(graph: SubgraphRecord, found: Mapping[int, Array], run: Any) -> OperatorVerdict:
    """Compare each operator with its kernel."""
    from ....lowering.tflite.divide import partition_of
    count, absent = 0, Counter[str]()
    for index, operator in enumerate(graph.operators):
        inputs = partition_of(graph, 0, [index]).inputs
        if not operator.outputs or any(t not in found for t in (*inputs, *operator.outputs)):
            absent[operator.kind] += 1
            continue
        operands = [found[t] for t in inputs]
        try:
            own = run(index, operands)
        except (RuntimeError, ValueError):
            absent[operator.kind] += 1
            continue
        count += 1
        for place, (tensor, expected) in enumerate(zip(operator.outputs, own)):
            if is_wrong(graph, operator, place, found[tensor], expected, operands, lambda given: run(index, given)):
                return OperatorVerdict(count, f"operator {index} {operator.kind}, which gives {graph.tensors[tensor].name}",
                                       absent)
    return OperatorVerdict(count, None, absent)


def is_wrong(graph: SubgraphRecord, operator: OperatorRecord, place: int, actual: Array, expected: Array,
             operands: Sequence[Array], compute: Any) -> bool:
    """True if a result differs from the kernel's by more than its bound: one step for quantized integers, zero for others."""
    from ...tools.check.operator_bounds import wrong_elements
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return True
    steps = int(graph.tensors[operator.outputs[place]].scale is not None)
    return bool(wrong_elements(operator.kind, actual, expected, place, operands, compute, steps).any())


def is_tensor(graph: SubgraphRecord, tensor: int) -> bool:
    return tensor >= 0 and graph.tensors[tensor].type != RESOURCE


def observed(data: bytes, model: ModelRecord, number: int, arrays: Sequence[Array], graph_of: Load) -> dict[int, Array]:
    """Return the values of a subgraph's tensors in its TOSA graph, by their numbers."""
    from ....lowering.tflite.cut import cut
    from ....lowering.tflite.divide import Partition
    from ....runtime.interpreter import Interpreter
    from ...stages import prepared
    graph = model.subgraphs[number]
    results = tuple(dict.fromkeys(t for o in graph.operators for t in o.outputs if is_tensor(graph, t)))
    whole = Partition(number, tuple(range(len(graph.operators))), graph.inputs, results)
    module = prepared(graph_of(cut(data, model, [whole]), {f"in{n}": a.shape for n, a in enumerate(arrays)}))
    found = Interpreter(module)(*arrays)
    return {**dict(zip(graph.inputs, map(np.asarray, arrays))), **dict(zip(results, found, strict=True))}


def kernels(data: bytes, model: ModelRecord, number: int) -> Any:
    """Return LiteRT's kernel of each operator, as a function of the operator's index and its operands that are no constants."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    from ....lowering.tflite.cut import cut, partition_name
    from ....lowering.tflite.divide import Partition, partition_of
    graph = model.subgraphs[number]
    alone = list(parts_of(graph))
    made = cut(data, model, [Partition(number, (i,), partition_of(graph, number, [i]).inputs, graph.operators[i].outputs)
                             for i in alone])
    interpreter = Interpreter(model_content=made, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    runners: dict[int, Any] = {}

    def run(index: int, operands: Sequence[Array]) -> list[Array]:
        if index not in runners:
            runners[index] = interpreter.get_signature_runner(partition_name(alone.index(index)))
        found = runners[index](**{f"in{n}": a for n, a in enumerate(operands)})
        return [np.asarray(found[f"out{n}"]) for n in range(len(graph.operators[index].outputs))]
    return run


def parts_of(graph: SubgraphRecord) -> Iterator[int]:
    """Yield the operators that can be extracted: those whose operands and results are all tensors."""
    for index, operator in enumerate(graph.operators):
        tensors = [t for t in (*operator.inputs, *operator.outputs) if t >= 0]
        if operator.outputs and all(is_tensor(graph, t) for t in tensors):
            yield index
