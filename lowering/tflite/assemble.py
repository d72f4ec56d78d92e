"""The steps of a .tflite file and its converted partitions -> a module: a function for each signature, control flow as regions,
variables as declarations. Every subgraph is inlined where it is run.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...runtime import limits
from ...runtime.errors import Label, Problem
from ...runtime.records import dataclass
from ..dialects.tosa.control_flow import CondIf, WhileLoop
from ..dialects.tosa.data import Const
from ..dialects.tosa.variable import Variable, VariableRead, VariableWrite
from ..graph.file_position import FilePosition, shown
from ..graph.graph import STATED_SHAPE, BlockBuilder, Function, Module, Operation, Value
from ..graph.quantized import storage_type
from ..graph.types import I64, Array, TensorType, Type
from ..graph.verify import compatible
from ..rewrite.specialize import specialized
from ..text.attributes import Numbers
from .bindings import Bound, ResourceHandle, SubgraphScope, check_handles, symbol_of, tensors
from .composed_kernels import given, is_composed_kernel, write_composed_kernel
from .constants import array_of, type_of
from .counterparts import has_counterpart, write_counterpart
from .divide import Partition
from .import_plan import MAIN, ImportPlan
from .numbers import agreed, quantized_type, with_numbers
from .quantized_kernels import is_quantized_kernel, write_quantized_kernel
from .records import OperatorRecord, SignatureRecord, SubgraphRecord, TensorRecord
from .resizes import write_resize
from .settle import settle
from .splice_converted import OperatorPositions, copies, place_of, tensor_name
from .write_kernels import WRITE, write_kernel
from .write_slices import write_slice


def stated_shapes(graph: SubgraphRecord) -> tuple[Mapping[str, Numbers], ...]:
    """Return attributes of the inputs with the shapes that the file states for inputs whose first extent is dynamic."""
    stated = [graph.tensors[t].stated for t in graph.inputs]
    return tuple({STATED_SHAPE: Numbers(shape, I64)} if shape else {} for shape in stated) if any(stated) else ()


class Assembler:
    """Builder of the module. `functions` are the converted partitions."""

    def __init__(self, plan: ImportPlan, functions: Mapping[Partition, Function]) -> None:
        self.plan, self.functions, self.model = plan, functions, plan.model
        self.variables: dict[str, tuple[TensorType, FilePosition]] = {}
        self.numbers: dict[str, list[Type]] = {}
        """Types of variables at their uses, with the quantization of their integers."""
        self.initialisers: dict[int, FilePosition] = {}
        self.budget = limits.most_expanded(sum(len(f.body.operations) for f in functions.values()))

    # ---- modules and functions ---------------------------------------------------------------------------------------
    def module(self) -> Module:
        """Return the module with variables as they are before an initialiser runs: `initialised` sets their values."""
        functions = tuple(self.entry(s) for s in self.plan.entries)
        for function in functions:
            if function.name in self.variables:
                raise Problem(f"signature and variable are both called {shown(function.name)}", function.position,
                              kind="symbol", help="give the signature another name")
        return Module(functions, self.declarations(), position=self.model.position)

    def declarations(self) -> tuple[Operation, ...]:
        return tuple(Operation(Variable(symbol=symbol, type=agreed(self.numbers[symbol], type)), (), (), position=position)
                     for symbol, (type, position) in self.variables.items())

    def initialiser(self) -> Module | None:
        """Return a module whose one function writes the initial values of variables; None if there are none."""
        builder, done = BlockBuilder(), 0
        while done < len(self.initialisers):
            number, position = list(self.initialisers.items())[done]
            done += 1
            if self.model.subgraphs[number].inputs:
                raise Problem(f"subgraph {number} initialises variables and has inputs", position, kind="unsupported")
            self.run(builder, number, [], SubgraphScope(position.inside(f"subgraph {number}"), (number,)))
        body = builder.finish()
        return Module((Function(MAIN, body, ()),), self.declarations(), position=self.model.position) if done else None

    def entry(self, signature: SignatureRecord) -> Function:
        graph = self.model.subgraphs[signature.subgraph]
        here = self.model.position
        here = here.inside(f"signature {signature.key}" if self.model.signatures else f"subgraph 0 {graph.name}".rstrip())
        builder = BlockBuilder()
        try:
            arguments = [builder.argument(type_of(graph.tensors[t]), signature.inputs.get(t), here) for t in graph.inputs]
            found = self.run(builder, signature.subgraph, arguments, SubgraphScope(here, (signature.subgraph,)))
        except Problem as problem:
            raise problem.at(here) from None
        if any(isinstance(v, ResourceHandle) for v in found):
            raise Problem("an output is a variable, not a tensor", here, kind="unsupported")
        body = settle(builder.finish(*tensors(found), position=here))
        names = [signature.outputs.get(t, "") for t in graph.outputs]
        attributes = tuple({"tf_saved_model.index_path": (name,)} if name else {} for name in names)
        function = Function(signature.key, body, tuple(v.type for v in body.yields), {}, stated_shapes(graph),
                            attributes if any(names) else (), position=here)
        return with_numbers(function, graph)

    # ---- subgraphs ---------------------------------------------------------------------------------------------------
    def run(self, builder: BlockBuilder, number: int, arguments: Sequence[Bound], scope: SubgraphScope) -> list[Bound]:
        """Append the operations of a subgraph; return its outputs."""
        graph = self.model.subgraphs[number]
        if len(arguments) != len(graph.inputs):
            raise Problem(f"subgraph {number} takes {len(graph.inputs)} inputs, here it gets {len(arguments)}", scope.position,
                          kind="type")
        writer = SubgraphWriter(self, builder, graph, scope, dict(zip(graph.inputs, arguments)))
        for step in self.plan.steps[number]:
            if isinstance(step, Partition):
                writer.partition(step)
            else:
                writer.operator(step, graph.operators[step])
        try:
            return [writer.get(t) for t in graph.outputs]
        except Problem as problem:
            raise problem.at(scope.position) from None

    def spend(self, count: int, position: FilePosition) -> None:
        self.budget -= count
        if self.budget < 0:
            raise limits.expanded("subgraphs that are run in several places",
                                  "let subgraphs that run others several times do so once, or in a loop", position)

    def declare(self, symbol: str, type: TensorType, record: TensorRecord, position: FilePosition) -> None:
        """Record a use of a variable as a tensor of this type; `record` is the file's description of the tensor."""
        self.numbers.setdefault(symbol, []).append(quantized_type(type, record))
        known = self.variables.setdefault(symbol, (type, position))
        if known[0] != type and not (known[0].element == type.element and compatible(known[0], type)):
            raise Problem(f"variable {shown(symbol)} is {type} here", position, kind="variable",
                          labels=(Label(known[1], f"it is {known[0]} here"),))
        if type.is_static and not known[0].is_static:
            self.variables[symbol] = (type, known[1])


@dataclass(slots=True)
class SubgraphWriter:
    """Writer that appends one run of a subgraph to a block."""
    assembler: Assembler
    builder: BlockBuilder
    graph: SubgraphRecord
    scope: SubgraphScope
    values: dict[int, Bound] = field(default_factory=dict)

    # ---- tensors -----------------------------------------------------------------------------------------------------
    def get(self, tensor: int) -> Bound:
        found = self.values.get(tensor)
        if found is not None:
            return found
        record = self.graph.tensors[tensor] if tensor >= 0 else None
        if record is None or record.data is None:
            raise Problem("an operand is missing" if record is None else
                          f"tensor {shown(record.name)} is used, and nothing gives it a value", kind="syntax")
        values = array_of(record)
        here = self.scope.position.called(tensor_name(record))
        value = self.values[tensor] = self.builder.add(Const(values, type_of(record).element), position=here)[0]
        return value

    def value(self, tensor: int) -> Value:
        found = self.get(tensor)
        if isinstance(found, ResourceHandle):
            raise Problem(f"the variable {shown(found.symbol)} is used where a tensor is needed", kind="type")
        return found

    def handle(self, tensor: int) -> ResourceHandle:
        found = self.values.get(tensor)
        if not isinstance(found, ResourceHandle):
            raise Problem("the operand is a tensor, where a variable is needed", kind="type")
        return found

    def inside(self, index: int, operator: OperatorRecord, callee: int) -> SubgraphScope:
        return self.scope.inside(index, operator, callee, self.assembler.model.subgraphs[callee].name)

    # ---- partitions --------------------------------------------------------------------------------------------------
    def partition(self, partition: Partition) -> None:
        """Append the operations of a converted partition."""
        function = self.assembler.functions[partition]
        self.assembler.spend(len(function.body.operations), self.scope.position)
        places = OperatorPositions(self.graph, partition, self.scope.position)
        here = places.whole
        try:
            operands = [self.value(t) for t in partition.inputs]
        except Problem as problem:
            raise problem.at(here) from None
        try:
            function = fitting(function, operands)
        except Problem as problem:
            raise problem.at(here) from None
        inlined = dict(zip(function.arguments, operands))
        self.builder.operations += copies(function.body, inlined, places)
        self.values.update((t, inlined[v]) for t, v in zip(partition.outputs, function.body.yields))

    # ---- operators that this package lowers --------------------------------------------------------------------------
    def operator(self, index: int, operator: OperatorRecord) -> None:
        here = place_of(self.scope.position, index, operator)
        if operator.outputs:
            here = here.called(tensor_name(self.graph.tensors[operator.outputs[0]]))
        self.assembler.spend(1, here)
        try:
            found = self.results(index, operator, here)
            if len(found) != len(operator.outputs):
                raise Problem(f"{operator.kind} gives {len(found)} results, here it has {len(operator.outputs)}", kind="syntax")
        except Problem as problem:
            raise problem.at(here) from None
        self.values.update(zip(operator.outputs, found))

    def results(self, index: int, operator: OperatorRecord, here: FilePosition) -> Sequence[Bound]:
        inputs = operator.inputs
        match operator.kind, len(inputs):
            case "VAR_HANDLE", 0:
                return [ResourceHandle(symbol_of(operator))]
            case "CALL_ONCE", 0:
                self.assembler.initialisers.setdefault(operator.callees[0], here)
                return []
            case "READ_VARIABLE", 1:
                return [self.read(operator, here)]
            case "ASSIGN_VARIABLE", 2:
                self.write(self.handle(inputs[0]).symbol, self.value(inputs[1]), self.graph.tensors[inputs[1]], here)
                return []
            case "IF", n if n:
                return self.branch(index, operator, here)
            case "WHILE", _:
                return self.loop(index, operator, here)
            case ("CALL" | "STABLEHLO_COMPOSITE"), _:
                callee = operator.callees[0]
                scope = self.inside(index, operator, callee)
                return self.assembler.run(self.builder, callee, [self.get(t) for t in inputs], scope)
            case ("SLICE" | "STRIDED_SLICE"), _:
                begin = None if self.graph.tensors[inputs[1]].data is not None else self.value(inputs[1])
                return [write_slice(self.builder, self.graph, operator, self.value(inputs[0]), begin, here)]
            case ("RESIZE_NEAREST_NEIGHBOR" | "RESIZE_BILINEAR"), _:
                return [write_resize(self.builder, self.graph, operator, self.value(inputs[0]), here)]
            case _ if has_counterpart(self.graph, operator):
                return write_counterpart(self.builder, self.graph, operator, [self.value(t) for t in inputs], here)
            case _ if is_composed_kernel(self.graph, operator):
                operands = [self.value(t) for t in given(operator)]
                return write_composed_kernel(self.builder, self.graph, operator, operands, here)
            case _ if is_quantized_kernel(self.graph, operator):
                return [write_quantized_kernel(self.builder, self.graph, operator, [self.value(t) for t in inputs], here)]
            case kind, _ if kind in WRITE:
                return [write_kernel(self.builder, self.graph, operator, [self.value(t) for t in inputs], here)]
        raise Problem(f"{operator.kind} with {len(inputs)} operands", kind="syntax")

    def read(self, operator: OperatorRecord, here: FilePosition) -> Value:
        symbol, record = self.handle(operator.inputs[0]).symbol, self.graph.tensors[operator.outputs[0]]
        self.assembler.declare(symbol, type_of(record), record, here)
        return self.builder.add(VariableRead(symbol=symbol, type=self.assembler.variables[symbol][0]), position=here)[0]

    def write(self, symbol: str, value: Value, record: TensorRecord, here: FilePosition) -> None:
        self.assembler.declare(symbol, storage_type(value.tensor), record, here)
        self.builder.add(VariableWrite(symbol=symbol), value, position=here)

    def branch(self, index: int, operator: OperatorRecord, here: FilePosition) -> Sequence[Bound]:
        """Emit COND_IF: the branches see the operands as enclosing values."""
        condition, arguments = self.value(operator.inputs[0]), [self.get(t) for t in operator.inputs[1:]]
        regions, sides = [], []
        for callee in operator.callees:
            scope, inner = self.inside(index, operator, callee), BlockBuilder()
            outputs = self.assembler.run(inner, callee, arguments, scope)
            sides.append(outputs)
            regions.append(inner.finish(*tensors(outputs), position=here))
        check_handles(*sides)
        results = iter(self.builder.add(CondIf(), condition, regions=regions, position=here))
        return [v if isinstance(v, ResourceHandle) else next(results) for v in sides[0]]

    def loop(self, index: int, operator: OperatorRecord, here: FilePosition) -> Sequence[Bound]:
        """Emit WHILE_LOOP: variables and values that the body forwards unchanged are not carried."""
        arguments = [self.get(t) for t in operator.inputs]
        body = self.assembler.model.subgraphs[operator.callees[1]]
        if not len(body.inputs) == len(body.outputs) == len(arguments):
            raise Problem(f"the body takes {len(body.inputs)} and gives {len(body.outputs)} values, the loop has "
                          f"{len(arguments)}", kind="type")
        carried = [i for i, v in enumerate(arguments) if isinstance(v, Value) and body.inputs[i] != body.outputs[i]]
        (test, verdict), (body_builder, outputs) = (
            self.callee_block(index, operator, c, arguments, carried, here) for c in operator.callees)
        check_handles(arguments, outputs)
        regions = (test.finish(*tensors(verdict), position=here),
                   body_builder.finish(*tensors([outputs[i] for i in carried]), position=here))
        results, operands = list(arguments), tensors([arguments[i] for i in carried])
        for i, value in zip(carried, self.builder.add(WhileLoop(), *operands, regions=regions, position=here)):
            results[i] = value
        return results

    def callee_block(self, index: int, operator: OperatorRecord, callee: int, arguments: Sequence[Bound],
                     carried: Sequence[int], here: FilePosition) -> tuple[BlockBuilder, Sequence[Bound]]:
        """Return one subgraph of a loop in a block of its own, and its outputs."""
        builder, inside = BlockBuilder(), list(arguments)
        for i, value in zip(carried, tensors([arguments[i] for i in carried])):
            inside[i] = builder.argument(value.type, f"turn{i}", here)
        scope = self.inside(index, operator, callee)
        return builder, self.assembler.run(builder, callee, inside, scope)


def fitting(function: Function, operands: Sequence[Value]) -> Function:
    """Return the function of a partition for these operands: files of older writers do not distinguish scalars from tensors of
    unknown rank, and the converter takes both for the latter."""
    if all(a.type == o.type for a, o in zip(function.arguments, operands)):
        return function
    return specialized(function, [o.tensor for o in operands])


def assemble(plan: ImportPlan, functions: Mapping[Partition, Function]) -> tuple[Module, Module | None]:
    """Return the module, and the one that initialises its variables, if any variable has an initial value."""
    assembler = Assembler(plan, functions)
    module = assembler.module()
    initialiser = assembler.initialiser()
    return replace(module, declarations=assembler.declarations()), initialiser


def initialised(module: Module, initial: Mapping[str, Array | None]) -> Module:
    """Return the module with the initial values of its variables."""
    declarations = tuple(replace(o, op=replace(o.op, initial=initial.get(o.op.symbol)))  # type: ignore[attr-defined, type-var]
                         for o in module.declarations)
    return replace(module, declarations=declarations)
