"""PyTorch modules through torch.export and torch-mlir: what they compute is what PyTorch computes, call after call."""
from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tosaic

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra `torch`)")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")
Array = np.ndarray


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    """Weights and inputs are the same in every run; variables are gone after it."""
    torch.manual_seed(0)
    yield
    tosaic.default_context.clear()


def arrays(value: Any) -> list[Array]:
    """The arrays of what a module gives, in order."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    return [value] if isinstance(value, np.ndarray) else [array for item in value for array in arrays(item)]


def agree(found: Any, expected: Any) -> None:
    """Floats within 1e-5 of the range of each result, all else equal."""
    for actual, right in zip(arrays(found), arrays(expected), strict=True):
        assert (actual.shape, actual.dtype) == (right.shape, right.dtype)
        if right.dtype.kind == "f":
            np.testing.assert_allclose(actual, right, rtol=0, atol=1e-5 * float(np.abs(right).max()))
        else:
            np.testing.assert_array_equal(actual, right)


def converted(module: Any, *inputs: Any, **options: Any) -> Any:
    """The model, after it has given on these inputs what the module gives."""
    model = tosaic.from_torch(module, *inputs, **options)
    agree(model(*inputs), module.eval()(*inputs))
    return model


# ---- modules -------------------------------------------------------------------------------------------------------------
class Residual(nn.Module):
    """A small network of the usual parts: convolutions, a batch norm that has seen data, a pool, a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8)
        self.depthwise, self.pointwise = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 8, 1)
        self.pool, self.out = nn.MaxPool2d(2), nn.Linear(8, 5)
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: Any) -> Any:
        y = self.pool(torch.relu(self.norm(self.first(x))))
        y = y + torch.nn.functional.relu6(self.pointwise(self.depthwise(y)))
        return self.out(y.mean((2, 3)))


class Applied(nn.Module):
    """A function, and the modules that it uses."""

    def __init__(self, function: Any, **modules: Any) -> None:
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def perceptron() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4), nn.Softmax(-1))


def test_a_perceptron() -> None:
    model = converted(perceptron(), torch.randn(2, 8))
    assert model.main.inputs == ("input: tensor<2x8xf32>",) and model.main.outputs == ("tensor<2x4xf32>",)


def test_a_convolutional_network() -> None:
    converted(Residual(), torch.randn(2, 3, 16, 16))


def test_a_transformer_layer() -> None:
    converted(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(2, 5, 16))


def test_a_transformer_layer_where_pytorch_would_take_its_own_fast_path() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    with torch.no_grad():
        converted(layer, torch.randn(2, 5, 16))


def test_a_recurrent_network_gives_a_nest_of_results() -> None:
    lstm = nn.LSTM(6, 4, num_layers=2, batch_first=True)
    x = torch.randn(2, 5, 6)
    model = tosaic.from_torch(lstm, x)
    sequence, (hidden, cell) = lstm.eval()(x)
    agree(model(x), [sequence, hidden, cell])


def test_tokens_and_booleans_keep_their_types() -> None:
    def forward(self: Any, tokens: Any, mask: Any) -> Any:
        y = self.table(tokens) * mask[..., None]
        return y.sum(1), tokens.argmax(1), ~mask
    module = Applied(forward, table=nn.Embedding(10, 4))
    converted(module, torch.randint(0, 10, (2, 3)), torch.tensor([[True, False, True], [True, True, False]]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [
    pytest.param(lambda self, x: (x * 3).to(torch.int32), id="to_int"),
    pytest.param(lambda self, x: x.var(1) + x.std(0, unbiased=False).sum(), id="variance"),
    pytest.param(lambda self, x: x.masked_fill(x.tril() == 0, float("-inf")).softmax(1), id="mask"),
    pytest.param(lambda self, x: x.roll((1, -2), (0, 1)) + x.roll(5), id="roll"),
    pytest.param(lambda self, x: torch.nn.functional.interpolate(x[None, None], scale_factor=2), id="nearest"),
    pytest.param(lambda self, x: (torch.ones(3), x + 1), id="constant_result"),
    pytest.param(lambda self, x: ((x * 9).to(torch.int32) & 5) ^ 3, id="bits"),
    pytest.param(lambda self, x: torch.nn.functional.group_norm(x, 2), id="group_norm")])
def test_operations_that_need_care(function: Any) -> None:
    converted(Applied(function), torch.randn(4, 6))


def test_an_infinite_value_passes_a_relu() -> None:
    model = tosaic.from_torch(nn.ReLU(), torch.zeros(3))
    np.testing.assert_array_equal(model(np.array([np.inf, -np.inf, 1], np.float32)), np.array([np.inf, 0, 1], np.float32))


# ---- how it is called ----------------------------------------------------------------------------------------------------
def test_the_module_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    module[2].eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x = torch.randn(2, 3)
    model = tosaic.from_torch(module, x)
    assert [m.training for m in module.modules()] == [True, True, True, False]
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    agree(model(x), module.eval()(x))


def test_numbers_are_fixed_and_keywords_are_inputs() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Any, factor: int, *, shift: Any) -> Any:
            return x * factor + shift, None
    x, shift = torch.randn(2, 3), torch.randn(3)
    model = tosaic.from_torch(Scaled(), x, 3, kwargs={"shift": shift})
    assert model.main.inputs == ("x: tensor<2x3xf32>", "shift: tensor<3xf32>")
    agree(model({"x": x.numpy(), "shift": shift.numpy()}), x * 3 + shift)


def test_an_exported_program_is_taken_as_it_is() -> None:
    module, x = perceptron(), torch.randn(2, 8)
    agree(tosaic.from_torch(torch.export.export(module, (x,)))(x), module(x))


def test_half_precision() -> None:
    x = torch.randn(2, 3).half()
    module = nn.Linear(3, 4).half()
    found = tosaic.from_torch(module, x)(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=2e-3)


class Determinant(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x + 1
        return torch.linalg.det(y)


# ---- open extents --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("make", "shape", "graph"), [
    pytest.param(perceptron, (3, 8), "tosa.matmul", id="perceptron"),
    pytest.param(Residual, (3, 3, 8, 8), "tosa.conv2d", id="convolutions"),
    pytest.param(lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (3, 5, 16), "torch.exported_program",
                 id="transformer")])
def test_a_batch_that_is_open(make: Any, shape: tuple[int, ...], graph: str) -> None:
    module = make().eval()
    model = tosaic.from_torch(module, torch.randn(shape), dynamic_shapes=({0: Dim("batch")},))
    assert graph in str(model) and model.main.is_dynamic and "tensor<?x" in model.main.inputs[0]
    for batch in (1, 3):
        x = torch.randn(batch, *shape[1:])
        agree(model(x), module(x))


class Causal(nn.Module):
    """Attention of each token to those before it, by a mask that is cut out of a larger one."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv = nn.Embedding(10, 8), nn.Linear(8, 24)
        self.register_buffer("mask", torch.ones(12, 12, dtype=torch.bool).tril())

    def forward(self, tokens: Any) -> Any:
        batch, length = tokens.shape
        q, k, v = self.qkv(self.table(tokens)).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)).masked_fill(~self.mask[:length, :length], float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 8)


def test_a_length_that_is_open_beside_the_batch() -> None:
    module = Causal().eval()
    open_extents = ({0: Dim("batch"), 1: Dim("length", max=11)},)
    model = tosaic.from_torch(module, torch.zeros((2, 9), dtype=torch.int64), dynamic_shapes=open_extents)
    assert model.main.inputs == ("tokens: tensor<?x?xi64>",)
    for shape in ((1, 5), (3, 11)):
        tokens = torch.randint(0, 10, shape)
        agree(model(tokens), module(tokens))
    with pytest.raises(tosaic.Problem, match="exported for 0 to 11"):
        model(torch.zeros((1, 13), dtype=torch.int64))


def test_a_shape_that_does_not_fit_is_refused() -> None:
    model = tosaic.from_torch(nn.Conv1d(4, 3, 3), torch.randn(3, 4, 9), dynamic_shapes=({0: Dim("batch")},))
    assert "torch.exported_program" in str(model)
    with pytest.raises(tosaic.Problem, match=r"input is tensor<\?x4x9xf32>, an array of tensor<3x4x8xf32> does not fit"):
        model(torch.randn(3, 4, 8))


def test_what_cannot_be_lowered_for_any_shape_is_refused_at_once() -> None:
    with pytest.raises(tosaic.Problem, match=r"aten\.linalg_det cannot be lowered"):
        tosaic.from_torch(Determinant(), torch.randn(2, 3, 3), dynamic_shapes=({0: Dim("n")},))


# ---- state ---------------------------------------------------------------------------------------------------------------
class Counter(nn.Module):
    """Adds up what it is given, and counts."""

    def __init__(self, start: float = 0.5) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((3,), start))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: Any) -> Any:
        before = self.total.clone()
        self.total.add_(x)
        self.calls += 1
        return self.total * 2 - before, self.calls.clone()


def test_a_buffer_that_is_written_outlives_calls() -> None:
    module, model = Counter(), tosaic.from_torch(Counter(), torch.zeros(3), name="counter")
    for _ in range(3):
        x = torch.randn(3)
        agree(model(x), module(x))
    agree(tosaic.default_context.read("counter.total"), module.total)
    assert tosaic.default_context.read("counter.calls") == 3
    tosaic.default_context.reset("counter.total")
    np.testing.assert_array_equal(tosaic.default_context.read("counter.total"), np.full(3, 0.5, np.float32))


def test_state_is_shared_by_name_alone() -> None:
    x = torch.ones(3)
    first, second = tosaic.from_torch(Counter(), x), tosaic.from_torch(Counter(4.0), x)
    first(x), second(x), second(x)
    assert [int(m.context.read("Counter.calls")) for m in (first, second)] == [1, 2]
    shared = [tosaic.from_torch(Counter(), x, name="one") for _ in range(2)]
    for model in shared:
        model(x)
    assert tosaic.default_context.read("one.calls") == 2
    again = tosaic.from_torch(type("one", (Counter,), {})(), x)
    again(x)
    assert tosaic.default_context.read("one.calls") == 2


def test_without_state_buffers_are_inputs_and_results() -> None:
    module, model = Counter(), tosaic.from_torch(Counter(), torch.zeros(3), state=False)
    assert [text.partition(":")[0] for text in model.main.inputs] == ["total", "calls", "x"]
    state = (np.full(3, 0.5, np.float32), np.array(0, np.int64))
    for _ in range(2):
        x = torch.randn(3)
        *state, found, calls = model(*state, x)
        agree([found, calls], module(x))
    assert not tosaic.default_context.snapshot()


def test_a_cache_is_filled_row_by_row() -> None:
    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.zeros(6, 4))

        def forward(self, x: Any, at: Any) -> Any:
            self.rows[at] = x
            return self.rows.sum(0)
    module, model = Cache(), tosaic.from_torch(Cache(), torch.zeros(4), torch.tensor([0]))
    for row in (0, 5, 2, 0):
        x, at = torch.randn(4), torch.tensor([row])
        agree(model(x, at), module(x, at))


def test_a_batch_norm_in_training_learns_its_statistics() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    model = tosaic.from_torch(module, torch.randn(2, 3, 5, 5), training=True, name="norm")
    for _ in range(2):
        x = torch.randn(2, 3, 5, 5)
        agree(model(x), module.train()(x))
    for name, buffer in module.named_buffers():
        agree(tosaic.default_context.read(f"norm.{name}"), buffer)


def test_state_and_an_open_batch_together() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv1d(4, 3, 3)
            self.register_buffer("total", torch.zeros(3, 6))

        def forward(self, x: Any) -> Any:
            self.total += self.layer(x).sum(0)
            return self.total
    module = Sum().eval()
    model = tosaic.from_torch(module, torch.randn(3, 4, 8), dynamic_shapes=({0: Dim("batch")},))
    for batch in (2, 1, 3):
        x = torch.randn(batch, 4, 8)
        agree(model(x), module(x).clone())


# ---- what is refused -----------------------------------------------------------------------------------------------------
def refused(module: Any, *inputs: Any, **options: Any) -> tosaic.Problem:
    with pytest.raises(tosaic.Problem) as caught:
        tosaic.from_torch(module, *inputs, **options)
    assert caught.value.help
    return caught.value


def line_of(problem: tosaic.Problem) -> str:
    assert problem.position and problem.position.source.name == __file__
    return problem.position.source.line(problem.position.line) or ""


def test_an_operation_that_cannot_be_lowered_is_named_with_its_line() -> None:
    problem = refused(Determinant(), torch.randn(3, 3))
    assert problem.unsupported and problem.message == "aten.linalg_det cannot be lowered to TOSA"
    assert "torch.linalg.det(y)" in line_of(problem)


def test_control_flow_that_depends_on_values_is_refused() -> None:
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x
    assert "torch.export cannot trace Branch" in refused(Branch(), torch.randn(3)).message

    class Conditional(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    assert "'cond'" in refused(Conditional(), torch.randn(3)).message


def test_a_mistake_in_forward_is_shown_at_its_line() -> None:
    class Wrong(nn.Module):
        def forward(self, x: Any) -> Any:
            return x @ x
    problem = refused(Wrong(), torch.randn(2, 3))
    assert "return x @ x" in line_of(problem) and isinstance(problem.__cause__, Exception)


@pytest.mark.parametrize(("module", "message"), [
    pytest.param(Applied(lambda self, x: x + torch.rand_like(x)), "rand_like of Applied makes random numbers", id="random"),
    pytest.param(Applied(lambda self, x: x.double().sum()), "of Applied makes float64, which TOSA does not have", id="double"),
    pytest.param(Applied(lambda self, x: x.to(torch.uint8)), "of Applied makes uint8", id="unsigned"),
    pytest.param(Applied(lambda self, x: x.add_(1)), "writes into its argument", id="argument_written")])
def test_what_would_become_something_else_is_refused(module: Any, message: str) -> None:
    assert message in refused(module, torch.randn(3)).message


def test_dropout_in_training_is_refused() -> None:
    problem = refused(nn.Sequential(nn.Linear(3, 4), nn.Dropout()), torch.randn(2, 3), training=True)
    assert "makes random numbers" in problem.message and "training=False" in str(problem.help)


def test_an_unsigned_input_is_named() -> None:
    problem = refused(Applied(lambda self, image: image.float() / 255), torch.zeros(3, dtype=torch.uint8))
    assert re.search(r"of Applied is uint8", problem.message)


def test_something_else_than_a_module_is_refused() -> None:
    assert refused(lambda x: x, torch.zeros(1)).kind == "argument"


@pytest.mark.parametrize(("function", "shape"), [
    (lambda x: torch.nn.functional.unfold(x, (3, 3), padding=1), (1, 2, 6, 6)),
    (lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (3, 5)), (1, 3, 7, 9)),
    (lambda x: x.reshape(1, 2, 2, 3, 1, 2, 3).permute(6, 0, 1, 2, 3, 4, 5) + 1, (2, 2, 3, 6)),
], ids=["unfold", "adaptive_avg_pool2d", "reshape"])
def test_a_tensor_of_rank_7_in_between_is_no_reason_to_refuse_a_module(function: Any, shape: tuple[int, ...]) -> None:
    class Function(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    model = tosaic.from_torch(Function(), x)
    np.testing.assert_allclose(model(x.numpy()), function(x).numpy(), rtol=1e-6, atol=1e-6)


class PlainState(nn.Module):
    """A module that keeps what `change` changes in a plain attribute."""

    def __init__(self, first: Any, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.value, self.change = first, change

    def forward(self, x: Any) -> Any:
        self.value = self.change(self.value)
        return x * torch.as_tensor(self.value["a"] if isinstance(self.value, dict) else self.value).sum()


@pytest.mark.parametrize(("first", "change"), [
    (1.0, lambda v: v + 1), ([1.0], lambda v: v.append(2.0) or v), ({"a": 1.0}, lambda v: v.update(a=v["a"] + 1) or v),
    (torch.ones(3), lambda v: v + 1), (np.ones(3, np.float32), lambda v: v + 1)],
    ids=["a number", "a list", "a dict", "another tensor", "an array"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_plain_state_that_forward_changes_is_a_problem(first: Any, change: Any, is_inside: bool) -> None:
    module = PlainState(copy.deepcopy(first), change)
    with pytest.raises(tosaic.Problem, match=r"reads the attribute (0\.)?value and changes it") as caught:
        tosaic.from_torch(nn.Sequential(module) if is_inside else module, torch.ones(3))
    assert "register_buffer('value'" in str(caught.value) and repr(module.value) == repr(first)


def test_a_plain_tensor_that_forward_writes_in_place_is_state() -> None:
    module = PlainState(torch.ones(3), lambda v: v.add_(1))
    model, eager = tosaic.from_torch(module, torch.ones(3)), copy.deepcopy(module)
    for _ in range(3):
        x = torch.randn(3)
        agree(model(x), eager(x))


def test_plain_attributes_that_are_made_once_or_only_written_are_as_before() -> None:
    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.last = None, None

        def forward(self, x: Any) -> Any:
            if self.scale is None:
                self.scale = 3.0
            self.last = x * self.scale
            return self.last + 1

    model = tosaic.from_torch(Once(), torch.ones(3))
    for _ in range(2):
        x = torch.randn(3)
        agree(model(x), Once()(x))


@pytest.mark.parametrize("module", [nn.ReLU(), nn.Conv1d(4, 3, 3)], ids=["by torch-mlir", "for each shape"])
def test_open_extents_keep_their_bounds(module: Any) -> None:
    """`Dim(min=, max=)`: what lies between is PyTorch's, what lies beyond is refused, as the exported program refuses it."""
    model = tosaic.from_torch(module, torch.randn(4, 4, 9), dynamic_shapes=({0: Dim("batch", min=3, max=6)},))
    for batch in (3, 4, 6):
        x = torch.randn(batch, 4, 9)
        agree(model(x), module(x))
    for batch in (1, 2, 7, 100):
        with pytest.raises(tosaic.Problem, match=rf"extent 0 of input input is {batch}, the model was exported for 3 to 6"):
            model(torch.randn(batch, 4, 9))
