"""Whatever a text holds, reading it ends in a module or in a Problem with a position, soon and in little memory."""
from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .effort import calls_made

SMALL = """#loc = loc("f.py":1:2)
!t = tensor<2xf32>
module attributes {a.b = "\\0Cx", c.d = [1 : i32, {e = @f}], m = affine_map<(d0) -> (d0)>} {
  tosa.variable @"s/t" = dense<1.5> : tensor<2xf32>
  func.func @main(%a: !t {x.y = ["p"]}, %n: tensor<i32>) -> (tensor<2xf32> {x.z}) attributes {k} {
    %0 = "tosa.const"() <{values = dense<[[1.0, -2.5e-1]]> : tensor<1x2xf32>}> : () -> tensor<1x2xf32> loc(#loc)
    %1 = "tosa.const"() <{values = dense<"0x0000803F0000A040"> : tensor<2xf32>}> : () -> tensor<2xf32>
    %2 = "tosa.const"() <{values = dense_resource<w> : tensor<2xf32>}> : () -> tensor<2xf32>
    %s = tosa.const_shape {values = dense<2> : tensor<1xindex>} : () -> !tosa.shape<1>
    %3 = tosa.reshape %0, %s : (tensor<1x2xf32>, !tosa.shape<1>) -> tensor<2xf32>
    %4 = tosa.clamp %3 min_val(0.0 : f32) max_val(6.0 : f32) nan_mode<IGNORE> : (!t) -> !t
    %5:2 = tosa.while_loop (%i = %n, %v = %4) : (tensor<i32>, !t) -> (tensor<i32>, !t) {
      %6 = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %6 : tensor<i1>
    } do {
    ^bb0(%i: tensor<i32>, %v: !t):
      %6 = "tosa.cond_if"(%c) ({ "tosa.yield"(%v) : (!t) -> () }, {
        "tosa.yield"(%1) : (!t) -> () }) : (tensor<i1>) -> !t
      tosa.yield %i, %6 : tensor<i32>, !t
    }
    %7 = tosa.variable_read @"s/t" : tensor<2xf32>
    tosa.variable_write @"s/t", %5#1 : tensor<2xf32>
    return %7 : tensor<2xf32>
  }
}
{-# dialect_resources: { builtin: { w: "0x040000000000803F0000A040" } } #-}
""".replace("%n: tensor<i32>)", "%n: tensor<i32>, %c: tensor<i1>)")


def outcome(text: str | bytes) -> Module | Problem:
    """What reading, verifying and printing end in; anything but a Problem is raised."""
    try:
        module = read_module(text)
    except Problem as problem:
        assert problem.position is not None or problem.kind == "file", problem
        assert str(problem)
        return problem
    try:
        verify(module)
    except Problem as problem:
        assert str(problem)
    assert read_module(print_module(module))
    return module


def test_the_text_that_is_changed_below_is_sound() -> None:
    module = read_module(SMALL)
    verify(module)
    assert len(module.functions[0].body.operations) == 9


def test_every_truncation_ends_in_a_module_or_a_problem() -> None:
    whole = SMALL.encode()
    outcomes = [outcome(whole[:n]) for n in range(len(whole))]
    problems = sum(isinstance(o, Problem) for o in outcomes)
    assert problems > len(whole) * 0.9


def test_every_deletion_of_a_line_ends_in_a_module_or_a_problem() -> None:
    lines = SMALL.splitlines(keepends=True)
    for n in range(len(lines)):
        outcome("".join(lines[:n] + lines[n + 1:]))


TOKENS = ["%0", "%9", "#loc", "!t", "@f", '"', "(", ")", "{", "}", "[", "]", "<", ">", "<{", "}>", ":", "::", "=",
          ",", "->", "-1", "0x", "1e9", "99999999999999999999", "dense<", "tensor<", "tensor<?x", "tensor<0x",
          "array<i64: ", "loc(", "^bb1", "tosa.add", "module", "func.func", "return", "tosa.yield", "{-#", "#-}", "//",
          "\\", "\0", "é", "\n", " ", "true", "i1", "f64", "bf16", "ui64", "index", "!tosa.shape<", "#",
          "sparse<[[0]], [1.0]>"]


def mutated(random: random.Random, text: str) -> str:
    """`text` with a few places changed: characters replaced, parts removed, doubled or moved, tokens put in."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        at, size = random.randrange(len(text) + 1), random.choice((1, 1, 2, 5, 20, 80))
        piece = text[at:at + size]
        match random.randrange(6):
            case 0:
                text = text[:at] + text[at + size:]
            case 1:
                text = text[:at] + piece + text[at:]
            case 2:
                to = random.randrange(len(text) + 1)
                text = text[:to] + piece + text[to:]
            case 3:
                text = text[:at] + chr(random.choice((random.randrange(128), random.randrange(0x3000)))) + text[at + 1:]
            case _:
                text = text[:at] + random.choice(TOKENS) + text[at + random.choice((0, 1, len(piece))):]
    return text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(10))
def test_mutations_end_in_a_module_or_a_problem(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(100):
        text = mutated(source, SMALL)
        try:
            outcome(text)
        except Exception as error:
            raise AssertionError(f"reading this text ends in {error!r}:\n{text}") from error


def test_random_bytes_end_in_a_problem() -> None:
    source = random.Random(1)
    for _ in range(300):
        outcome(source.randbytes(source.randrange(60)))


def nested_regions(depth: int) -> str:
    opened = '"x.y"() ({ ' * depth
    return f"func.func @f() {{ {opened}{'}) : () -> () ' * depth} return }}"


DEEP: dict[str, Callable[[int], str]] = {
    "square brackets": lambda n: "module attributes {a = " + "[" * n,
    "closed lists": lambda n: "module attributes {a = " + "[" * n + "]" * n + "} {}",
    "dictionaries": lambda n: "module attributes {a = " + "{a = " * n + "1" + "}" * n + "} {}",
    "parentheses": lambda n: "module {} loc(" + "(" * n,
    "regions": nested_regions,
    "open regions": lambda n: "func.func @f() { " + '"x.y"() ({ ' * n,
    "modules": lambda n: "module { " * n,
    "tensor types": lambda n: "func.func @f(%a: " + "tensor<" * n + "f32" + ">" * n + ") { return }",
    "opaque types": lambda n: "func.func @f(%a: " + "!a.b<" * n + ">" * n + ") { return }",
    "open opaque types": lambda n: "func.func @f(%a: !a" + "<" * n,
    "a list of elements": lambda n: "module attributes {a = dense<" + "[" * n + "]" * n + "> : tensor<1xi8>} {}",
    "arrows": lambda n: "func.func @f(%a: !a<" + "->" * n + ") { return }",
    "dashes": lambda n: "func.func @f(%a: !a<" + "-" * n + ") { return }",
    "symbols": lambda n: "module attributes {a = @a" + "::@a" * n + "} {}",
    "an unclosed string": lambda n: 'module attributes {a = "' + '\\"' * n,
    "operands": lambda n: 'func.func @f(%a: tensor<f32>) { "x.y"(%a' + ", %a" * n + ") return }",
    "results": lambda n: "func.func @f() { %a" + ", %a" * n + ' "x.y"() : () -> () return }',
    "types": lambda n: 'func.func @f() { "x.y"() : (tensor<f32>' + ", tensor<f32>" * n + " return }",
    "digits": lambda n: "module attributes {a = " + "9" * n + "} {}",
    "digits of a float": lambda n: "module attributes {a = 1." + "9" * n + " : f32} {}",
    "digits of an extent": lambda n: "func.func @f(%a: tensor<" + "9" * n + "xf32>) { return }",
    "digits of a result": lambda n: "func.func @f(%a: tensor<f32>) { return %a#" + "9" * n + " : tensor<f32> }",
    "digits of a count": lambda n: "func.func @f() { %a:" + "9" * n + ' = "x.y"() : () -> () return }',
    "aliases": lambda n: "".join(f"#a{i} = [#a{i + 1}]\n" for i in range(n // 10)) + "module attributes {a = #a0} {}",
    "aliases of lists": lambda n: "".join(f"#a{i} = {'[' * 50}#a{i + 1}{']' * 50}\n" for i in range(n // 100))
                                  + "module attributes {a = #a0} {}",
    "type aliases": lambda n: "".join(f"!a{i} = !a{i + 1}\n" for i in range(n // 10)) + "func.func @f(%a: !a0)",
    "white space": lambda n: "module" + " \n" * n + "{",
    "comments": lambda n: "// comment\n" * n + "$",
    "dimensions": lambda n: "func.func @f(%a: tensor<" + "1x" * n + "f32>) -> tensor<f32> { return %a : tensor<f32> }",
}


ALLOWED = {"symbols", "digits of a float"}
"""What may be as long as it likes."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", DEEP)
def test_a_long_row_of_the_same_ends_in_a_problem_in_linear_time(what: str) -> None:
    found: list[Module | Problem] = []
    few, many = (calls_made(lambda: found.append(outcome(text))) for text in map(DEEP[what], (10_000, 20_000)))
    assert all(isinstance(f, Problem) or what in ALLOWED for f in found)
    assert many <= 2 * few + 100


def test_regions_may_be_nested_up_to_the_limit_even_with_little_stack() -> None:
    def called(times: int, depth: int) -> Module | Problem:
        return called(times - 1, depth) if times else outcome(nested_regions(depth))
    assert isinstance(called(300, 63), Module)
    found = called(300, 64)
    assert isinstance(found, Problem)
    assert found.kind == "nesting"


SMALL_BUT_LARGE = {
    "a splat": "dense<1.0> : tensor<16384x16384xf32>",
    "a list": "dense<[1.0]> : tensor<16384x16384xf32>",
    "a list of lists": "dense<[[1.0]]> : tensor<1x400000000xf32>",
    "no elements": "dense<> : tensor<0x1000000000000xf32>",
    "sparse": "sparse<[[0, 0]], [1.0]> : tensor<16384x16384xf32>",
    "bytes": 'dense<"0x00"> : tensor<2000000000xi8>',
    "a wide type": "dense<1.0> : tensor<4611686018427387904x4xf32>"}


@pytest.mark.parametrize("what", SMALL_BUT_LARGE)
def test_a_short_text_does_not_ask_for_much_memory(what: str) -> None:
    text = f"module attributes {{a = {SMALL_BUT_LARGE[what]}}} {{}}"
    read_module("module {}")
    tracemalloc.start()
    try:
        read_module(text)
    except Problem as problem:
        assert problem.position is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20


def test_reading_opens_no_file_and_imports_nothing() -> None:
    """A model names no path; the first reading of a process loads the grammar, later ones nothing."""
    outcome(SMALL)
    seen: list[str] = []
    active = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if active and event in ("open", "import", "exec", "compile", "socket.connect", "subprocess.Popen", "os.system"):
            seen.append(event)

    sys.addaudithook(hook)
    read_module(SMALL)
    with pytest.raises(Problem):
        read_module(SMALL[:500])
    active = False
    assert seen == []


def test_texts_may_be_read_by_several_threads_at_once() -> None:
    expected = print_module(read_module(SMALL))

    def read(number: int) -> str:
        if number % 3:
            return print_module(read_module(SMALL))
        assert isinstance(outcome("module attributes {a = " + "[" * 500), Problem)
        return expected

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(60))) == {expected}
