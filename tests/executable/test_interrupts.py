"""Ctrl-C in compiled loops: an endless one ends, no variable has changed, and the next call is as good as any."""
from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Compiled, Traced
from tosaic.lowering.native.driver.variable_rollback import rollback_of
from tosaic.lowering.rewrite.tensorflow import Bindings, to_tosa
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.variables import Context

from .children import in_child, needs_fork

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="loops look at the flag where there are signals of POSIX"),
              pytest.mark.timeout(60)]

SOON = 0.1
"""Seconds until a signal comes."""

TRUE, FALSE = np.array(True), np.array(False)
X = np.arange(4, dtype=np.int32)
T = "tensor<4xi32>"
LOOP = f"""%r = tosa.while_loop (%a = %x) : ({T}) -> {T} {{
    tosa.yield %c : tensor<i1>
  }} do {{
  ^bb0(%b: {T}):
    BODY
    %n = tosa.add %b, %x : ({T}, {T}) -> {T}
    tosa.yield %n : {T}
  }}"""
FUNCTION = f"""tosa.variable @v = dense<7> : {T}
tosa.variable @w : {T}
func.func @main(%x: {T}, %c: tensor<i1>) -> {T} {{
  BEFORE
  {LOOP}
  AFTER
  return %r : {T}
}}"""
WRITE = f"tosa.variable_write @v, %x : {T}"
INSIDE = f"""%o = tosa.variable_read @v : {T}
  %s = tosa.add %o, %b : ({T}, {T}) -> {T}
  tosa.variable_write @v, %s : {T}
  tosa.variable_write @w, %s : {T}"""
NESTED = f"""%i = tosa.while_loop (%d = %b) : ({T}) -> {T} {{
    tosa.yield %c : tensor<i1>
  }} do {{
  ^bb0(%e: {T}):
    tosa.variable_write @w, %e : {T}
    tosa.yield %e : {T}
  }}"""
BRANCH = f"""%q = tosa.cond_if %c : tensor<i1> -> {T} {{
    {LOOP.replace("BODY", WRITE).replace("%r", "%z")}
    tosa.yield %z : {T}
  }} else {{ tosa.yield %x : {T} }}"""
TEXTS = {
    "nothing": ("", "", ""), "a write before": (WRITE, "", ""), "a write behind": ("", "", WRITE),
    "writes inside": ("", INSIDE, ""), "a nested loop": ("", NESTED, ""), "a loop in a branch": (BRANCH, "", "")}


def compiled(name: str, context: Context) -> Compiled:
    before, body, after = TEXTS[name]
    text = FUNCTION.replace("BEFORE", before).replace("BODY", body).replace("AFTER", after)
    return Traced(read_module(text), "main").lower().compile(context)


@contextmanager
def signals(*delays: float) -> Iterator[None]:
    """SIGINT comes after each of these `delays` in seconds; only for what does not end before."""
    timers = [threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)) for delay in delays]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.join()


def interrupted(call: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(KeyboardInterrupt), signals(SOON):
        call(*arguments)


@pytest.mark.parametrize("name", TEXTS)
def test_an_endless_loop_ends_and_no_variable_has_changed(name: str) -> None:
    context = Context("interrupted")
    run = compiled(name, context)
    for _ in range(2):
        interrupted(run, X, TRUE)
        assert context.read("v").tolist() == [7] * 4 and context.snapshot()["w"] is None
    assert run(X, FALSE).tolist() == X.tolist()
    assert context.read("v").tolist() == ([7] * 4 if name in ("nothing", "writes inside", "a nested loop", "a loop in a branch")
                                          else X.tolist())


def test_variables_are_kept_only_where_a_loop_may_end_behind_a_write() -> None:
    programs = {name: compiled(name, Context("sizes")).lowered.program for name in TEXTS}
    assert [n for n, program in programs.items() if rollback_of(program).always] == []
    assert [n for n, program in programs.items() if not rollback_of(program, interruptible=True).always] == [
        "nothing", "a write behind"]


def test_a_handler_that_is_set_after_compiling_is_the_one_that_runs() -> None:
    run, called = compiled("writes inside", Context("handler")), []

    def handler(*ignored: Any) -> None:
        called.append(1)
        raise TimeoutError

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(TimeoutError), signals(SOON):
            run(X, TRUE)
    finally:
        signal.signal(signal.SIGINT, before)
    assert called == [1]
    interrupted(run, X, TRUE)


def test_a_signal_between_calls_costs_no_call_its_result() -> None:
    run = compiled("a write before", Context("between"))
    interrupted(run, X, TRUE)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)
        assert run(X, FALSE).tolist() == X.tolist()
        assert counted(3) == 3


def counted(limit: int) -> int:
    """A loop of `limit` iterations."""
    return int(counting()(np.array(limit, np.int32)))


def counting() -> Any:
    @tosaic.jit
    def count(limit: Any) -> Any:
        return tosaic.while_loop(lambda i: i < limit, lambda i: i + 1, 0)

    return count


def test_an_ignored_signal_ends_nothing() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals(SOON / 10):
            assert counted(50_000_000) == 50_000_000
    finally:
        signal.signal(signal.SIGINT, before)


def test_asyncio_has_its_own_handler() -> None:
    run = compiled("writes inside", Context("asyncio"))

    async def main() -> None:
        run(X, TRUE)

    with pytest.raises(KeyboardInterrupt), signals(SOON, 3 * SOON):  # the first one cancels the task, which never looks
        asyncio.run(main())


def test_traced_functions_and_those_of_tensorflow() -> None:
    context = Context("doors")
    total = tosaic.Variable("interrupts.total", 0, (), "int32")

    @tosaic.jit(context=context)
    def endless(x: Any, go: Any) -> Any:
        def body(i: Any) -> Any:
            total.write(total.read() + i)
            return i + 1

        return tosaic.while_loop(lambda i: go, body, x)

    one = np.array(1, np.int32)
    assert endless(one, FALSE).item() == 1
    interrupted(endless, one, TRUE)
    assert context.read("interrupts.total").item() == 0
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %r = "tf.While"(%x) <{body = @body, cond = @test, is_stateless = true}> : (tensor<i32>) -> tensor<i32>
      return %r : tensor<i32> }
    func.func private @test(%x: tensor<i32>) -> tensor<i1> {
      %r = "tf.Equal"(%x, %x) <{incompatible_shape_error = true}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      return %r : tensor<i1> }
    func.func private @body(%x: tensor<i32>) -> tensor<i32> {
      %r = "tf.AddV2"(%x, %x) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      return %r : tensor<i32> }"""
    module = to_tosa(read_module(text), "main", None, Bindings({}, {}))
    interrupted(Traced(module, "main").compile(context=context), np.array(1, np.int32))


def test_loops_whose_kernels_run_in_threads() -> None:
    size = 1 << 18
    text = FUNCTION.replace("BEFORE", "").replace("BODY", INSIDE).replace("AFTER", "").replace("4xi32", f"{size}xi32")
    context = Context("threads")
    run = Traced(read_module(text), "main").lower(tosaic.CompileOptions(threads=2)).compile(context)
    assert run.executable.code.tasks == 2
    x = np.arange(size, dtype=np.int32)
    for _ in range(3):
        interrupted(run, x, TRUE)
        assert (context.read("v") == 7).all()
    assert np.array_equal(run(x, FALSE), x)


def test_other_threads_do_not_look() -> None:
    """Python raises KeyboardInterrupt in the main thread alone: it is not lost, and a call elsewhere goes on."""
    found: list[int] = []
    count, ended = counting(), threading.Event()
    count(np.array(1, np.int32))

    def run() -> None:
        found.append(int(count(np.array(300_000_000, np.int32))))
        ended.set()

    threading.Thread(target=run).start()
    with pytest.raises(KeyboardInterrupt), signals(SOON / 10):
        ended.wait(30)
    assert ended.wait(30) and found == [300_000_000]


@needs_fork
def test_a_child_of_a_fork_looks_too() -> None:
    run = compiled("writes inside", Context("fork"))
    interrupted(run, X, TRUE)

    def check() -> bool:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with signals(SOON):
            try:
                run(X, TRUE)
            except KeyboardInterrupt:
                return True
        return False

    assert in_child(check)


def test_signals_at_any_moment_of_an_iteration_leave_both_variables_as_they_were() -> None:
    context, rng = Context("stress"), random.Random(5)
    total, other = (tosaic.Variable(f"interrupts.{name}", 3, (), "int32") for name in ("total", "other"))

    @tosaic.jit(context=context)
    def step(limit: Any) -> Any:
        def body(i: Any) -> Any:
            total.write(total.read() + 1)
            other.write(other.read() - 1)
            return tosaic.cond(i == 1000, lambda: i - 1000, lambda: i + 1)

        return tosaic.while_loop(lambda i: i < limit, body, 0)

    step(np.array(5, np.int32))
    for _ in range(50):
        with pytest.raises(KeyboardInterrupt), signals(0.005 + rng.random() * 0.01):
            step(np.array(2000, np.int32))
        assert (context.read("interrupts.total").item(), context.read("interrupts.other").item()) == (8, -2)


def test_the_command_ends_with_130(tmp_path: Path) -> None:
    text = FUNCTION.replace("BEFORE", "").replace("BODY", INSIDE).replace("AFTER", "")
    (tmp_path / "endless.mlir").write_text(text)
    np.save(tmp_path / "c.npy", TRUE)
    command = ("import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
               "from tosaic.jit.command_line.cli import main; sys.exit(main(['run', 'endless.mlir', '--input', 'c=c.npy']))")
    child = subprocess.Popen([sys.executable, "-c", command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    assert (child.communicate(timeout=30)[1], child.returncode) == ("interrupted\n", 130)
