"""JAX on XLA: the same mathematics, compiled by `jax.jit`, with Keras' weights; networks run through Keras' JAX backend. What
XLA compiled is kept for a later process.

int8 products write i32; their results are rescaled for the comparison only.
"""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
import jax
import jax.numpy as jnp
import numpy as np

from ..rescale import rescaled
from ..task import Loaded, Refused, Task

Function = Callable[..., Any]
"""Of the weights, the state and the inputs: results and the next state."""


def imports(task: Task) -> None:
    if task.family == "network":
        if task.is_quantised:
            raise Refused("no way from an int8 .tflite")
        task.file("keras")
        importlib.import_module("keras")


def weights(task: Task) -> dict[str, Any]:
    if task.family in ("chain", "transcendental", "softmax", "layer_norm"):
        return {}
    with np.load(task.file("npz")) as arrays:
        return {name: jnp.asarray(arrays[name]) for name in arrays.files if arrays[name].dtype != np.float64}


def product(w: Any, state: Any, x: Any) -> Any:
    if x.dtype == jnp.int8:
        return jax.lax.dot_general(x, w["kernel"], (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32), state
    return x @ w["kernel"], state


def chain(w: Any, state: Any, x: Any) -> Any:
    x = jnp.maximum(x * 1.5 + 0.25, 0.0)
    return jnp.minimum(x * x - 0.125, 6.0), state


def transcendental(w: Any, state: Any, x: Any) -> Any:
    return jnp.exp(jnp.tanh(x) * jax.nn.sigmoid(x) * 0.5), state


def softmax(w: Any, state: Any, x: Any) -> Any:
    return jax.nn.softmax(x), state


def normal(x: Any, scale: Any = 1.0, offset: Any = 0.0) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + offset


def layer_norm(w: Any, state: Any, x: Any) -> Any:
    return normal(x), state


def encoder(w: Any, state: Any, x: Any) -> Any:
    q, k, v = (jnp.einsum("btd,dhe->bthe", x, w[f"{n}0"]) + w[f"{n}1"] for n in ("query", "key", "value"))
    attended = jnp.einsum("bthe,hed->btd", jax.nn.dot_product_attention(q, k, v), w["output0"]) + w["output1"]
    y = normal(x + attended, w["first0"], w["first1"])
    h = jax.nn.gelu(y @ w["up0"] + w["up1"], approximate=True) @ w["down0"] + w["down1"]
    return normal(y + h, w["second0"], w["second1"]), state


def lstm(w: Any, state: Any, x: Any) -> Any:
    y, following = x[0], []
    for layer, (h, c) in enumerate(state):
        i, f, g, o = jnp.split(y @ w[f"kernel{layer}"] + h @ w[f"recurrent{layer}"] + w[f"bias{layer}"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        y = jax.nn.sigmoid(o) * jnp.tanh(c)
        following.append((y, c))
    return jax.nn.softmax(y @ w["kernel"] + w["bias"]), following


FAMILIES: dict[str, Function] = {
    "product": product, "chain": chain, "transcendental": transcendental, "softmax": softmax, "layer_norm": layer_norm,
    "encoder": encoder, "lstm": lstm}


def network(task: Task) -> tuple[Function, Any]:
    import keras
    model = keras.saving.load_model(task.file("keras"))
    values = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]
    return lambda w, state, x: (model.stateless_call(*w, x, training=False)[0], state), values


def load(task: Task) -> Loaded:
    jax.config.update("jax_compilation_cache_dir", f"{task.kept}/jax")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    function, w = network(task) if task.family == "network" else (FAMILIES[task.family], weights(task))
    compiled, inputs = jax.jit(function), [jnp.asarray(a) for a in task.inputs()]
    zero = jnp.zeros((1, 128), jnp.float32)
    state: list[Any] = [((zero, zero), (zero, zero)) if task.family == "lstm" else None]
    last: list[Any] = [None]

    def call() -> None:
        last[0], state[0] = compiled(w, state[0], *inputs)
        jax.block_until_ready(last[0])

    def outputs() -> list[np.ndarray]:
        arrays = [np.asarray(array) for array in jax.tree.leaves(last[0])]
        return [rescaled(arrays[0], task.file("npz"))] if task.is_quantised else arrays

    call()
    return Loaded(call, outputs)
