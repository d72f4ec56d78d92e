"""Buffers: a result takes over an argument's where nobody else can see it, and never else."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import Problem, TensorHandle
from tosaic.runtime.arena import address

X = np.arange(20, dtype=np.float32)


def call(rt, op, arguments, attributes=None):
    results = [None]
    rt.execute(op, "cpu", None, arguments, attributes, results)
    return results[0]


def own(rt, array=X):
    return rt.tensor(array, copy=True)


@pytest.mark.parametrize("size", [1, 7, 100, 20_000])
@pytest.mark.parametrize("op, function", [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply)])
def test_the_last_reference_is_reused(rt, op, function, size):
    a, b = np.arange(size, dtype=np.float32), np.arange(size, dtype=np.float32) + 3
    first = own(rt, a)
    at = address(first.get())
    arguments = [first, rt.tensor(b)]
    del first
    result = call(rt, op, arguments)
    assert result.stolen_from == 0 and address(result.get()) == at and rt.buffers_reused == 1
    assert np.array_equal(result.get(), function(a, b))
    arguments = [rt.tensor(a), result]
    del result
    second = call(rt, op, arguments)
    assert second.stolen_from == 1 and np.array_equal(second.get(), function(a, function(a, b)))


def refused(rt, arguments, wanted, op="add"):
    before = [a.get().copy() for a in arguments]
    kept = [a.get() for a in arguments]
    del kept
    result = call(rt, op, arguments)
    assert result.stolen_from is None and np.array_equal(result.get(), wanted)
    return before


def test_a_handle_that_the_client_keeps_is_not_touched(rt):
    kept = own(rt)
    refused(rt, [kept, rt.tensor(X)], 2 * X)
    assert np.array_equal(kept.get(), X) and rt.buffers_refused == 1


def test_a_copied_handle_is_not_touched(rt):
    first = own(rt)
    copy, arguments = first.copy(), [first, rt.tensor(X)]
    del first
    refused(rt, arguments, 2 * X)
    assert np.array_equal(copy.get(), X)


def test_an_array_that_somebody_looks_at_is_not_touched(rt):
    first = own(rt)
    view, arguments = first.get()[3:], [first, rt.tensor(X)]
    del first
    refused(rt, arguments, 2 * X)
    assert np.array_equal(view, X[3:])


@pytest.mark.parametrize("export", [np.from_dlpack, lambda h: memoryview(h.get()), lambda h: np.asarray(h).reshape(4, 5)])
def test_an_array_that_another_library_has_is_not_touched(rt, export):
    first = own(rt)
    exported, arguments = export(first), [first, rt.tensor(X)]
    del first
    refused(rt, arguments, 2 * X)
    assert np.array_equal(np.asarray(exported).ravel(), X)


def test_a_view_of_a_large_array_is_seen_too(rt):
    large = np.arange(50_000, dtype=np.float32)
    first = call(rt, "add", [rt.tensor(large), rt.tensor(large)])
    view, arguments = first.get(), [first, rt.tensor(large)]
    del first
    assert call(rt, "add", arguments).stolen_from is None
    assert np.array_equal(view, 2 * large)


def test_a_borrowed_array_is_never_touched(rt):
    mine = X.copy()
    refused(rt, [rt.tensor(mine), rt.tensor(mine)], 2 * X)
    pending, resolve = TensorHandle.pending()
    results = [None]
    rt.execute("add", "cpu", None, [pending, rt.tensor(X)], None, results)
    del pending
    resolve.set(mine)
    del resolve
    assert np.array_equal(results[0].get(), 2 * X) and np.array_equal(mine, X)


def test_the_same_handle_twice_is_not_taken(rt):
    first = own(rt)
    arguments = [first, first]
    del first
    refused(rt, arguments, 2 * X)


def test_another_dtype_or_shape_is_not_taken(rt):
    assert call(rt, "less", [own(rt), rt.tensor(X)]).stolen_from is None
    assert call(rt, "add", [own(rt), rt.tensor(np.zeros((2, 20), np.float32))]).stolen_from is None


def test_an_operation_that_reads_elsewhere_does_not_write_over_its_argument(rt):
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    for op in ("matmul", "transpose"):
        arguments = [own(rt, square)] + ([own(rt, square)] if op == "matmul" else [])
        result = call(rt, op, arguments)
        assert result.stolen_from is None
        assert np.array_equal(result.get(), square @ square if op == "matmul" else square.T)


def test_a_donated_handle_is_invalid_and_its_buffer_reused(rt):
    handle = own(rt)
    at = address(handle.get())
    result = handle.donate() + rt.tensor(X)
    assert address(result.get()) == at and result.stolen_from == 0 and not handle.is_valid
    for use in (handle.get, handle.copy, handle.await_metadata, handle.donate, lambda: handle + result):
        with pytest.raises(Problem, match="has been given away"):
            use()


def test_donation_is_refused_where_somebody_looks_at_the_array(rt):
    handle = own(rt)
    view = handle.get()
    result = handle.donate() + rt.tensor(X)
    assert result.stolen_from is None and np.array_equal(view, X) and rt.buffers_refused == 1


def test_a_donated_handle_is_used_once(rt):
    donated = own(rt).donate()
    assert np.array_equal((donated + rt.tensor(X)).get(), 2 * X)
    with pytest.raises(Problem, match="given away"):
        donated + rt.tensor(X)


def test_a_chain_of_pending_operations_works_in_one_buffer(rt):
    pending, resolve = TensorHandle.pending()
    results = [None]
    rt.execute("add", "cpu", None, [pending, rt.tensor(X)], None, results)
    for _ in range(10):
        arguments = [results.pop(), rt.tensor(X)]
        results = [None]
        rt.execute("add", "cpu", None, arguments, None, results)
    resolve.set(X)
    assert np.array_equal(results[0].get(), 12 * X)
    assert rt.buffers_reused == 10


@pytest.mark.parametrize("is_known", [False, True], ids=["metadata unknown", "metadata known"])
@pytest.mark.parametrize("when", ["before", "between"])
def test_what_a_waiting_operation_needs_may_be_given_away_meanwhile(rt, is_known, when):
    kept = own(rt)
    call(rt, "add", [kept, kept])
    pending, resolve = TensorHandle.pending(kept.metadata if is_known else None)
    other, resolve_other = TensorHandle.pending(kept.metadata if is_known else None)
    handle = own(rt) if when == "before" else other
    waiting = rt.run("add", pending, handle), call(rt, "add", [pending, handle])
    resolve_other.set(X)
    taken = handle.donate() + rt.tensor(X)
    assert np.array_equal(taken.get(), 2 * X) and not handle.is_valid and taken.stolen_from is None
    resolve.set(X + 1)
    assert all(np.array_equal(w.get(), 2 * X + 1) for w in waiting)
