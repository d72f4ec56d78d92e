"""Models with state, drawn from a seed and written for each door: their variables have the same names and shapes, and differ in
first values and operators. `Pairs` calls two of them in turn and compares each with its own steps in NumPy."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tosaic

from ..tflite.files import Graph, Operator, Signature, Tensor, constant, file, ints

EXTENT, NAMES = 4, ("past0", "past1", "past2")
OPERATORS: Mapping[str, Any] = {"add": np.add, "sub": np.subtract, "max": np.maximum}
STEPS = 4


@dataclass(frozen=True)
class Variable:
    """One variable: in each step it becomes `operator` of itself and the input."""
    name: str
    first: tuple[int, ...]
    operator: str

    @property
    def array(self) -> np.ndarray:
        return np.array(self.first, np.float32)


@dataclass(frozen=True)
class Steps:
    """A model: its result is the sum of its variables after a step."""
    variables: tuple[Variable, ...]

    def results(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the calls give, alone."""
        held, found = [v.array for v in self.variables], []
        for x in inputs:
            held = [OPERATORS[v.operator](h, x) for v, h in zip(self.variables, held)]
            found.append(np.sum(held, axis=0, dtype=np.float32))
        return found


def drawn(seed: int) -> Steps:
    rng = np.random.default_rng(seed)
    return Steps(tuple(Variable(name, tuple(map(int, rng.integers(-9, 10, EXTENT))), str(rng.choice(list(OPERATORS))))
                       for name in NAMES[:rng.integers(1, len(NAMES) + 1)]))


def inputs(seed: int) -> list[np.ndarray]:
    return [x.astype(np.float32) for x in np.random.default_rng(seed).integers(-9, 10, (STEPS, EXTENT))]


# ---- doors -----------------------------------------------------------------------------------------------------------------
def of_tflite(steps: Steps, folder: Path) -> tosaic.Model:
    path = folder / "m.tflite"
    path.write_bytes(tflite_bytes(steps))
    return tosaic.load(path)


def of_from_tflite(steps: Steps, folder: Path) -> tosaic.Model:
    return tosaic.from_tflite(tflite_bytes(steps))


def tflite_bytes(steps: Steps) -> bytes:
    spelled = {"add": ("ADD", ints(0)), "sub": ("SUB", ints(0)), "max": ("MAXIMUM", ())}
    tensors, operators, first, firsts, sums = [Tensor("x", (EXTENT,))], [Operator("CALL_ONCE", options=ints(1))], [], [], []
    for v in steps.variables:
        handle, old, new = f"h_{v.name}", f"old_{v.name}", f"new_{v.name}"
        kind, options = spelled[v.operator]
        tensors += [Tensor(handle, (), "resource"), Tensor(old, (EXTENT,)), Tensor(new, (EXTENT,))]
        take = Operator("VAR_HANDLE", "", handle, (None, v.name))
        operators += [take, Operator("READ_VARIABLE", handle, old), Operator(kind, f"{old} x", new, options),
                      Operator("ASSIGN_VARIABLE", f"{handle} {new}")]
        firsts += [Tensor(handle, (), "resource"), constant(f"c_{v.name}", v.array)]
        first += [take, Operator("ASSIGN_VARIABLE", f"{handle} c_{v.name}")]
        sums.append(new)
    total = sums[0]
    for n, new in enumerate(sums[1:]):
        tensors.append(Tensor(f"sum{n}", (EXTENT,)))
        operators.append(Operator("ADD", f"{total} {new}", f"sum{n}", ints(0)))
        total = f"sum{n}"
    return file(Graph("x", total, tensors, operators, "main"), Graph("", "", firsts, first, "NoOp"),
                signatures=[Signature("main", 0, {"x": "x"}, {total: "y"})])


def of_onnx(steps: Steps, folder: Path) -> tosaic.Model:
    from onnx import TensorProto, helper
    spelled = {"add": "Add", "sub": "Sub", "max": "Max"}
    nodes = [helper.make_node(spelled[v.operator], [v.name, "x"], [f"{v.name}_out"]) for v in steps.variables]
    nodes.append(helper.make_node("Sum", [f"{v.name}_out" for v in steps.variables], ["y"]))

    def tensor(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [EXTENT])
    graph = helper.make_graph(nodes, "steps", [tensor(n) for n in ("x", *(v.name for v in steps.variables))],
                              [tensor(n) for n in ("y", *(f"{v.name}_out" for v in steps.variables))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return tosaic.from_onnx(model, state={v.name: (f"{v.name}_out", v.array) for v in steps.variables})


def of_torch(steps: Steps, folder: Path) -> tosaic.Model:
    import torch
    return tosaic.from_torch(torch_module(steps), torch.zeros(EXTENT))


def of_exported_program(steps: Steps, folder: Path) -> tosaic.Model:
    import torch
    path = folder / "m.pt2"
    torch.export.save(torch.export.export(torch_module(steps), (torch.zeros(EXTENT),)), path)
    return tosaic.load(path)


def torch_module(steps: Steps) -> Any:
    import torch
    spelled = {"add": torch.add, "sub": torch.sub, "max": torch.maximum}

    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for v in steps.variables:
                self.register_buffer(v.name, torch.from_numpy(v.array))

        def forward(self, x: Any) -> Any:
            total = torch.zeros(EXTENT)
            for v in steps.variables:
                new = spelled[v.operator](getattr(self, v.name), x)
                getattr(self, v.name).copy_(new)
                total = total + new
            return total
    return Steps()


def of_tensorflow(steps: Steps, folder: Path) -> tosaic.Model:
    module = tensorflow_module(steps)
    return tosaic.from_tensorflow(module.step)


def of_saved_model(steps: Steps, folder: Path) -> tosaic.Model:
    import tensorflow as tf
    module = tensorflow_module(steps)
    tf.saved_model.save(module, str(folder / "m"), signatures={"main": module.step})
    return tosaic.load(folder / "m")


def tensorflow_module(steps: Steps) -> Any:
    import tensorflow as tf
    spelled = {"add": tf.add, "sub": tf.subtract, "max": tf.maximum}

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = [tf.Variable(v.array, name=v.name) for v in steps.variables]

        @tf.function(input_signature=[tf.TensorSpec([EXTENT], tf.float32, "x")])
        def step(self, x: Any) -> Any:
            new = [spelled[v.operator](held, x) for v, held in zip(steps.variables, self.held)]
            for held, value in zip(self.held, new):
                held.assign(value)
            return {"y": tf.add_n(new)}
    return Module()


def of_keras(steps: Steps, folder: Path) -> tosaic.Model:
    """A recurrent layer that keeps its state, and whose weights make it a sum: the variable and each input are added."""
    import tensorflow as tf
    keras = tf.keras
    layer = keras.layers.SimpleRNN(EXTENT, stateful=True, activation="linear", use_bias=False)
    model = keras.Sequential([keras.Input((1, EXTENT), batch_size=1), layer])
    scale = np.float32(steps.variables[0].first[0])
    layer.set_weights([np.eye(EXTENT, dtype=np.float32) * scale, np.eye(EXTENT, dtype=np.float32)])
    model.save(folder / "m.keras")
    return tosaic.load(folder / "m.keras")


DOORS: dict[str, tuple[str, Callable[[Steps, Path], tosaic.Model]]] = {
    "a .tflite": ("tosa_converter_for_tflite", of_tflite), "from_tflite": ("tosa_converter_for_tflite", of_from_tflite),
    "from_onnx": ("onnx", of_onnx), "from_torch": ("torch_mlir", of_torch), "a .pt2": ("torch_mlir", of_exported_program),
    "from_tensorflow": ("tensorflow", of_tensorflow), "a SavedModel": ("tensorflow", of_saved_model),
    "a .keras": ("tensorflow", of_keras)}
"""What each needs besides tosaic, and how it reads a model."""


def expected(door: str, steps: Steps, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the calls of a door's model give, alone."""
    if door != "a .keras":
        return steps.results(given)
    scale = np.float32(steps.variables[0].first[0])
    return list(itertools.accumulate(x * scale for x in given))


# ---- two in one process ------------------------------------------------------------------------------------------------------
class Pairs:
    """Models of one door, each loaded twice."""

    def __init__(self, door: str, folder: Path, count: int) -> None:
        self.door, self.loaded = door, list[tuple[Steps, tosaic.Model]]()
        for seed in range(count):
            for copy in range(2):
                place = folder / f"{seed}.{copy}"
                place.mkdir(parents=True)
                steps = drawn(seed)
                self.loaded.append((steps, DOORS[door][1](steps, place)))

    def wrong(self, seed: int) -> str | None:
        """Calls two models in turn, in an order that the seed gives; which of them gave something else than alone, or None."""
        rng = np.random.default_rng(seed)
        pair = [self.loaded[n] for n in rng.choice(len(self.loaded), 2, replace=False)]
        for _, model in pair:
            model.context.reset()
        given = [inputs(seed), inputs(seed + 1)]
        wanted = [expected(self.door, steps, xs) for (steps, _), xs in zip(pair, given)]
        order = rng.permutation([0] * STEPS + [1] * STEPS)
        done = [0, 0]
        for n in order:
            x, right = given[n][done[n]], wanted[n][done[n]]
            found = self.result(pair[n][1], x)
            if not np.array_equal(found, right):
                return f"{self.door}, seed {seed}: call {done[n]} of model {n} gave {found}, alone {right}"
            done[n] += 1
        return None

    def result(self, model: tosaic.Model, x: np.ndarray) -> np.ndarray:
        given = x.reshape(1, 1, -1) if self.door == "a .keras" else x
        found = model.entry()(given)
        return np.asarray(found["y"] if isinstance(found, dict) else found).reshape(-1)
