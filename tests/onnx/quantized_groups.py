"""A quantized network operator by operator: what lies between its QuantizeLinear nodes, each group run on what ONNX Runtime
gives for the groups before it. Networks whose roundings add up, where ONNX Runtime with its rewrites and without differs from
itself by steps, are judged so: a group is within a step of either, or wrong.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes between integers: what they read and the integers that they make."""
    inputs: tuple[str, ...]
    output: str


def groups_of(graph: Any) -> Iterator[Group]:
    """What is in front of each QuantizeLinear, back to the integers, inputs and constants that it reads."""
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type != "QuantizeLinear":
            continue
        inputs: dict[str, None] = {}
        todo, seen = list(node.input), set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            maker = makers.get(name)
            if maker is not None and maker.op_type != "QuantizeLinear":
                todo.extend(maker.input)
            elif maker is not None or name in {i.name for i in graph.input}:
                inputs[name] = None
        if inputs:
            yield Group(tuple(inputs), node.output[0])


def worst_group(path: str, calls: Sequence[Arrays], folder: Path) -> float:
    """The most steps that a group of a file is off ONNX Runtime, with its rewrites or without, whichever is nearer."""
    import onnx
    import onnxruntime
    import tosaic
    from exports import runtime_session
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    groups = list(groups_of(model.graph))
    known = {v.name: v for v in (*model.graph.value_info, *model.graph.input)}
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend(known[name] for name in dict.fromkeys(g.output for g in groups))
    onnx.save(whole, folder / "whole.onnx")
    names = [o.name for o in whole.graph.output]
    session: onnxruntime.InferenceSession = runtime_session(str(folder / "whole.onnx"), rewrites=False)
    values = [call | dict(zip(names, session.run(names, call), strict=True)) for call in calls]
    extractor, worst = onnx.utils.Extractor(model), 0.0
    for group in groups:
        part = str(folder / "group.onnx")
        onnx.save(extractor.extract_model(list(group.inputs), [group.output]), part)
        judges = runtime_session(part), runtime_session(part, rewrites=False)
        own = tosaic.onnx.InferenceSession(part)
        for call in values:
            given = {name: call[name] for name in group.inputs}
            found = own.run(None, given)[0].astype(int)
            worst = max(worst, min(float(np.abs(found - j.run(None, given)[0].astype(int)).max(initial=0)) for j in judges))
    return worst
