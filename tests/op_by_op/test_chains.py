"""Chains: side effects happen in their order, whichever thread runs them."""
from __future__ import annotations

import threading

import numpy as np
import pytest
import tosaic
from tosaic import OpAttrs, Problem, TensorHandle
from tosaic.runtime.op_by_op.chain import Chain

X = np.arange(4, dtype=np.float32)


def effect(rt, op, *arguments, chain, results=0, **attributes):
    found = [None] * results
    out = rt.execute(op, "cpu", None, list(arguments), OpAttrs(attributes), found, chain)
    return (*found, out)


def test_chains_become_ready_or_an_error():
    chain, resolve = Chain.pending()
    assert chain.is_pending and not chain.is_ready
    assert resolve.set() and chain.is_ready and not resolve.fail(Problem("late"))
    assert Chain.ready().is_ready and Chain.of_error(Problem("x")).error.message == "x"
    with pytest.raises(Problem, match="x"):
        Chain.of_error(Problem("x")).get()
    chain, resolve = Chain.pending()
    del resolve
    assert "will never be settled" in chain.error.message


def test_a_side_effect_without_a_chain_is_an_error(rt):
    results = []
    assert rt.execute("print", "cpu", None, [rt.tensor(X)], None, results) is None
    found = [None]
    rt.execute("variable.read", "cpu", None, [], OpAttrs({"name": "v"}), found)
    assert "has a side effect and needs a chain" in found[0].error.message


def test_an_operation_waits_for_its_chain(rt, capsys):
    chain, resolve = Chain.pending()
    out, = effect(rt, "print", rt.tensor(X), chain=chain, prefix="x = ")
    assert out.is_pending and capsys.readouterr().out == ""
    resolve.set()
    out.wait()
    assert capsys.readouterr().out.startswith("x = DenseHostTensor dtype = f32, shape = [4]")


def test_a_pure_operation_with_a_chain_waits_for_it_too(rt):
    chain, resolve = Chain.pending()
    result, out = effect(rt, "tosa.abs", rt.tensor(X), chain=chain, results=1)
    assert not result.is_ready
    resolve.set()
    assert np.array_equal(result.get(), X)
    out.wait()
    assert out.is_ready


def test_writes_and_reads_of_a_variable_are_in_order(rt):
    gate, release = TensorHandle.pending()
    chain = Chain.ready()
    chain, = effect(rt, "variable.write", rt.tensor(X), chain=chain, name="v")
    before, chain = effect(rt, "variable.read", chain=chain, results=1, name="v")
    chain, = effect(rt, "variable.write", gate, chain=chain, name="v")
    after, chain = effect(rt, "variable.read", chain=chain, results=1, name="v")
    assert np.array_equal(before.get(), X) and not after.is_ready
    release.set(X + 1)
    assert np.array_equal(after.get(), X + 1)


def test_order_holds_across_threads(rt):
    seen: list[int] = []
    rt.register("test.note", lambda call: (seen.append(call.attributes.get("n")), ())[1], side_effect=True, is_long=True)
    chain, start = Chain.pending()
    lock, last = threading.Lock(), [chain]

    def add(numbers):
        for n in numbers:
            with lock:
                last[0], = effect(rt, "test.note", chain=last[0], n=n)
                order.append(n)

    order: list[int] = []
    threads = [threading.Thread(target=add, args=(range(i, 200, 4),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start.set()
    last[0].wait()
    assert seen == order and sorted(seen) == list(range(200))


def test_a_failed_assertion_stops_the_effects_behind_it(rt, capsys):
    chain, = effect(rt, "assert", rt.tensor(np.array([True, False])), chain=Chain.ready(), message="all true")
    assert chain.error.message == "assertion failed: all true"
    out, = effect(rt, "print", rt.tensor(X), chain=chain)
    assert out.error is chain.error and capsys.readouterr().out == ""


def test_effects_of_python_code_are_in_the_order_of_their_calls(rt, capsys):
    rt.run("variable.write", X, name="v", outputs=0)
    later = rt.run("async.noop", rt.tensor(X + 1))
    rt.run("variable.write", later, name="v", outputs=0)
    value = rt.run("variable.read", name="v")
    rt.run("print", value, outputs=0)
    rt.wait()
    assert np.array_equal(value.get(), X + 1) and "2.000000e+00" in capsys.readouterr().out


def test_variables_are_those_of_compiled_programs():
    variable = tosaic.Variable("opbyop_shared", np.zeros(4, np.float32))
    add = tosaic.jit(lambda x: variable.write(variable.read() + x) or x)
    add(X)
    rt = tosaic.CoreRuntime()
    assert np.array_equal(rt.run("variable.read", name="opbyop_shared").get(), X)
    rt.run("variable.write", X + 5, name="opbyop_shared", outputs=0)
    assert np.array_equal(variable.read(), X + 5)
    tosaic.default_context.delete("opbyop_shared")


def test_reading_a_variable_that_is_not_there_is_an_error(rt):
    result, out = effect(rt, "variable.read", chain=Chain.ready(), results=1, name="none")
    assert "there is no variable none" in result.error.message and out.error is result.error
