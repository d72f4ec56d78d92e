"""TOSA text as MLIR's generic form, for tools of another version of MLIR than the converter's."""
from __future__ import annotations

import re

OPERATION = re.compile(r"^(\s*(?:%[\w:]+ = )?)tosa\.(\w+)\s*([^{:]*?)\s*(?:\{(.*)\}\s*)?: (\(.*)$")


def generic(line: str) -> str:
    """A line of TOSA text in MLIR's generic form, which every version reads; batches of any size have size 1."""
    line = line.replace("tensor<?x", "tensor<1x")
    if not (match := OPERATION.match(line)):
        return line
    result, name, operands, attributes, types = match.groups()
    attributes = re.sub(r"(rounding_mode|nan_mode) = ([A-Z_]+)", r"\1 = #tosa.\1<\2>", attributes or "")
    return f'{result}"tosa.{name}"({operands})' + (f" <{{{attributes}}}>" if attributes else "") + f" : {types}"


def generic_text(text: str) -> str:
    return "\n".join(map(generic, text.splitlines()))
