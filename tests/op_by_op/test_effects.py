"""Side effects that Python code calls: each follows the one before, none is lost without a word."""
from __future__ import annotations

import random

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem
from tosaic.runtime.op_by_op.chain import Chain

from .processes import good, script

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def ran(rt):
    """The numbers of the effects that have happened. `test.note` is one, `test.fail` one that fails, each at once or later."""
    happened: list[int] = []

    def note(call):
        happened.append(call.attributes.get("n"))
        return ()

    def fail(call):
        raise ValueError(f"effect {call.attributes.get('n')}")

    for suffix, is_long in (("", False), (".later", True)):
        rt.register(f"test.note{suffix}", note, side_effect=True, is_long=is_long)
        rt.register(f"test.fail{suffix}", fail, side_effect=True, is_long=is_long)
    return happened


def attempt(rt, op, *operands, **attributes):
    """The error that a call raises at once."""
    try:
        rt.run(op, *operands, outputs=0, **attributes)
    except Problem as problem:
        return problem
    return None


@pytest.mark.parametrize("when", ["", ".later"])
def test_an_effect_that_fails_does_not_stop_those_after_it_whenever_it_fails(rt, ran, when):
    at_once = attempt(rt, f"test.fail{when}", n=1)
    for n in (2, 3):
        rt.run("test.note", outputs=0, n=n)
    late = None
    try:
        rt.wait()
    except Problem as problem:
        late = problem
    assert ran == [2, 3] and (at_once is None) != (late is None)
    assert "effect 1" in (at_once or late).message
    rt.run("test.note", outputs=0, n=4)
    rt.wait()
    assert ran == [2, 3, 4]


def test_random_effects_happen_in_order_or_are_reported(rt, ran):
    for seed in range(200):
        r = random.Random(seed)
        ran.clear()
        gate, opened = rt.pending()
        wanted, failing, reported = [], 0, 0
        for n in range(12):
            op = r.choice(("test.note", "test.note.later", "test.fail", "test.fail.later"))
            given = [gate.copy()] if r.random() < 0.2 else []
            if n == 6:
                opened.set(X)
            reported += attempt(rt, op, *given, n=n) is not None
            failing += "fail" in op
            wanted += [] if "fail" in op else [n]
        try:
            rt.wait()
        except Problem as problem:
            reported += 1 + sum(label.text.startswith("and that of") for label in problem.labels)
            reported += sum(int(label.text.split()[1]) for label in problem.labels if label.text.endswith(" more"))
        assert ran == wanted and reported == failing, seed


def test_an_effect_on_an_error_is_lost_and_says_so(rt, ran):
    bad = rt.run("async.noop", rt.tensor(X))
    bad.wait()
    rt.register("test.bad", lambda call: 1 / 0, lambda inputs, _: inputs, is_long=True)
    bad = rt.run("test.bad", rt.tensor(X))
    for use in ("print", "variable.write"):
        error = attempt(rt, use, bad, **({"name": "v"} if use == "variable.write" else {}))
        if error is None:
            with pytest.raises(Problem, match="division by zero") as caught:
                rt.wait()
            assert [label.text for label in caught.value.labels] == [f"the effect of {use} is lost"]
        bad.wait()
    assert "division by zero" in attempt(rt, "print", bad).message
    rt.wait()


def test_a_lost_effect_whose_result_was_read_is_not_raised_again(rt):
    gate, opened = rt.pending()
    rt.run("variable.write", gate, name="w", outputs=0)
    read, unread = rt.run("variable.read", name="none"), rt.run("variable.read", name="neither")
    opened.set(X)
    with pytest.raises(Problem, match="no variable none"):
        read.get()
    with pytest.raises(Problem, match="no variable neither"):
        rt.wait()
    rt.wait()
    assert unread.is_error


def test_cancelled_effects_are_no_losses_and_effects_while_cancelled_are_raised(rt, ran):
    gate, opened = rt.pending()
    rt.run("test.note", gate, n=1, outputs=0)
    rt.cancel()
    with pytest.raises(Problem, match="cancelled"):
        rt.run("test.note", n=2, outputs=0)
    opened.set(X)
    rt.restart()
    rt.run("test.note", n=3, outputs=0)
    rt.wait()
    assert ran == [3]


def test_effects_on_a_chain_of_the_clients_stop_behind_one_that_fails(rt, ran):
    """What `run` does not do: here the client has said that they depend on each other."""
    chain = Chain.ready()
    for n, op in enumerate(("test.note", "test.fail.later", "test.note", "test.note.later")):
        chain = rt.execute(op, "cpu", None, [], OpAttrs({"n": n}), [], chain)
    chain.wait()
    assert ran == [0] and "effect 1" in chain.error.message
    rt.wait()


def test_many_losses_are_counted(rt, ran):
    for n in range(1500):
        rt.run("test.fail.later", outputs=0, n=n)
    with pytest.raises(Problem, match="effect 0") as caught:
        rt.wait()
    assert caught.value.labels[-1].text == "and 1496 more"


def test_without_a_diagnostic_handler_a_lost_effect_is_printed_with_its_line():
    found = good(script("""
        rt = tosaic.CoreRuntime()
        gate, opened = rt.pending()
        rt.run("assert", gate, outputs=0)  # fails late
        rt.run("print", rt.tensor(X), outputs=0)
        rt.run("variable.write", X, name="v", outputs=0)
        opened.set(X - 1)
        print(rt.run("variable.read", name="v").tolist())
    """))
    assert "values = [1.000000e+00, 1.000000e+00, 1.000000e+00]\n[1.0, 1.0, 1.0]\n" in found.stdout
    line = next(n for n, text in enumerate(found.args[-1].splitlines(), start=1) if "# fails late" in text)
    assert f"the effect of assert is lost: <string>:{line}:" in found.stderr and "assertion failed" in found.stderr


def test_a_diagnostic_handler_gets_lost_effects_and_nothing_is_printed(capfd):
    reported: list[object] = []
    rt = tosaic.CoreRuntime(reported.append)
    rt.register("test.fail", lambda call: 1 / 0, side_effect=True, is_long=True)
    rt.run("test.fail", outputs=0)
    with pytest.raises(Problem):
        rt.wait()
    rt.shutdown()
    assert [d.op_name for d in reported] == ["test.fail"] and capfd.readouterr().err == ""
