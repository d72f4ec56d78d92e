"""The bytes of a .tflite file -> records. Every error in a file is a Problem with its position.

Nothing is trusted: `flatbuffer.bounds_checked` checks offsets and lengths; this module checks the numbers of tensors, buffers,
operator codes and subgraphs, and that each tensor has one origin that precedes its uses.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..flatbuffer.bounds_checked import Binary, FlatbufferTable
from ..graph.file_position import FilePosition, shown, whole
from ..graph.types import Array
from .records import ModelRecord, OperatorRecord, Options, SignatureRecord, SubgraphRecord, TensorRecord
from .schema import (
    BUFFER,
    BUILTINS,
    CALLEES,
    CODE,
    CUSTOM,
    EXTERNAL_BUFFERS,
    IDENTIFIER,
    MODEL,
    NAMED,
    OPERATOR,
    OPTION_TYPES,
    QUANTIZATION,
    SIGNATURE,
    SLOTS,
    SUBGRAPH,
    TENSOR,
)

DAMAGED = "the file is damaged, or it is no flatbuffer of TensorFlow Lite"


def decode(data: bytes, name: str = "<bytes>") -> ModelRecord:
    """Return the records of a file; raise a Problem with its position for any error."""
    position = whole(name)
    if data[4:8] != IDENTIFIER:
        raise Problem("this is no .tflite file: the bytes from 4 on are not TFL3", position, kind="file")
    try:
        binary = Binary(data)
        return Decoder(binary, binary.root(), position).model()
    except Problem as problem:
        problem.help = DAMAGED if problem.kind == "syntax" else problem.help
        raise problem.at(position) from None


def wrong(message: str) -> NoReturn:
    raise Problem(message, kind="syntax")


@dataclass(slots=True)
class Decoder:
    """Decoder of one file. Buffers and kinds of operators come first, because tensors and operators refer to them by number."""
    binary: Binary
    root: FlatbufferTable
    position: FilePosition
    buffers: tuple[tuple[Array | None, int, int, int], ...] = ()
    kinds: tuple[str, ...] = ()

    def model(self) -> ModelRecord:
        if self.root.place(EXTERNAL_BUFFERS, 4, "external_buffers"):
            raise Problem("the model has its constants in other files", kind="unsupported",
                          help="convert it again, with its constants inside")
        self.buffers = self.root.tables(MODEL["buffers"], "the buffers", buffer)
        self.kinds = self.root.tables(MODEL["operator_codes"], "the operator codes", kind)
        graphs = self.root.tables(MODEL["subgraphs"], "the subgraphs", self.subgraph)
        if not graphs:
            wrong("the file has no subgraphs")
        check_callees(graphs)
        signatures = self.root.tables(MODEL["signature_defs"], "the signatures", lambda i, t: self.signature(i, t, graphs))
        check_keys(signatures)
        outside = tuple((i, start, size) for i, (_, start, size, _) in enumerate(self.buffers) if start)
        return ModelRecord(graphs, signatures, self.root.scalar(MODEL["version"], "uint32", "version"),
                           self.vector(self.root, MODEL["operator_codes"]), self.vector(self.root, MODEL["buffers"]), outside,
                           tuple(table for _, _, _, table in self.buffers), self.position)

    def vector(self, table: FlatbufferTable, slot: int) -> int:
        """Return the offset of a vector of tables, which begins with its length; 0 if there is none."""
        place = table.place(slot, 4, "a vector")
        return self.binary.vector(place, 4, "a vector")[0] - 4 if place else 0

    # ---- subgraphs ---------------------------------------------------------------------------------------------------
    def subgraph(self, number: int, table: FlatbufferTable) -> SubgraphRecord:
        name = table.text(SUBGRAPH["name"], f"the name of subgraph {number}")
        here = self.position.inside(f"subgraph {number} {name}".rstrip())
        try:
            tensors = table.tables(SUBGRAPH["tensors"], "the tensors", self.tensor)
            operators = table.tables(SUBGRAPH["operators"], "the operators", self.operator)
            inputs, outputs = (numbers(table, SUBGRAPH[side], f"the {side}") for side in ("inputs", "outputs"))
            record = SubgraphRecord(name, tensors, inputs, outputs, operators, self.vector(table, SUBGRAPH["tensors"]), here)
            check_origins(record)
        except Problem as problem:
            raise problem.at(here) from None
        return record

    def tensor(self, number: int, table: FlatbufferTable) -> TensorRecord:
        what = f"tensor {number}"
        shape = numbers(table, TENSOR["shape"], f"the shape of {what}")
        open_shape = numbers(table, TENSOR["shape_signature"], f"the shape of {what}")
        if any(n < 0 for n in shape) or (open_shape and len(open_shape) != len(shape)):
            wrong(f"the shape of {what} is {list(shape)}, with open extents {list(open_shape)}")
        index = table.scalar(TENSOR["buffer"], "uint32", f"the buffer of {what}")
        if index and index >= len(self.buffers):
            wrong(f"{what} has buffer {index}, the file has {len(self.buffers)}")
        data = self.buffers[index][0] if index else None
        extents = tuple(None if i < len(open_shape) and open_shape[i] < 0 else n for i, n in enumerate(shape))
        scales, zero_points, axis = quantization_vectors(table.table(TENSOR["quantization"], f"how {what} is quantized"))
        scale, zero_point = quantization(scales, zero_points)
        return TensorRecord(table.text(TENSOR["name"], f"the name of {what}"), extents if data is None else shape,
                            table.scalar(TENSOR["type"], "ubyte", f"the type of {what}"), data,
                            bool(table.scalar(TENSOR["is_variable"], "bool", what)), scale, zero_point,
                            scales if len(scales) else None, zero_points if len(zero_points) else None, axis,
                            shape if extents[:1] == (None,) and None not in extents[1:] and min(shape) > 0 else ())

    def operator(self, number: int, table: FlatbufferTable) -> OperatorRecord:
        what = f"operator {number}"
        index = table.scalar(OPERATOR["opcode_index"], "uint32", f"the code of {what}")
        if index >= len(self.kinds):
            wrong(f"{what} has operator code {index}, the file has {len(self.kinds)}")
        name = self.kinds[index]
        inputs, outputs = (numbers(table, OPERATOR[side], f"the {side} of {what}") for side in ("inputs", "outputs"))
        options = self.options(table, name, f"the options of {what} {name}")
        callees = tuple(options.scalar(slot, "int32", "a subgraph") if options else 0 for slot in CALLEES.get(name, ()))
        return OperatorRecord(name, inputs, outputs, table.start, callees, read_options(name, options))

    def options(self, table: FlatbufferTable, name: str, what: str) -> FlatbufferTable | None:
        """Return the table of options, for the operators whose options matter here."""
        if name not in OPTION_TYPES:
            return None
        which = "options_2" if name.startswith("STABLEHLO") else "options"
        found = table.scalar(OPERATOR[f"{which}_type"], "ubyte", what)
        if found not in (0, OPTION_TYPES[name]):
            wrong(f"{what} are of type {found}, not {OPTION_TYPES[name]}")
        return table.table(OPERATOR[which], what) if found else None

    def signature(self, number: int, table: FlatbufferTable, graphs: Sequence[SubgraphRecord]) -> SignatureRecord:
        key = table.text(SIGNATURE["key"], f"the name of signature {number}")
        index = table.scalar(SIGNATURE["subgraph"], "uint32", f"the subgraph of signature {number}")
        if index >= len(graphs):
            wrong(f"signature {shown(key)} names subgraph {index}, the file has {len(graphs)}")
        sides = []
        for side, tensors in (("inputs", graphs[index].inputs), ("outputs", graphs[index].outputs)):
            pairs = table.tables(SIGNATURE[side], f"the {side} of signature {number}", named)
            for tensor, name in pairs:
                if tensor not in tensors:
                    wrong(f"signature {shown(key)} names tensor {tensor} {shown(name)}, which is none of the {side}")
            sides.append(dict(pairs))
        return SignatureRecord(key, index, *sides)


def buffer(number: int, table: FlatbufferTable) -> tuple[Array | None, int, int, int]:
    """Return a buffer's bytes, None if it is empty; their offset and number if they are stored after the flatbuffer (else 0);
    and the offset of the table."""
    what = f"the data of buffer {number}"
    start, size = (table.scalar(BUFFER[name], "uint64", what) for name in ("offset", "size"))
    if start > 1:
        return table.binary.outside(start, size, what), start, size, table.start
    data = table.array(BUFFER["data"], "ubyte", what)
    return (data if data is not None and data.size else None), 0, 0, table.start


def kind(number: int, table: FlatbufferTable) -> str:
    """Return the name of an operator code; the own name of a custom operator distinguishes it."""
    what = f"operator code {number}"
    code = max(table.scalar(CODE["deprecated_builtin_code"], "ubyte", what), table.scalar(CODE["builtin_code"], "int32", what))
    if code == CUSTOM:
        return f"CUSTOM {table.text(CODE['custom_code'], what)}".rstrip()
    return BUILTINS[code] if code < len(BUILTINS) else f"BUILTIN {code}"


def named(number: int, table: FlatbufferTable) -> tuple[int, str]:
    """Return a tensor of a signature and its name."""
    return table.scalar(NAMED["tensor"], "uint32", "a tensor"), table.text(NAMED["name"], "the name of a tensor")


def numbers(table: FlatbufferTable, slot: int, what: str) -> tuple[int, ...]:
    found = table.array(slot, "int32", what)
    return () if found is None else tuple(found.tolist())


def quantization_vectors(table: FlatbufferTable | None) -> tuple[Array, Array, int]:
    """Return scales and zero points, and the axis along which they differ."""
    if table is None:
        return np.empty(0, np.float32), np.empty(0, np.int64), 0
    return (vector_of(table, QUANTIZATION["scale"], np.dtype("<f4"), "a scale"),
            vector_of(table, QUANTIZATION["zero_point"], np.dtype("<i8"), "a zero point"),
            table.scalar(QUANTIZATION["axis"], "int32", "a quantized axis"))


def quantization(scales: Array, points: Array) -> tuple[np.float32 | None, int]:
    """Return the one scale and zero point of a tensor; no scale if there are several, or an invalid one."""
    if len(scales) != 1 or len(points) > 1 or not np.isfinite(scales[0]) or scales[0] <= 0:
        return None, 0
    point = int(points[0]) if len(points) else 0
    return (np.float32(scales[0]), point) if -(1 << 15) <= point < 1 << 16 else (None, 0)


def vector_of(table: FlatbufferTable, slot: int, dtype: np.dtype[Any], what: str) -> Array:
    place = table.place(slot, 4, what)
    if not place:
        return np.empty(0, dtype)
    start, count = table.binary.vector(place, dtype.itemsize, what)
    return np.frombuffer(table.binary.data, dtype, count, start)


def read_options(name: str, table: FlatbufferTable | None) -> Options:
    return {key: option(table, slot, kind, key) for key, (slot, kind) in SLOTS.get(name, {}).items()}


def option(table: FlatbufferTable | None, slot: int, kind: str, what: str) -> int | float | str:
    match kind:
        case "text":
            return table.text(slot, what) if table else ""
        case "float":
            return float(np.uint32(table.scalar(slot, "uint32", what) if table else 0).view(np.float32))
    return table.scalar(slot, kind, what) if table else 0


# ---- consistency of records ------------------------------------------------------------------------------------------
def check_origins(graph: SubgraphRecord) -> None:
    """Check that each tensor is an input, a constant or one operator's output, and is defined before its uses."""
    count, known = len(graph.tensors), set(graph.inputs)
    if len(known) != len(graph.inputs):
        wrong("a tensor is an input twice")
    for number in (*graph.inputs, *graph.outputs):
        if not 0 <= number < count:
            wrong(f"an input or output is tensor {number}, the subgraph has {count}")
    made = {t for o in graph.operators for t in o.outputs}
    for number, operator in enumerate(graph.operators):
        try:
            for tensor in operator.inputs:
                if not -1 <= tensor < count or (tensor in made and tensor not in known):
                    wrong(f"tensor {tensor} is used before it is there")
            for tensor in operator.outputs:
                if not 0 <= tensor < count or tensor in known or graph.tensors[tensor].data is not None:
                    wrong(f"tensor {tensor} cannot be an output: it is there already, or there is none")
                known.add(tensor)
        except Problem as problem:
            raise problem.at(graph.place(number)) from None


def check_callees(graphs: Sequence[SubgraphRecord]) -> None:
    for graph in graphs:
        for number, operator in enumerate(graph.operators):
            for callee in operator.callees:
                if not 0 <= callee < len(graphs):
                    raise Problem(f"{operator.kind} names subgraph {callee}, the file has {len(graphs)}", graph.place(number),
                                  kind="syntax")


def check_keys(signatures: Sequence[SignatureRecord]) -> None:
    keys = [s.key for s in signatures]
    for key in keys:
        if keys.count(key) > 1:
            wrong(f"two signatures are called {shown(key)}")
