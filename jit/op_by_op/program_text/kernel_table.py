"""The table of kernels: the operands and results of each, and its required attributes.

Kernels with fixed types are one line of text each. Kernels whose types depend on the use (calls, control flow, `executeop`) are
in `OPEN`; `verify.py` has their rules.
"""
from __future__ import annotations

import re

from ....runtime.records import dataclass
from .kernel_program import SCALARS

DENSE_TYPES = (*SCALARS, "f16", "bf16")
"""Element types of the tensors that `corert.create_dense_tensor.<type>` makes."""
ATTRIBUTE_TYPES = ("bool", *SCALARS[1:], "str", "dense", "aggregate", "shape", "dtype")
"""Types of the attributes that `corert.op_attrs_set.<type>` sets."""
ARRAY_TYPES = ("bool", *SCALARS[1:], "str", "shape", "dtype")

FIXED = """
tfrt.new.chain () -> !tfrt.chain
corert.create_null_op_handler () -> !corert.ophandler
corert.create_cpu_op_handler (!corert.ophandler) -> !corert.ophandler
corert.create_logging_op_handler (!corert.ophandler) -> !corert.ophandler
corert.register_op_handler (!corert.ophandler) -> !tfrt.chain | name string
corert.get_op_handler (!tfrt.chain) -> !corert.ophandler | name string
corert.const_dense_tensor () -> !corert.tensorhandle | value dense
corert.const_string_tensor () -> !corert.tensorhandle | shape integers, value strings
corert.print_tensorhandle (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
corert.tensorhandle_to_shape (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
corert.tensorhandle_to_ht (!corert.tensorhandle, !tfrt.chain) -> !t.tensor
corert.ht_to_tensorhandle (!t.tensor, !tfrt.chain) -> !corert.tensorhandle
corert.tensorhandle_to_int32 (!corert.tensorhandle) -> i32
corert.create_op_attrs () -> !corert.opattrs
corert.make_composite_op () -> !corert.op | fn symbol
ts.build_shape () -> !ts.shape | value integers
ts.print_shape (!ts.shape, !tfrt.chain) -> !tfrt.chain
tfrt_test.corert.op_attrs_print (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
tfrt_test.corert.op_attrs_ref_print (!corert.opattrs_ref, !tfrt.chain) -> !tfrt.chain
tfrt_test.corert.op_attrs_freeze (!corert.opattrs, !tfrt.chain) -> (!corert.opattrs_ref, !tfrt.chain)
tfrt_test.error_tensorhandle () -> !corert.tensorhandle
tfrt_test.error_chain (!tfrt.chain) -> !tfrt.chain
tfrt_test.cancel (!tfrt.chain) -> (i32, !tfrt.chain)
tfrt_test.print_hello (!tfrt.chain) -> !tfrt.chain
tfrt_test.async_add.i32 (i32, i32) -> i32
tfrt_test.fail () -> i32
"""

FAMILIES = (("tfrt.constant.{0} () -> {0} | value number", SCALARS),
            ("tfrt.print.{0} ({0}, !tfrt.chain) -> !tfrt.chain", SCALARS),
            ("tfrt.add.{0} ({0}, {0}) -> {0}", SCALARS[1:]),
            ("tfrt.equal.{0} ({0}, {0}) -> i1", SCALARS),
            ("tfrt.lessequal.{0} ({0}, {0}) -> i1", SCALARS[1:]),
            ("corert.create_dense_tensor.{0} () -> !corert.tensorhandle | shape integers, value numbers", DENSE_TYPES),
            ("corert.op_attrs_set.{0} (!corert.opattrs, !tfrt.chain) -> !tfrt.chain | key string, value any", ATTRIBUTE_TYPES),
            ("corert.op_attrs_set_array.{0} (!corert.opattrs, !tfrt.chain) -> !tfrt.chain | key string, value list",
             ARRAY_TYPES))

OPEN = frozenset({"tfrt.merge.chains", "tfrt.call", "tfrt.if", "tfrt.cond", "tfrt.case", "tfrt.while", "tfrt.repeat.i32",
                  "corert.executeop", "corert.executeop.seq", "corert.cond", "corert.while", "corert.execute_crt_op"})
RETURN = "tfrt.return"


@dataclass(frozen=True, slots=True)
class KernelType:
    """Types of operands and results; `attributes` maps the required attributes to their kinds."""
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: dict[str, str]


LINE = re.compile(r"(\S+) \((.*?)\) -> \(?([^()|]*?)\)?(?: \| (.*))?")


def signature_of(line: str) -> tuple[str, KernelType]:
    match = LINE.fullmatch(line)
    assert match is not None, line
    name, operands, results, attributes = match.groups()
    pairs = dict(item.split(" ") for item in listed(attributes))
    return name, KernelType(listed(operands), listed(results), pairs)


def listed(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


SIGNATURES: dict[str, KernelType] = dict(map(signature_of, [
    *FIXED.strip().split("\n"), *(pattern.format(type) for pattern, types in FAMILIES for type in types)]))
"""Kernels whose types are always the same, by name."""


def is_known(name: str) -> bool:
    """True if there is a kernel of that name."""
    return name in SIGNATURES or name in OPEN
