"""Language models of transformers with its StaticCache, exported as `from_torch` does by default: the tokens are PyTorch's, the
cache lives in variables from call to call, and the module's own cache stays as it was."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tosaic

torch = pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

LENGTH, VOCABULARY = 12, 64
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 32}
MODELS = {"llama": ("Llama", SIZES), "qwen2": ("Qwen2", SIZES),
          "gpt2": ("GPT2", {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32})}


class Step(torch.nn.Module):
    """One token with the cache of those before it."""

    def __init__(self, model: Any, has_buffers: bool) -> None:
        super().__init__()
        self.model, config = model, model.config
        self.cache = transformers.StaticCache(config=config, max_cache_len=LENGTH)
        heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
        self.cache.early_initialization(1, heads, config.hidden_size // config.num_attention_heads, torch.float32, "cpu")
        for number, layer in enumerate(self.cache.layers if has_buffers else ()):
            self.register_buffer(f"keys{number}", layer.keys, persistent=False)
            self.register_buffer(f"values{number}", layer.values, persistent=False)

    def forward(self, token: Any, position: Any) -> Any:
        return self.model(input_ids=token, position_ids=position[None], past_key_values=self.cache, use_cache=True).logits


def language_model(name: str) -> Any:
    torch.manual_seed(0)
    family, sizes = MODELS[name]
    head = "LMHeadModel" if name == "gpt2" else "ForCausalLM"
    return getattr(transformers, family + head)(getattr(transformers, f"{family}Config")(**sizes)).eval()


def held(step: Step) -> list[Any]:
    """The tensors of the module's own cache."""
    return [v.clone() for layer in step.cache.layers for v in vars(layer).values() if isinstance(v, torch.Tensor)]


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("has_buffers", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_tokens_are_pytorchs_and_the_cache_is_kept(name: str, has_buffers: bool) -> None:
    model = language_model(name)
    step, eager = Step(model, has_buffers), Step(model, False)
    before = held(step)
    compiled = tosaic.from_torch(step, torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    assert all(torch.equal(a, b) for a, b in zip(before, held(step), strict=True)), "the module's cache has changed"
    shapes = [v.shape for v in compiled.main.variables]
    assert sum(shape is not None and LENGTH in shape for shape in shapes) == 2 * 2
    for _ in range(2):
        token = np.array([[5]])
        for position in range(LENGTH - 2):
            with torch.no_grad():
                right = eager(torch.tensor(token), torch.tensor([position])).numpy()
            found = compiled(token, np.array([position]))
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
            assert found.argmax(-1) == right.argmax(-1)
            token = (right.argmax(-1) + position) % VOCABULARY
        eager, context = Step(model, False), tosaic.Context(f"{name} {has_buffers}")
        compiled = compiled.within(context)  # a cache of its own, from the beginning
