"""Operations that torch-mlir lowers in some forms only: modules and functions of them give what PyTorch gives."""
from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra `torch`)")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")

from torch import nn  # noqa: E402

from .test_torch import Applied, converted  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")
ROWS = (3, 5)


def image(*shape: int) -> Any:
    torch.manual_seed(len(shape))
    return torch.randn(*shape)


CONVOLUTIONS = {
    "groups beside a stride": (lambda: nn.Conv2d(8, 12, 3, groups=4, stride=2, padding=1), (2, 8, 9, 9)),
    "groups in one dimension": (lambda: nn.Conv1d(6, 9, 3, groups=3, stride=2, bias=False), (2, 6, 15)),
    "groups in three": (lambda: nn.Conv3d(4, 6, 2, groups=2), (1, 4, 5, 5, 5)),
    "each channel, with a stride": (lambda: nn.Conv2d(4, 8, 3, groups=4, stride=2), (1, 4, 7, 7)),
    "transposed groups": (lambda: nn.ConvTranspose2d(8, 12, 3, groups=4, stride=2), (1, 8, 5, 5)),
    "each channel, transposed": (lambda: nn.ConvTranspose2d(6, 6, 3, 2, padding=1, output_padding=1, groups=6), (1, 6, 5, 5)),
    "transposed with gaps": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, dilation=(2, 3)), (1, 4, 5, 5)),
    "transposed groups with gaps": (lambda: nn.ConvTranspose1d(4, 6, 3, groups=2, dilation=3), (1, 4, 7))}
WINDOWS = {
    "places of the greatest": (lambda: nn.MaxPool2d(2, return_indices=True), (1, 3, 6, 6)),
    "places, with gaps and a border": (lambda: nn.MaxPool2d(3, 2, 1, dilation=2, return_indices=True), (2, 3, 9, 9)),
    "the greatest, with gaps": (lambda: nn.MaxPool2d(3, 2, dilation=2), (1, 3, 9, 9)),
    "the greatest of parts": (lambda: nn.AdaptiveMaxPool2d((3, 4), return_indices=True), (1, 3, 7, 11)),
    "means in three dimensions": (lambda: nn.AvgPool3d(2, 1, 1), (1, 2, 4, 5, 6)),
    "responses": (lambda: nn.LocalResponseNorm(3), (2, 6, 4, 4)),
    "columns to an image": (lambda: nn.Fold((6, 6), 3), (1, 18, 16)),
    "columns with strides": (lambda: nn.Fold((7, 8), (3, 2), stride=2, padding=1), (2, 12, 20))}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("make", "shape"), [*CONVOLUTIONS.values(), *WINDOWS.values()], ids=[*CONVOLUTIONS, *WINDOWS])
def test_modules_of_convolutions_and_windows(make: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    converted(make(), image(*shape))


FUNCTIONS = {
    "scatter_add": lambda m, x: torch.zeros(ROWS).scatter_add(1, torch.tensor([[0, 0], [2, 3], [4, 0]]), x[:, :2]),
    "scatter_add along rows": lambda m, x: torch.ones(ROWS).scatter_add(0, torch.tensor([[0, 1, 0], [0, 2, 2]]), x),
    "index_add": lambda m, x: x.index_add(0, torch.tensor([0, 2, 0]), torch.ones(3, 5), alpha=2),
    "index_add along columns": lambda m, x: x.index_add(1, torch.tensor([4, 4]), x[:, :2]),
    "index_copy": lambda m, x: x.index_copy(1, torch.tensor([1, 3]), x[:, :2] * 2),
    "index_copy, one place twice": lambda m, x: x.index_copy(0, torch.tensor([2, 2]), torch.stack([x[0], x[1]])),
    "median": lambda m, x: (*x.median(1), *x.median(0, keepdim=True)),
    "kthvalue": lambda m, x: tuple(x.kthvalue(2, 1)),
    "cdist": lambda m, x: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=1), torch.cdist(x, x + 1, p=float("inf")))}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_elements_by_their_numbers_and_order(function: Any) -> None:
    converted(Applied(function), image(*ROWS))


def test_a_cache_is_written_where_an_input_says() -> None:
    """Keys and values of a step, on the second axis."""
    def step(cache: Any, place: Any, new: Any) -> Any:
        return cache.index_copy(1, place, new)

    model = converted(Applied(lambda m, *inputs: step(*inputs)), image(2, 8, 3), torch.tensor([5]), image(2, 1, 3))
    for place in (0, 7):
        found = model(image(2, 8, 3), torch.tensor([place]), image(2, 1, 3))
        assert (torch.as_tensor(found) == step(image(2, 8, 3), torch.tensor([place]), image(2, 1, 3))).all()


@pytest.mark.parametrize("count", [0, 3, 31])
def test_integers_are_shifted(count: int) -> None:
    converted(Applied(lambda m, x: x << count), torch.tensor([1, -3, 7], dtype=torch.int32))
