"""Kernels that are compiled while others are scheduled: the same results, whatever the processes do."""
from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Traced, lower, lower_and_compile
from tosaic.lowering.machine_code import worker_processes
from tosaic.lowering.machine_code.codegen import image_with
from tosaic.lowering.machine_code.link import is_supported
from tosaic.lowering.native.process import concurrent_codegen
from tosaic.lowering.native.process.concurrent_codegen import ConcurrentCodegen
from tosaic.lowering.native.process.load import native_text
from tosaic.lowering.target.presets import host

from .chain import X, chain

pytestmark = pytest.mark.skipif(not is_supported(), reason="code is linked by tosaic on x86-64 Linux")


@pytest.fixture(scope="module")
def traced() -> Traced:
    return tosaic.jit(chain).trace(X)


@pytest.fixture(scope="module")
def expected(traced: Traced) -> Any:
    return np.asarray(traced.lower().compile()(X))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every function is a batch, and there are three processors."""
    monkeypatch.setattr(concurrent_codegen, "LINES_OF_A_BATCH", 1)
    monkeypatch.setattr(concurrent_codegen, "processors", lambda: 3)
    yield


def compiled(traced: Traced) -> Any:
    return np.asarray(lower_and_compile(traced, None, tosaic.Context("concurrent"))[0](X))


@pytest.mark.usefixtures("small_batches")
def test_the_results_are_the_same(traced: Traced, expected: Any) -> None:
    assert np.array_equal(compiled(traced), expected)


@pytest.mark.usefixtures("small_batches")
def test_the_image_is_the_same_every_time(traced: Traced) -> None:
    first, second = (lower_and_compile(traced, None, None)[1] for _ in range(2))
    assert first == second and first.form == "linked"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("how", [lambda text: os._exit(0), lambda text: os.kill(os.getpid(), signal.SIGKILL), lambda text: b""])
def test_processes_that_fail_are_made_up_for(traced: Traced, expected: Any, how: Callable[[str], bytes],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    parent, made = os.getpid(), concurrent_codegen.object_of
    monkeypatch.setattr(concurrent_codegen, "object_of",
                        lambda text, target: made(text, target) if os.getpid() == parent else how(text))
    assert np.array_equal(compiled(traced), expected)


@pytest.mark.usefixtures("small_batches")
def test_the_module_declares_what_is_compiled_already_and_defines_what_is_not(traced: Traced) -> None:
    with ConcurrentCodegen(host()) as found:
        turn = itertools.cycle((True, False))
        lowered = lower(traced, None, ready=lambda f: found.add(f) if next(turn) else None)
        text = native_text(lowered.program, lowered.plan, host(), found.emitted)
        texts, definitions = found.emitted.texts, found.emitted.definitions
        assert len(texts) < len(lowered.program.functions) and len(definitions) <= len(texts)
        declared = [line for line in text.split("\n") if line.startswith("declare hidden")]
        assert 0 < len(declared) <= len(definitions) and "define internal void @program.kernel_" in text
        image = image_with(found, text, host())
    assert image is not None and image.form == "linked"


def test_a_small_program_takes_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes.os, "fork", None)
    assert np.array_equal(compiled(tosaic.jit(lambda x: x + 1).trace(X)), X + 1)


@pytest.mark.usefixtures("small_batches")
def test_a_compile_that_fails_leaves_no_process(traced: Traced) -> None:
    with pytest.raises(KeyError), ConcurrentCodegen(host()) as found:
        for function in lower(traced, None).program.functions:
            found.add(function)
        workers = list(found._workers)
        raise KeyError
    assert workers
    for worker in workers:
        with pytest.raises(ChildProcessError):
            os.waitpid(worker.number, os.WNOHANG)
