"""Modules that are split and compiled by several processes: the same results, whatever a process does."""
from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import tosaic
from tosaic.lowering.machine_code import worker_processes
from tosaic.lowering.machine_code.codegen import compiled_image
from tosaic.lowering.machine_code.link import is_supported
from tosaic.lowering.machine_code.split_module import defined, split
from tosaic.lowering.native.process.load import native_text
from tosaic.lowering.target.presets import host

from .chain import WIDTHS, X, chain

linked_here = pytest.mark.skipif(not is_supported(), reason="code is linked by tosaic on x86-64 Linux")


@pytest.fixture(scope="module")
def text() -> str:
    lowered = tosaic.jit(chain).lower(X)
    return native_text(lowered.program, lowered.plan, host())


@pytest.fixture
def split_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every module is long enough to be split into as many as this pretends to have processors."""
    monkeypatch.setattr(worker_processes, "LINES_OF_A_MODULE", 1)
    monkeypatch.setattr(worker_processes, "processors", lambda: 3)
    yield


def test_each_function_is_in_one_part_and_declared_where_it_is_called(text: str) -> None:
    parts = split(text, 3)
    names = [defined(part) for part in parts]
    assert len(parts) == 3 and all(names[1:])
    assert set.union(*names) == defined(text) and sum(map(len, names)) == len(defined(text))
    for other in set.union(*names[1:]):
        assert f"declare hidden void @{other}(" in parts[0] or f'declare hidden void @"{other}"(' in parts[0]
    assert split(text, 1) == [text]


def test_a_module_of_one_function_stays_whole() -> None:
    whole = 'declare void @f()\ndefine i32 @main(ptr %frame) {\n call void @f()\n ret i32 0\n}'
    assert split(whole, 2) == [whole]


@linked_here
def test_code_in_parts_gives_the_same_results(split_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    result = np.asarray(tosaic.jit(chain).lower(X).compile()(X))
    monkeypatch.setattr(worker_processes, "processors", lambda: 1)
    assert np.array_equal(result, np.asarray(tosaic.jit(chain).lower(X).compile()(X)))
    assert result.shape == (13, WIDTHS[-1]) and result.max() == 0


@linked_here
@pytest.mark.parametrize("how", ["exit", "error", "killed"])
def test_a_process_that_fails_is_made_up_for(text: str, how: str) -> None:
    parent = os.getpid()

    def compile(part: str) -> bytes:
        if os.getpid() != parent:
            match how:
                case "exit":
                    os._exit(0)
                case "error":
                    raise AssertionError("no code today")
                case "killed":
                    os.kill(os.getpid(), 9)
        return part.encode()

    parts = split(text, 3)
    assert worker_processes.compiled(parts, compile) == [part.encode() for part in parts]


@linked_here
def test_images_are_the_same_every_time(text: str, split_up: None) -> None:
    assert compiled_image(text, host()) == compiled_image(text, host())
    assert compiled_image(text, host()).form == "linked"


def test_small_modules_take_no_process(text: str) -> None:
    assert worker_processes.module_count(text) == 1
