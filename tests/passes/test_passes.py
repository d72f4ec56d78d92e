"""Passes and strategies as pages: each file shows one thing that a pass does, or lets be.

A page is one or more sentences, options of `tosaic show` where it needs any, a text, a line `// -----`, and the text after
the pass of the folder's name. It is a graph (`.mlir`), kernels (`.kernels`) or loops (`.loops`); the pass runs on it alone,
without those before it. `// unchanged` stands for the same text, a `Problem` for itself. A page of `schedule` shows the
schedule and the loops. Passes that run while a model is loaded, before the table of the pipeline begins, have folders, too
(`LOADING`).

    pytest tests/passes                     compares
    pytest tests/passes --update-golden     writes what follows `// -----` again; read the difference before you commit it
"""
from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tosaic.jit.command_line.cli import parser
from tosaic.jit.command_line.memory_options import plain
from tosaic.jit.command_line.model_options import options_with_target
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.kernels.text import print_kernels
from tosaic.lowering.kernels.text_reader import read_kernels
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.options import CompileOptions
from tosaic.lowering.pipeline import GRAPH_PASSES, PASSES, State, behind_the_graph
from tosaic.lowering.rewrite.fold_convolutions import fold_convolutions
from tosaic.lowering.rewrite.infer_shapes import infer_shapes
from tosaic.lowering.rewrite.narrow_doubles import narrow_doubles
from tosaic.lowering.rewrite.open_bounds import open_bounds
from tosaic.lowering.rewrite.tensorflow.translate import to_tosa
from tosaic.lowering.schedule.contraction.contraction_strategies import MICRO_KERNELS, ContractionStrategy
from tosaic.lowering.schedule.schedule_text import print_schedule
from tosaic.lowering.schedule.strategies import KERNEL_STRATEGIES, STRATEGIES
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.records import dataclass

HERE = Path(__file__).parent
BREAK = "// -----\n"
UNCHANGED = "// unchanged\n"
SETTINGS = ("options:", "matrix unit:")
TARGET = "--target x86-64-v3"
"""The machine of pages that name none."""
LOADING: dict[str, Callable[[Module], Module]] = {
    "to-tosa": lambda module: to_tosa(module, module.functions[0].name), "fold-convolutions": fold_convolutions,
    "infer-shapes": infer_shapes, "narrow-doubles": narrow_doubles, "open-bounds": open_bounds}
"""Rewrites of graphs that loading a model does."""
PAGES = sorted(p for p in HERE.rglob("*.*") if p.suffix in (".mlir", ".kernels", ".loops"))


@dataclass(frozen=True, slots=True)
class Page:
    """A file's contents."""
    path: Path
    sentences: str
    options: str
    matrix_unit: tuple[str, ...]
    """What the machine's matrix unit multiplies: no target of a name has one, as only a process can ask for it."""
    given: str
    expected: str

    @property
    def name(self) -> str:
        """The pass."""
        return self.path.relative_to(HERE).parts[0]


def read_page(path: Path) -> Page:
    head, separator, expected = path.read_text().partition(BREAK)
    lines = head.splitlines(keepends=True)
    count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
    comments = [line[2:].strip() for line in lines[:count]]
    sentences = " ".join(c for c in comments if not c.startswith(SETTINGS))
    options, unit = (" ".join(c.removeprefix(s) for c in comments if c.startswith(s)) for s in SETTINGS)
    return Page(path, sentences, options, tuple(unit.split()), "".join(lines[count:]), expected if separator else "")


def options_of(page: Page) -> CompileOptions:
    """What `tosaic show` makes of the page's options."""
    given = shlex.split(page.options)
    given = given if "--target" in given else [*shlex.split(TARGET), *given]
    found = options_with_target(parser().parse_args(["show", "page", *plain(given)]))
    assert found is not None and found.target is not None
    return replace(found, target=replace(found.target, matrix_unit=page.matrix_unit))


def state_of(page: Page) -> State:
    """The state before the pass."""
    options = options_of(page)
    match page.path.suffix:
        case ".mlir":
            module = read_module(page.given, page.path.name)
            return replace(behind_the_graph(module.functions[0].name, options), module=module)
        case ".kernels":
            kernels = read_kernels(page.given, page.path.name)
            return replace(behind_the_graph(kernels.name, options), kernels=kernels)
        case _:
            program = read_program(page.given, page.path.name)
            return replace(behind_the_graph(program.name, options), programs=(program,))


def after(page: Page) -> str:
    """The text after the pass."""
    try:
        state = state_of(page)
        if page.name in LOADING:
            return graph_text(LOADING[page.name](state.graph), state.graph)
        found = next(p for p in PASSES if p.name == page.name)
        made = found.run(state)
    except Problem as problem:
        return f"{problem}\n"
    match found.stage, found.name:
        case "graph", _:
            return graph_text(made.graph, state.graph)
        case "kernels", _:
            text = print_kernels(made.kernels, whole=True)  # type: ignore[arg-type]
            return UNCHANGED if state.kernels and text == print_kernels(state.kernels, whole=True) else text
        case "loops", "schedule":
            return f"{print_schedule(made.program.schedules)}{BREAK}{print_program(made.program)}"
        case "loops", _:
            return UNCHANGED if made == state else print_program(made.program)
        case _:
            return f"{made.plan}\n"


def graph_text(made: Module, given: Module) -> str:
    """A graph, which is sound."""
    verify(made)
    text = print_module(made)
    return UNCHANGED if text == print_module(given) else text


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(HERE).with_suffix("")))
def test_page(path: Path, request: pytest.FixtureRequest) -> None:
    page = read_page(path)
    found = after(page)
    if request.config.getoption("--update-golden"):
        path.write_text(path.read_text().partition(BREAK)[0] + BREAK + found)
    assert read_page(path).expected == found, f"{path}: {page.sentences}"


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(HERE).with_suffix("")))
def test_a_page_begins_with_a_sentence(path: Path) -> None:
    page = read_page(path)
    assert re.fullmatch(r"[A-Z`].*\.", page.sentences) and page.given.strip() and page.expected, path


def test_every_pass_has_a_page_and_every_rewrite_one_where_it_does_nothing() -> None:
    pages = [read_page(path) for path in PAGES]
    names = {page.name for page in pages}
    assert names == {*LOADING, *(p.name for p in PASSES)}
    rewrites = {*LOADING, *(p.name for p in GRAPH_PASSES)}
    assert {p.name for p in pages if p.expected == UNCHANGED} >= rewrites - {"to-tosa"}
    assert {p.name for p in pages if p.expected != UNCHANGED} == names


def test_every_strategy_has_a_page_in_its_folder() -> None:
    folders = {p.parent.name for p in PAGES if p.parent.parent.name == "schedule"}
    strategies = {*KERNEL_STRATEGIES, *STRATEGIES} - {ContractionStrategy}
    wanted = {re.sub(r"(?<!^)([A-Z])", r"-\1", s.__name__).lower() for s in strategies}
    wanted |= {f"contraction-{name}" for name in MICRO_KERNELS}
    assert wanted <= folders, wanted - folders
