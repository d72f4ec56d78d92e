"""`python tests/tensorflow/write_definitions.py < NAMES > lowering/dialects/tf/definitions.json`, where TensorFlow is
installed: its registry's definitions of the operators of these names (one `tf.X` a line): operands, results and attributes.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from tensorflow.core.framework import attr_value_pb2, op_def_pb2, types_pb2
from tensorflow.python.framework import op_def_registry

Definition = dict[str, Any]


def type_name(number: int) -> str:
    return str(types_pb2.DataType.Name(number).removeprefix("DT_").lower())


def argument(found: op_def_pb2.OpDef.ArgDef) -> str:
    """`T`, `N*T`, `*Tlist` or `=float`."""
    if found.type_list_attr:
        return f"*{found.type_list_attr}"
    element = found.type_attr or f"={type_name(found.type)}"
    return f"{found.number_attr}*{element}" if found.number_attr else element


def default(kind: str, value: attr_value_pb2.AttrValue) -> Any:
    """What an attribute is where it is left out; None for kinds that MLIR derives from types, or does not write."""
    one: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "float": float, "string": bytes.decode}
    fields = {"bool": "b", "int": "i", "float": "f", "string": "s"}
    inner = kind.removeprefix("list(").removesuffix(")")
    if inner not in one:
        return None
    if inner == kind:
        return one[inner](getattr(value, fields[inner]))
    return [one[inner](item) for item in getattr(value.list, fields[inner])]


def attribute(found: op_def_pb2.OpDef.AttrDef) -> Definition:
    """Its kind, what it may be, whether it may be left out, and what it is then."""
    made: Definition = {"kind": found.type}
    if found.HasField("default_value"):
        made["optional"] = True
        value = default(found.type, found.default_value)
        if value is not None:
            made["default"] = value
    if found.HasField("allowed_values"):
        values = found.allowed_values.list
        made["allowed"] = [type_name(t) for t in values.type] or [s.decode() for s in values.s]
    if found.has_minimum:
        made["least"] = found.minimum
    return made


def definition(name: str) -> Definition | None:
    found = op_def_registry.get(name)
    if found is None:
        return None
    return {"operands": [argument(a) for a in found.input_arg], "results": [argument(a) for a in found.output_arg],
            "attributes": {a.name: attribute(a) for a in found.attr}}


def main() -> int:
    import tensorflow as tf
    lines = []
    for name in sorted(line.strip() for line in sys.stdin):
        found = definition(name.removeprefix("tf."))
        if found is not None:
            lines.append(f"{json.dumps(name)}: {json.dumps(found)}")
    origin = f"the operator registry of TensorFlow {tf.__version__}, by tests/tensorflow/write_definitions.py"
    print("{\n" + f'"origin": {json.dumps(origin)},\n' + ",\n".join(lines) + "\n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
