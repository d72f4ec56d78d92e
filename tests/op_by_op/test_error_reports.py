"""Errors of a client's code in plain processes: each reaches its handle, the diagnostic handler or stderr, and nothing
hangs."""
from __future__ import annotations

import json

import pytest

from .processes import good, script, stress

CALLBACK = "<tosaic's call of <function graph.<locals>.callback"  # one write, which other threads' reports do not come between


def check(seed, graphs):
    found = good(stress(seed, graphs))
    counted = json.loads(found.stdout)
    assert counted["graphs"] == counted["chains"] == graphs and counted["errors"] and counted["lost"]
    assert found.stderr.count(CALLBACK) == counted["reported"]


@pytest.mark.parametrize("seed", range(2))
def test_random_errors_end_where_they_belong_and_nothing_hangs(seed):
    check(seed, 30)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 44))
def test_a_thousand_graphs_of_errors(seed):
    check(seed, 30)


def test_what_a_callback_raises_is_printed_with_its_place():
    found = good(script("""
        handle, resolver = TensorHandle.pending()
        def callback(handle):
            raise ValueError("from the callback")
        handle.then(callback)
        resolver.set(X)
        handle.then(lambda h: h.no_such_thing)
        print("alive", handle.get().tolist())
    """))
    assert found.stdout == "alive [1.0, 1.0, 1.0]\n"
    assert "ValueError: from the callback" in found.stderr and "in callback" in found.stderr
    assert "no_such_thing" in found.stderr


@pytest.mark.parametrize("hook", ["lambda u: 1 / 0", "lambda u: sys.exit(3)", "None", "lambda: 0"])
def test_a_hook_that_fails_ends_nothing(hook):
    found = good(script(f"""
        sys.unraisablehook = {hook}
        rt = tosaic.CoreRuntime(lambda d: 1 / 0, threads=1)
        rt.register("test.bad", lambda call: 1 / 0, is_long=True)
        bad = rt.run("test.bad", rt.tensor(X))
        bad.then(lambda h: 1 / 0)
        assert bad.wait(10) and bad.is_error
        print(rt.run("async.noop", rt.tensor(X)).tolist())
    """))
    assert found.stdout == "[1.0, 1.0, 1.0]\n"


@pytest.mark.parametrize("stderr", ["None", "open(os.devnull)",
                                    "type('E', (), {'write': lambda self, t: 1 / 0, 'flush': lambda self: None})()"])
def test_without_a_place_to_print_to_nothing_ends(stderr):
    found = good(script(f"""
        sys.stderr = {stderr}
        rt = tosaic.CoreRuntime(threads=1)
        rt.register("test.bad", lambda call: 1 / 0, side_effect=True, is_long=True)
        rt.run("test.bad", outputs=0)
        rt.run("async.noop", rt.tensor(X)).then(lambda h: 1 / 0)
        try:
            rt.wait()
        except Problem as problem:
            print(problem.message)
    """))
    assert found.stdout == "test.bad failed: ZeroDivisionError: division by zero\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["operator", "metadata", "diagnostic", "callback", "decode", "handler"])
@pytest.mark.parametrize("is_late", [False, True])
def test_an_exit_in_the_callers_thread_ends_the_program_when_all_is_settled(place, is_late):
    """`sys.exit` and Ctrl-C are for the program: they are raised where the client called, after the handles have their
    errors."""
    found = script(f"""
        place = {place!r}
        def stop(*_):
            sys.exit(7)
        def fail(*_):
            raise ValueError("no")
        class Stopping(tosaic.OpHandler):
            def execute(self, invocation):
                stop()
        rt = tosaic.CoreRuntime(stop if place == "diagnostic" else None, decode=stop if place == "decode" else None,
                                threads=0)
        rt.register("test.bad", stop if place == "operator" else fail, *([stop] if place == "metadata" else []))
        handle, resolver = rt.pending()
        results = [None]
        try:
            rt.execute("test.bad", Stopping() if place == "handler" else "cpu", "place",
                       [handle.copy() if {is_late} else rt.tensor(X)], None, results)
            if place == "callback":
                results[0].then(stop)
            resolver.set(X)
        finally:
            print(results[0].wait(10), results[0].is_error, flush=True)
        print("not ended")
    """)
    assert found.stdout == "True True\n" and found.returncode == 7, found.stderr


def test_an_exit_in_a_worker_is_an_error_of_its_operator_and_printed():
    found = good(script("""
        rt = tosaic.CoreRuntime(threads=1)
        rt.register("test.exit", lambda call: sys.exit("bye"), is_long=True)
        first = rt.run("test.exit", rt.tensor(X))
        second = first + 1
        assert second.wait(10) and second.error is first.error
        print(first.error.message, rt.run("async.noop", rt.tensor(X)).tolist())
    """))
    assert found.stdout == "test.exit failed: SystemExit: bye [1.0, 1.0, 1.0]\n" and "SystemExit: bye" in found.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["ValueError('x')", "KeyboardInterrupt()", "BrokenPipeError()", "Exception"])
def test_a_kernel_program_whose_output_or_report_fails_ends(kind):
    found = script(f"""
        from tosaic.jit.op_by_op.programs.running import run_program
        lines = []
        def write(line):
            lines.append(line)
            if "int32" in line:
                raise {kind}
        def report(position, message):
            raise {kind}
        text = '''func.func @f() -> i32 {{
            %a = tfrt.constant.i32 1
            %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
            %ch = tfrt.new.chain
            %c = tfrt.print.i32 %b, %ch
            tfrt.return %b : i32
        }}'''
        try:
            run_program(text, write=write, report=report)
        except KeyboardInterrupt:
            print("interrupted")
        print(lines)
    """)
    assert found.returncode == 0 and "int32 = 2" in found.stdout, found.stdout + found.stderr
