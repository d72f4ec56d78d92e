"""Writes to variables move behind the last look at the old contents, and no further."""
from __future__ import annotations

import numpy as np
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.rewrite.postpone_writes import postpone_writes

from ..fuse.graphs import Graph, zero
from ..fuse.test_fuse import agree

STATE = TensorType((1, 4, 3), F32)


def order(module: Module) -> list[str]:
    return [o.op.name.removeprefix("tosa.") for o in module.function("main").body.operations if "const" not in o.op.name]


def streaming(read_again: bool = False, keep: bool = True) -> Module:
    """state' = [state, x] without its first row; the answer is computed from [state, x] after that has been written."""
    g = Graph()
    x = g.input(1, 1, 3)
    old = g.read("s", STATE)
    both = g.op("concat", old, x, axis=1)
    g.write("s", g.op("slice", both, g.shape(0, 1, 0), g.shape(1, 4, 3)))
    results = []
    if keep:
        results.append(g.op("tanh", g.op("reduce_sum", both, axis=1)))
    if read_again:
        results.append(g.op("negate", g.read("s", STATE), zero("float32"), zero("float32")))
    return g.module(*results, variables=[("s", STATE, np.ones((1, 4, 3), np.float32))])


def test_a_write_goes_behind_the_last_use_of_a_view_and_what_is_part_of_it() -> None:
    module = streaming()
    verify(module)
    late = postpone_writes(module)
    verify(late)
    assert order(module) == ["variable_read", "concat", "slice", "variable_write", "reduce_sum", "tanh"]
    assert order(late) == ["variable_read", "concat", "slice", "reduce_sum", "tanh", "variable_write"]


def test_a_write_stays_before_a_read() -> None:
    late = postpone_writes(streaming(read_again=True, keep=False))
    assert order(late) == ["variable_read", "concat", "slice", "variable_write", "variable_read", "negate"]
    both = order(postpone_writes(streaming(read_again=True)))
    assert both.index("variable_write") == 5 and both[6] == "variable_read"


def test_a_write_that_nothing_hinders_stays_where_it_is() -> None:
    g = Graph()
    x = g.input(1, 4, 3)
    g.write("s", g.op("exp", x))
    module = g.module(g.op("tanh", x), variables=[("s", STATE, None)])
    assert order(postpone_writes(module)) == order(module) == ["exp", "variable_write", "tanh"]


def test_the_same_answers_and_states_over_several_calls_and_nothing_is_copied() -> None:
    module = postpone_writes(streaming())
    kernels = agree(module, calls=4)
    assert [k.out.role for k in kernels.kernels].count("variable") == 1
    assert all(k.out.nbytes < STATE.nbytes for k in kernels.kernels if k.out.role == "temporary")
    agree(postpone_writes(streaming(read_again=True)), calls=4)
