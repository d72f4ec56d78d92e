"""Small .tflite files for the tests: records with little to write, and their bytes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tosaic.lowering.flatbuffer.table_builder import Data, FlatbufferBuilder, Node, Scalar, TableNode
from tosaic.lowering.tflite.schema import BUILTINS, IDENTIFIER

TYPES = {"f32": 0, "f16": 1, "i32": 2, "ui8": 3, "i64": 4, "string": 5, "i1": 6, "i16": 7, "i8": 9, "resource": 13}
OPTIONS = {"ADD": 11, "MUL": 21, "SUB": 28, "STRIDED_SLICE": 32, "SLICE": 48, "CAST": 37, "FLOOR_MOD": 72, "FLOOR_DIV": 65,
           "MAXIMUM": 39, "MINIMUM": 39, "GELU": 116, "LOG_SOFTMAX": 36, "QUANTIZE": 89, "LESS": 41, "IF": 92, "WHILE": 93,
           "CALL_ONCE": 103, "CALL": 16, "VAR_HANDLE": 111, "READ_VARIABLE": 112, "ASSIGN_VARIABLE": 113, "NEG": 42, "EXP": 33,
           "SPLIT": 35, "TOPK_V2": 34, "HASHTABLE": 107, "ABS": 78, "RESIZE_NEAREST_NEIGHBOR": 74, "RESIZE_BILINEAR": 15,
           "AVERAGE_POOL_2D": 5, "MAX_POOL_2D": 5, "GATHER": 23, "SUM": 27, "MEAN": 27, "REDUCE_MAX": 27, "REDUCE_MIN": 27,
           "REDUCE_PROD": 27, "MIRROR_PAD": 77, "SPACE_TO_DEPTH": 19, "DEPTH_TO_SPACE": 94, "CUMSUM": 102, "LEAKY_RELU": 75,
           "CONV_2D": 1, "FULLY_CONNECTED": 8, "SOFTMAX": 9, "UNPACK": 64, "ONE_HOT": 61, "REVERSE_SEQUENCE": 87, "DIV": 29,
           "LOCAL_RESPONSE_NORMALIZATION": 13, "BATCH_MATMUL": 101, "CONV_3D_TRANSPOSE": 106, "L2_NORMALIZATION": 12,
           "ARG_MIN": 57, "DEPTHWISE_CONV_2D": 2, "TRANSPOSE_CONV": 49, "CONCATENATION": 10}
"""The number of an operator's table of options."""
VERSIONS = {"FULLY_CONNECTED": 4}
"""Versions of operators that kernels look at."""
Numbers = Sequence[int]


@dataclass(frozen=True)
class Tensor:
    """A tensor; `array` makes it a constant. An extent of -1 is open. Older writers do not say that the rank `is_known`.
    Several scales lie along `axis`."""
    name: str
    shape: tuple[int, ...] = ()
    type: str = "f32"
    array: np.ndarray | None = None
    scale: float | tuple[float, ...] | None = None
    zero_point: int = 0
    is_state: bool = False
    is_known: bool = True
    axis: int = 0


@dataclass(frozen=True)
class Operator:
    """An operator on tensors by name; `options` are the slots of its options."""
    kind: str
    inputs: str = ""
    outputs: str = ""
    options: Sequence[Scalar | str | None] = ()


@dataclass(frozen=True)
class Graph:
    """A subgraph; names are separated by spaces."""
    inputs: str
    outputs: str
    tensors: Sequence[Tensor]
    operators: Sequence[Operator] = ()
    name: str = "main"


@dataclass(frozen=True)
class Signature:
    """A signature of a subgraph, with names for tensors."""
    key: str
    graph: int
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


def constant(name: str, values: object, type: str = "f32") -> Tensor:
    dtype = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "i8": np.int8, "i1": np.bool_}[type]
    array = np.asarray(values, dtype)
    return Tensor(name, array.shape, type, array)


def file(*graphs: Graph, signatures: Sequence[Signature] = (), outside: bool = False) -> bytes:
    """The bytes of a file; `outside`: its constants lie behind the flatbuffer, as in files of more than two gigabytes."""
    plain = b"".join(FlatbufferBuilder().file(model(graphs, signatures, None), IDENTIFIER))
    if not outside:
        return plain
    start = len(plain) + 256  # more than the tables of such buffers take in addition
    tables = b"".join(FlatbufferBuilder().file(model(graphs, signatures, start), IDENTIFIER))
    return tables.ljust(start, b"\0") + b"".join(a.tobytes() for a in arrays(graphs))


def arrays(graphs: Sequence[Graph]) -> list[np.ndarray]:
    return [t.array for g in graphs for t in g.tensors if t.array is not None]


def model(graphs: Sequence[Graph], signatures: Sequence[Signature], start: int | None) -> TableNode:
    kinds = list(dict.fromkeys(o.kind for g in graphs for o in g.operators))
    return table(Scalar("I", 3), tuple(code(k) for k in kinds), subgraphs(graphs, kinds), None,
                 (table(), *buffers(arrays(graphs), start)), None, None,
                 tuple(signature(s, graphs[s.graph]) for s in signatures))


def buffers(data: Sequence[np.ndarray], start: int | None) -> list[TableNode]:
    if start is None:
        return [table(Data(np.frombuffer(a.tobytes(), np.uint8), True)) for a in data]
    places = np.cumsum([start, *(a.nbytes for a in data)])
    return [table(None, Scalar("Q", int(place)), Scalar("Q", a.nbytes)) for place, a in zip(places, data)]


def table(*slots: Node | Scalar | None) -> TableNode:
    return TableNode(slots)


def code(kind: str) -> TableNode:
    if kind not in BUILTINS:
        return table(Scalar("B", 32), kind, Scalar("i", 1), Scalar("i", 32))
    number = BUILTINS.index(kind)
    return table(Scalar("B", min(number, 127)), None, Scalar("i", VERSIONS.get(kind, 1)),
                 Scalar("i", number))


def subgraphs(graphs: Sequence[Graph], kinds: Sequence[str]) -> tuple[TableNode, ...]:
    found, buffer = [], 1
    for graph in graphs:
        nodes = []
        for t in graph.tensors:
            nodes.append(tensor(t, buffer if t.array is not None else 0))
            buffer += t.array is not None
        numbers = {t.name: i for i, t in enumerate(graph.tensors)}
        found.append(table(tuple(nodes), each(graph.inputs, numbers), each(graph.outputs, numbers),
                           tuple(operator(o, numbers, kinds) for o in graph.operators), graph.name))
    return tuple(found)


def each(names: str, numbers: Mapping[str, int]) -> Data:
    return Data(np.array([-1 if n == "-" else numbers[n] for n in names.split()], "<i4"))


def tensor(t: Tensor, buffer: int) -> TableNode:
    scales = np.array(t.scale, "<f4", ndmin=1)
    quantization = None if t.scale is None else table(None, None, Data(scales), Data(np.full(len(scales), t.zero_point, "<i8")),
                                                      None, None, Scalar("i", t.axis))
    is_open = any(n < 0 for n in t.shape)
    return table(Data(np.array([max(n, 1) for n in t.shape], "<i4")), Scalar("B", TYPES[t.type]), Scalar("I", buffer), t.name,
                 quantization, Scalar("B", int(t.is_state)), None, Data(np.array(t.shape, "<i4")) if is_open else None,
                 Scalar("B", int(t.is_known)))


def operator(o: Operator, numbers: Mapping[str, int], kinds: Sequence[str]) -> TableNode:
    return table(Scalar("I", kinds.index(o.kind)), each(o.inputs, numbers), each(o.outputs, numbers),
                 Scalar("B", OPTIONS[o.kind]) if o.kind in OPTIONS else None,
                 table(*o.options) if o.kind in OPTIONS else None)


def signature(s: Signature, graph: Graph) -> TableNode:
    numbers = {t.name: i for i, t in enumerate(graph.tensors)}
    sides = [tuple(table(name, Scalar("I", numbers[t])) for t, name in names.items()) for names in (s.inputs, s.outputs)]
    return table(sides[0], sides[1], s.key, None, Scalar("I", s.graph))


def ints(*values: int) -> tuple[Scalar, ...]:
    """Options that are all integers."""
    return tuple(Scalar("i", v) for v in values)
