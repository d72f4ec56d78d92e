"""A program of its own, for a plain Python process: random graphs of operators with errors of every kind in operators, metadata
functions, callbacks, handlers and diagnostics, on several threads. Nothing hangs, each error reaches its handle and its
diagnostic or stderr, and what fails is what depends on a failure.

    python error_stress.py SEED [GRAPHS]

Prints one line of JSON: what was counted. A hang ends it after a minute with all stacks.
"""
from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import random
import sys
import threading
from collections import Counter

import numpy as np
import tosaic
from tosaic.runtime.op_by_op.chain import Chain
from tosaic.runtime.op_by_op.metadata import TensorMetadata

X = np.arange(3, dtype=np.float32)
TYPE = TensorMetadata("float32", (3,))


class Unshowable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Odd(tosaic.Problem):
    def __init__(self):
        self.message = 7  # no position, no kind


class Bare(BaseException):
    pass


KINDS = (ValueError, Unshowable, Odd, Bare, SystemExit, KeyboardInterrupt, MemoryError, GeneratorExit, RecursionError,
         asyncio.CancelledError, StopIteration)
INTERRUPTS = (SystemExit, KeyboardInterrupt)
PLACES = (*["none"] * 20, "dispatch", "dispatch long", "metadata", "handler", "later", "late thread")


def wrong(kind):
    """Raise it."""
    if kind is RecursionError:
        return wrong(kind)
    raise kind()


class Failing(tosaic.OpHandler):
    """Fails where it is asked to, else leaves the operator to the next."""

    def execute(self, invocation):
        if invocation.op_name.startswith("stress.handler."):
            wrong(KINDS[int(invocation.op_name.rpartition(".")[2])])
        return False


def register(rt, threads):
    """Operators that fail in each way with each kind of error."""
    def later(kind):
        def dispatch(call):
            handle, resolver = rt.pending(TYPE)

            def settle():
                resolver.fail(tosaic.Problem(f"later {kind.__name__}"))
            thread = threading.Thread(target=settle)
            threads.append(thread)
            thread.start()
            return handle
        return dispatch

    def total(call):
        return np.sum(call.arrays, axis=0, dtype=np.float32) if call.arrays else X

    for number, kind in enumerate(KINDS):
        def dispatch(call, kind=kind): return wrong(kind)
        def metadata(inputs, attributes, kind=kind): return wrong(kind)
        rt.register(f"stress.dispatch.{number}", dispatch, lambda inputs, _: TYPE)
        rt.register(f"stress.dispatch long.{number}", dispatch, is_long=True)
        rt.register(f"stress.metadata.{number}", total, metadata)
        rt.register(f"stress.later.{number}", later(kind))
        rt.register(f"stress.late thread.{number}", dispatch, lambda inputs, _: TYPE, is_long=True)
        rt.register(f"stress.none.{number}", total, *([lambda inputs, _: TYPE] if number % 2 else []), is_long=number % 3 == 0)


def graph(seed, count):
    """One random graph; what was counted."""
    r, found = random.Random(seed), Counter()
    reported, lock = [], threading.Lock()
    bad_diagnostic = r.choice((None, None, *KINDS))

    def diagnostic(d):
        with lock:
            reported.append(d.problem)
        if bad_diagnostic is not None:
            wrong(bad_diagnostic)

    def decode(location):
        if r.random() < 0.1:
            raise ValueError("decode")

    rt = tosaic.CoreRuntime(diagnostic, threads=r.choice((1, 2, 3)), decode=decode, queue_size=r.choice((1, 4, 1000)))
    threads: list[threading.Thread] = []
    register(rt, threads)
    handler = Failing(rt.get_op_handler("cpu"))
    values, fails, starts, called = [], [], 0, []
    late = []
    for n in range(4):
        handle, resolver = rt.pending(TYPE if n % 2 else None)
        values.append(handle)
        fails.append(r.random() < 0.2)
        late.append((resolver, fails[-1]))
        del handle, resolver
    for _n in range(count):
        place, number = r.choice(PLACES), r.randrange(len(KINDS))
        inputs = [r.randrange(len(values)) for _ in range(r.randrange(3))]
        results = [None]
        with contextlib.suppress(*INTERRUPTS):
            rt.execute(f"stress.{place}.{number}", handler, None if r.random() < 0.5 else "somewhere",
                       [values[i].copy() for i in inputs], None, results)
        assert results[0] is not None, (place, KINDS[number])
        values.append(results[0])
        is_wrong = place != "none"
        downstream = any(fails[i] for i in inputs)
        starts += is_wrong and not downstream
        fails.append(is_wrong or downstream)
        if r.random() < 0.4:
            kind = r.choice((None, *KINDS))
            called.append(kind)

            def callback(handle, kind=kind):
                if kind is not None:
                    wrong(kind)
            with contextlib.suppress(*INTERRUPTS):
                r.choice((values[-1].then, values[-1].then_metadata))(callback)

    def settle(resolver, is_failed):
        with contextlib.suppress(*INTERRUPTS):
            resolver.fail(tosaic.Problem("source")) if is_failed else resolver.set(X)

    r.shuffle(late)
    threads += [threading.Thread(target=settle, args=pair) for pair in late[:2]]
    for thread in threads[-2:]:
        thread.start()
    for pair in late[2:]:
        settle(*pair)
    late.clear()
    for value, is_failed in zip(values, fails):
        while True:
            with contextlib.suppress(*INTERRUPTS):
                value.wait()
                break
        assert value.is_error == is_failed, (seed, value, is_failed)
        if value.is_error:
            assert isinstance(value.error, tosaic.Problem) and isinstance(str(value.error), str)
    for thread in list(threads):
        thread.join()
    rt.wait()
    assert len({id(p) for p in reported}) == len(reported), "an error was reported twice"
    assert len(reported) >= starts, (seed, len(reported), starts)
    used = {id(v.error) for v in values if v.is_error}
    sources = {id(v.error) for v in values[:4] if v.is_error}
    assert used - {id(p) for p in reported} <= sources, "an error that no diagnostic knows"
    assert rt.run("async.noop", rt.tensor(X)).wait(30), "the workers are gone"
    rt.shutdown()
    found.update(graphs=1, operators=count, errors=len(reported), failed=sum(fails), callbacks=len(called),
                 reported=sum(k is not None and k not in INTERRUPTS for k in called))
    return found


def effects(seed):
    """Chains in the same way: an effect that fails fails what is behind it in its chain; those of `run` only follow each
    other."""
    r = random.Random(seed)
    rt = tosaic.CoreRuntime(lambda d: None, threads=2)
    ran, chains, wanted = [], [], []
    rt.register("stress.note", lambda call: (ran.append(call.attributes.get("n")), ())[1], lambda i, _: (), side_effect=True,
                is_long=r.random() < 0.5)
    for number, kind in enumerate(KINDS):
        rt.register(f"stress.effect.{number}", lambda call, kind=kind: wrong(kind), side_effect=True, is_long=r.random() < 0.5)
    chain, resolver = Chain.pending()
    is_failed = False
    for n in range(10):
        is_wrong, number = r.random() < 0.2, r.randrange(len(KINDS))
        with contextlib.suppress(*INTERRUPTS):
            chain = rt.execute(f"stress.effect.{number}" if is_wrong else "stress.note", "cpu", None, [],
                               tosaic.OpAttrs({"n": n}), [], chain)
        is_failed = is_failed or is_wrong
        chains.append((chain, is_failed))
        wanted += [] if is_failed else [n]
    resolver.set()
    for chain, is_failed in chains:
        chain.wait()
        assert chain.is_error == is_failed, seed
    assert ran == wanted, (seed, ran, wanted)
    ran.clear()
    gate, opened = rt.pending()
    expected = []
    rt.register("stress.gate", lambda call: (), side_effect=True)
    rt.run("stress.gate", gate, outputs=0)
    lost = 0
    for n in range(10):
        is_wrong, number = r.random() < 0.3, r.randrange(len(KINDS))
        rt.run(f"stress.effect.{number}" if is_wrong else "stress.note", outputs=0, n=n)
        lost += is_wrong
        expected += [] if is_wrong else [n]
    with contextlib.suppress(*INTERRUPTS):
        opened.set(X)
    raised = 0
    try:
        rt.wait()
    except tosaic.Problem as problem:
        raised = 1 + sum(label.text.startswith("and that of") for label in problem.labels)
        raised += sum(int(label.text.split()[1]) for label in problem.labels if label.text.endswith("more"))
    assert ran == expected and raised == lost, (seed, ran, expected, raised, lost)
    rt.wait()
    rt.shutdown()
    return Counter(chains=1, effects=20, lost=lost)


def main():
    faulthandler.dump_traceback_later(60, exit=True)
    seed, graphs = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    found = Counter()
    for n in range(graphs):
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback_later(60, exit=True)
        found += graph(seed * 1000 + n, 25)
        found += effects(seed * 1000 + n)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
