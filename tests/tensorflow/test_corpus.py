"""What TensorFlow 2.21 prints is read, is sound, and prints as text that reads back to an equal graph."""
from __future__ import annotations

import collections
import pathlib
import re

import numpy as np
import pytest
from tosaic.lowering.dialects.tf.operator import TensorFlowOp
from tosaic.lowering.dialects.tf_executor.operators import ExecutorOp, Graph
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module

from ..text.equality import equal_modules
from .cases import CORPUS, module_of, name_of

REAL = re.compile(r"(?<![\w.])-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?(?![\w.])")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", CORPUS, ids=name_of)
def test_a_text_of_tensorflow_reads_and_prints_to_an_equal_graph(path: pathlib.Path) -> None:
    module = module_of(path)
    verify(module)
    text = print_module(module)
    again = read_module(text)
    verify(again)
    assert equal_modules(module, again)
    assert print_module(again) == text


@pytest.mark.parametrize("path", [p for p in CORPUS if p.stem != "coarse"], ids=name_of)
def test_a_text_prints_as_tensorflow_prints_it(path: pathlib.Path) -> None:
    assert without_style(print_module(module_of(path))) == without_style(path.read_text())


def without_style(text: str) -> list[str]:
    """The words of a text; numbers by their value, and without the type that a list's numbers have anyway."""
    return REAL.sub(lambda m: str(np.float32(m.group())), text).replace(" : i64", "").split()


def operations(module: Module) -> collections.Counter[str]:
    return collections.Counter(o.op.name or getattr(o.op, "spelling", "") for f in module.functions for o in f.body.walk())


@pytest.mark.parametrize("path", CORPUS, ids=name_of)
def test_every_operation_of_a_text_is_in_its_graph(path: pathlib.Path) -> None:
    text = path.read_text("utf-8")
    found = operations(module_of(path))
    for name in ("tf_executor.graph", "tf_executor.island", "tf_executor.Switch", "tf_executor.Merge", "tf_executor.Enter",
                 "tf_executor.Exit", "tf_executor.NextIteration.Source", "tf_executor.NextIteration.Sink",
                 "tf_executor.ControlTrigger", "tf_executor._SwitchN", "tf_executor.LoopCond"):
        assert found[name] == len(re.findall(rf"{re.escape(name)}\b", text)), name
    for name, count in collections.Counter(re.findall(r'"(tf\.\w+)"\(', text)).items():
        assert found[name] == (0 if name == "tf.Yield" else count), name


@pytest.mark.parametrize("path", CORPUS, ids=name_of)
def test_every_operation_is_of_a_class_of_its_dialect_and_has_its_position(path: pathlib.Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    for function in module_of(path).functions:
        for operation in function.body.walk():
            name = operation.op.name or operation.op.spelling  # type: ignore[attr-defined]
            assert isinstance(operation.op, ExecutorOp if name.startswith("tf_executor.") else TensorFlowOp)
            position = operation.position
            assert position is not None
            assert lines[position.line - 1][position.column - 1:].lstrip('"').startswith(name)


def test_the_corpus_has_all_forms_of_43_cases() -> None:
    assert len({p.parent for p in CORPUS}) == 43
    forms = collections.Counter(p.stem for p in CORPUS)
    assert (forms["executor"], forms["functional"], forms["regions"], forms["coarse"]) == (43, 36, 36, 19)


def test_the_graphs_of_version_one_have_what_the_executor_alone_knows() -> None:
    found = collections.Counter[str]()
    for path in CORPUS:
        if path.stem == "executor":
            found += operations(module_of(path))
    assert {name: count for name, count in found.items() if name.startswith("tf_executor.")} == {
        "tf_executor.graph": found[Graph.name], "tf_executor.island": found["tf_executor.island"], "tf_executor.Switch": 34,
        "tf_executor.Merge": 24, "tf_executor.Enter": 19, "tf_executor.Exit": 8, "tf_executor.LoopCond": 7,
        "tf_executor.NextIteration.Source": 12, "tf_executor.NextIteration.Sink": 12, "tf_executor.ControlTrigger": 1,
        "tf_executor._SwitchN": 1}
