"""The texts that these tests read: TensorFlow's own, those of the design document, and malformed ones.

A malformed text begins with `// ===== its name` and a comment that is the message of its problem, whose place is marked by «.
What is no whole function is the inside of a graph.
"""
from __future__ import annotations

import pathlib
import re
from functools import cache
from typing import NamedTuple

from tosaic.lowering.graph.graph import Module
from tosaic.lowering.text.reader import read_module

DATA = pathlib.Path(__file__).parents[1] / "data"
CORPUS = sorted((DATA / "tensorflow").glob("*/*.mlir"))
DOCUMENT = DATA / "tensorflow_document"
MALFORMED = sorted((pathlib.Path(__file__).parent / "malformed").glob("*.txt"))
ARGUMENTS = ("%x: tensor<3xf32>, %p: tensor<i1>, %i: tensor<i32>, %mask: tensor<3xi1>, %w: tensor<4xf32>, %other: !other.type, "
             "%h: tensor<!tf_type.resource<tensor<3xf32>>>, %k: tensor<!tf_type.resource<tensor<i32>>>")
MARK = "«"


class Case(NamedTuple):
    """A malformed text, what its problem says, and where that is."""
    name: str
    text: str
    message: str
    line: int
    column: int


@cache
def module_of(path: pathlib.Path) -> Module:
    """The module of a text, which nothing changes."""
    return read_module(path.read_text("utf-8"), path.name)


def name_of(path: pathlib.Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def in_graph(body: str) -> str:
    """A function with a graph of these operations that fetches its first argument."""
    return (f"func.func @f({ARGUMENTS}) -> tensor<3xf32> {{\n  %0 = tf_executor.graph {{\n{body}\n"
            "    tf_executor.fetch %x : tensor<3xf32>\n  }\n  return %0 : tensor<3xf32>\n}\n")


def malformed() -> list[Case]:
    """Every malformed text."""
    return [case_of(part) for path in MALFORMED for part in path.read_text("utf-8").split("// ===== ")[1:]]


def case_of(part: str) -> Case:
    name, comment, text = part.split("\n", 2)
    if not re.match(r"func|«?\"tf_saved", text):
        text = in_graph(text.rstrip())
    at = text.index(MARK)
    return Case(name, text.replace(MARK, ""), comment.removeprefix("// "), text.count("\n", 0, at) + 1,
                at - text.rfind("\n", 0, at))
