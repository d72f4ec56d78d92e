"""Conversions of PyTorch's models without an import of torch-mlir for each."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tosaic.jit.models.torch_mlir.to_tosa import ConversionRequest

from .warm_converter import warm_converter


@pytest.fixture(scope="session")
def converter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
    """A command that converts what its last argument asks for."""
    with warm_converter(tmp_path_factory.mktemp("torch_mlir")) as command:
        yield command


@pytest.fixture
def warm(converter: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go to a process that has imported torch-mlir already."""
    cold = ConversionRequest.command
    monkeypatch.setattr(ConversionRequest, "command", lambda self, *result: [*converter, cold(self, *result)[-1]])
