"""A check ends: random integers on which loops depend are small, loops that they steer have a bound, the seconds of `--limits`
hold in both engines, and long loops are told as progress."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.stages import prepared
from tosaic.jit.tools.check.rounding_bounds import Samples
from tosaic.jit.tools.random_array import MOST_STEERED, random_array
from tosaic.jit.tools.steered_loops import steers_a_loop
from tosaic.runtime import limits
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter
from tosaic.runtime.interrupts import process as interrupts
from tosaic.runtime.limits import OutOfTime, TooManyIterations, bounded_iterations
from tosaic.runtime.progress import listening


def loop(step: str, last: int) -> str:
    """A loop that takes or adds one until it has reached a number, however far that is."""
    return f"""func.func @main(%start: tensor<i32>) -> tensor<i32> {{
      %one = "tosa.const"() <{{values = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %last = "tosa.const"() <{{values = dense<{last}> : tensor<i32>}}> : () -> tensor<i32>
      %r = tosa.while_loop (%i = %start) : (tensor<i32>) -> tensor<i32> {{
        %equal = tosa.equal %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %more = tosa.logical_not %equal : (tensor<i1>) -> tensor<i1>
        tosa.yield %more : tensor<i1>
      }} do {{
      ^bb0(%i: tensor<i32>):
        %next = tosa.{step} %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
        tosa.yield %next : tensor<i32>
      }}
      return %r : tensor<i32>
    }}"""


COUNTDOWN, ENDLESS = loop("sub", 0), loop("sub", 100)
SAMPLE = Path(__file__).parents[2] / "samples" / "models" / "countdown.mlir"


def written(folder: Path, text: str) -> str:
    (folder / "m.mlir").write_text(text)
    return str(folder / "m.mlir")


# ---- random inputs -----------------------------------------------------------------------------------------------------------
def test_a_countdown_is_checked_from_small_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model in (written(tmp_path, COUNTDOWN), str(SAMPLE)):
        for seed in range(3):
            assert main(["check", model, "--calls", "2", "--seed", str(seed)]) == 0
            assert "agrees" in capsys.readouterr().out


def test_a_loop_that_random_numbers_make_too_long_asks_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = written(tmp_path, ENDLESS)
    assert main(["check", model]) == 2
    told = capsys.readouterr()
    assert not told.out and "20,000 times in one call with random numbers for start" in told.err
    assert f"{model}:4:12" in told.err and "--input start=FILE.npy" in told.err
    np.save(tmp_path / "x.npy", np.array(103, np.int32))
    assert main(["check", model, "--input", f"start={tmp_path}/x.npy"]) == 0


def test_given_numbers_may_ask_for_more(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(20_010, np.int32))
    assert main(["check", written(tmp_path, COUNTDOWN), "--input", f"start={tmp_path}/x.npy"]) == 0


OPERATORS = ("add", "sub", "maximum", "minimum", "bitwise_xor")


def loops(seed: int) -> str:
    """A function of four integers, some of which a loop's trip count depends on, through arithmetic, variables or branches."""
    rng = random.Random(seed)
    values, lines = [f"%x{i}" for i in range(4)], []

    def line(text: str, types: str, result: str = "tensor<i32>") -> str:
        lines.append(f"%v{len(lines)} = {text} : {types} -> {result}")
        return f"%v{len(lines) - 1}"

    def some() -> str:
        return rng.choice(values)

    for _ in range(rng.randint(1, 6)):
        kind = rng.choice(("arithmetic", "variable", "branch", "loop"))
        pair = f"{some()}, {some()}"
        if kind == "arithmetic":
            values.append(line(f"tosa.{rng.choice(OPERATORS)} {pair}", "(tensor<i32>, tensor<i32>)"))
        elif kind == "variable":
            lines.append(f"tosa.variable_write @state, {some()} : tensor<i32>")
            lines.append(f"%v{len(lines)} = tosa.variable_read @state : tensor<i32>")
            values.append(f"%v{len(lines) - 1}")
        elif kind == "branch":
            test = line(f"tosa.greater {pair}", "(tensor<i32>, tensor<i32>)", "tensor<i1>")
            lines.append(f"""%v{len(lines)} = tosa.cond_if %{test[1:]} : tensor<i1> -> tensor<i32> {{
              tosa.yield {some()} : tensor<i32> }} else {{ tosa.yield {some()} : tensor<i32> }}""")
            values.append(f"%v{len(lines) - 1}")
        else:
            lines.append(counted(f"%v{len(lines)}", some(), some(), rng))
            values.append(f"%v{len(lines) - 1}")
    arguments = ", ".join(f"%x{i}: tensor<i32>" for i in range(4))
    constants = "\n".join(f'%c{n} = "tosa.const"() <{{values = dense<{n}> : tensor<i32>}}> : () -> tensor<i32>'
                          for n in (0, 1, 5))
    return f"""tosa.variable @state = dense<2> : tensor<i32>
    func.func @main({arguments}) -> tensor<i32> {{
      {constants}
      {chr(10).join(lines)}
      {counted("%last", some(), some(), rng)}
      return %last : tensor<i32>
    }}"""


def counted(name: str, bound: str, carried: str, rng: random.Random) -> str:
    """A loop that runs up to a value, five times at most, beside which it carries another."""
    end = rng.choice((bound, "%c5"))
    return f"""{name}, {name}n = tosa.while_loop (%a = {carried}, %i = %c0)
      : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) {{
      %most = tosa.minimum {end}, %c5 : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %more = tosa.greater %most, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %more : tensor<i1>
    }} do {{
    ^bb0(%a: tensor<i32>, %i: tensor<i32>):
      %next = tosa.add %i, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %sum = tosa.{rng.choice(OPERATORS)} %a, %{rng.choice(("i", "a"))} : (tensor<i32>, tensor<i32>) -> tensor<i32>
      tosa.yield %sum, %next : tensor<i32>, tensor<i32>
    }}"""


def iterations(module: Any, calls: Any) -> int:
    interpreter, total = Interpreter(module, "main"), 0
    for call in calls:
        interpreter(*(np.array(x, np.int32) for x in call))
        total += interpreter.iterations
    return total


def test_inputs_that_change_how_often_loops_run_are_found() -> None:
    """Each input is changed alone, over two calls of one state: where loops run another number of times, it steers them."""
    rng, steering, free = random.Random(0), 0, 0
    for seed in range(30):
        module = prepared(tosaic.load(loops(seed)).main.trace().module)
        function = module.function("main")
        said = [steers_a_loop(function, v) for v in function.arguments]
        calls = [[rng.randint(-3, 6) for _ in range(4)] for _ in range(2)]
        usual = iterations(module, calls)
        for i in range(4):
            changed = any(iterations(module, [[*c[:i], value, *c[i + 1:]] for c in calls]) != usual for value in (-3, 1, 3, 6))
            assert said[i] or not changed, f"seed {seed}, input {i}"
        steering, free = steering + sum(said), free + 4 - sum(said)
    assert steering > 20 and free > 20


def test_integers_that_steer_are_small_and_others_are_not() -> None:
    module = tosaic.load(loops(3)).main.trace().interface
    for number, value in enumerate(module.arguments):
        draws = [int(random_array(module, value, number, seed)) for seed in range(50)]
        small = min(draws) >= 1 and max(draws) <= MOST_STEERED
        assert small == steers_a_loop(module, value)


# ---- bounds ------------------------------------------------------------------------------------------------------------------
class Clock:
    """A clock that stands still until a loop is reported."""
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def heard(self, depth: int, what: str, done: int, total: int) -> None:
        self.now += 100 * ("iterations" in what)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(limits, "time", found)
    return found


def test_the_seconds_of_limits_end_the_interpreter(clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(clock.heard):
        assert main(["check", written(tmp_path, ENDLESS), "--limits", "seconds=60", "--calls", "3"]) == 3
    told = capsys.readouterr()
    assert not told.out and "the time of the check is over: 0 of 3 calls were compared whole, 0 elements" in told.err


def test_it_is_told_how_much_was_compared_before_the_time_was_over(clock: Clock) -> None:
    entry = tosaic.load(COUNTDOWN).main
    calls = [[np.array(x, np.int32)] for x in (3, 2, -1)]
    with (pytest.raises(OutOfTime, match="2 of 3 calls were compared whole, 4 elements"), tosaic.Limits(seconds=60),
          listening(clock.heard)):
        entry.check(calls)


def test_the_seconds_of_limits_end_compiled_code() -> None:
    compiled = tosaic.load(loop("bitwise_and", 3)).main.compile()
    with pytest.raises(OutOfTime), tosaic.Limits(seconds=0.3), interrupts.until_deadline():
        compiled(np.array(0, np.int32))
    assert compiled(np.array(3, np.int32)) == 3


def test_a_bound_on_iterations_holds_for_all_loops_of_a_call_together() -> None:
    interpreter = Interpreter(tosaic.load(COUNTDOWN).main.trace().module, "main")
    with bounded_iterations(10):
        for _ in range(3):
            interpreter(np.array(10, np.int32))
        with pytest.raises(TooManyIterations):
            interpreter(np.array(11, np.int32))
    interpreter(np.array(50, np.int32))
    assert interpreter.iterations == 50


FRAGILE = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %r = tosa.while_loop (%i = %x) : (tensor<f32>) -> tensor<f32> {
    %equal = tosa.equal %i, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %more = tosa.logical_not %equal : (tensor<i1>) -> tensor<i1>
    tosa.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<f32>):
    %one = tosa.exp %zero : (tensor<f32>) -> tensor<f32>
    %next = tosa.sub %i, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
    tosa.yield %next : tensor<f32>
  }
  return %r : tensor<f32>
}"""


def test_erring_runs_end_where_an_error_makes_a_loop_endless() -> None:
    module = prepared(tosaic.load(FRAGILE).main.trace().module)
    samples = Samples(module, module.function("main"), [[np.array(3, np.float32)]])
    samples.iterations = 3
    assert None in next(samples.pairs(0))


def test_long_loops_are_told_as_progress() -> None:
    heard: list[str] = []
    with listening(lambda depth, what, done, total: heard.append(what)):
        tosaic.load(COUNTDOWN).main.check(np.array(2100, np.int32))
    assert "1,024 iterations" in heard and "2,048 iterations" in heard and "compiled code" in heard


def test_nothing_compared_in_time_is_no_agreement() -> None:
    with pytest.raises(Problem), tosaic.Limits(seconds=0.001):
        tosaic.load(COUNTDOWN).main.check(np.array(5, np.int32))
