"""The networks that `exports.py` exports, with their calls: weights and inputs by lot, extents that stay open."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import sequence_networks as sequences
import torch
import vision_networks as vision
from torch import nn

Arrays = dict[str, np.ndarray]
Extents = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network, the arrays of its calls, of which the first is what it is exported with, the names of its outputs, extents
    that stay open, the outputs that are handed on as inputs, and the exporters that can know it."""
    make: Callable[[], nn.Module]
    calls: Sequence[Arrays]
    outputs: Sequence[str] = ("y",)
    open: Extents = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    exporters: Sequence[str] = ("torchscript", "dynamo")
    padded: bool = False
    """Its NonMaxSuppression becomes that of the domain `tosaic` here: its rows are those of ONNX Runtime, then -1."""

    def drawn(self) -> nn.Module:
        """The network with its weights; the averages of batch norms are as if it had been trained."""
        torch.manual_seed(0)
        found = self.make().eval()
        for module in found.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean = 0.3 * torch.randn_like(module.running_mean)
                module.running_var = 0.5 + torch.rand_like(module.running_var)
        return found


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def integers(most: int, *shape: int) -> np.ndarray:
    return np.random.default_rng((most, *shape)).integers(0, most, shape)


def pictures(*shapes: tuple[int, ...]) -> list[Arrays]:
    return [{"x": normal(*shape)} for shape in shapes]


def text(batch: int, length: int) -> Arrays:
    """Tokens, the last of each row but the first one padded."""
    real = np.arange(length)[None] < length - np.arange(batch)[:, None]
    return {"tokens": integers(50, batch, length), "real": real.astype(np.int64)}


def step(batch: int, length: int, past: int) -> Arrays:
    return {"tokens": integers(40, batch, length), "keys": normal(batch, 2, past, 8), "values": normal(batch, 2, past, 8, seed=1)}


def graph(nodes: int, edges: int) -> Arrays:
    return {"nodes": normal(nodes, 8), "edges": integers(nodes, 2, edges)}


BATCH: Extents = {"x": {0: "batch"}}
PICTURE: Extents = {"x": {0: "batch", 2: "height", 3: "width"}}
NETWORKS: dict[str, Network] = {
    "detector": Network(vision.Detector, pictures((2, 3, 64, 96), (1, 3, 96, 64)), ("boxes", "scores", "kinds"), PICTURE),
    "suppressed": Network(vision.Suppressed, pictures((1, 3, 64, 64), (1, 3, 64, 64)), ("kept",), padded=True),
    "recogniser": Network(sequences.Recogniser, pictures((2, 1, 32, 80), (1, 1, 32, 120)), ("logits", "signs"),
                          {"x": {0: "batch", 3: "width"}}),
    "transformer": Network(sequences.Transformer, [text(2, 12), text(3, 7)], open={
        "tokens": {0: "batch", 1: "length"}, "real": {0: "batch", 1: "length"}}),
    "encoder": Network(sequences.Encoder, [{"x": normal(2, 5, 16), "memory": normal(2, 9, 16)},
                                           {"x": normal(3, 7, 16), "memory": normal(3, 4, 16)}],
                       open={"x": {0: "batch", 1: "length"}, "memory": {0: "batch", 1: "memories"}}),
    "decoder": Network(sequences.Decoder, [step(2, 3, 6), step(1, 1, 9)], ("logits", "keys_out", "values_out"),
                       {"tokens": {0: "batch", 1: "length"}, "keys": {0: "batch", 2: "past"},
                        "values": {0: "batch", 2: "past"}}),
    "denoiser": Network(sequences.Denoiser, [{"x": abs(normal(1, 4, 24, seed=n)), "h": np.zeros((2, 1, 16), np.float32)}
                                             for n in range(5)], ("y", "hn"), state={"hn": "h"}),
    "spectrogram": Network(sequences.Spectrogram, [{"x": normal(2, 800)}, {"x": normal(1, 800)}], open=BATCH),
    "mobilenet_v3": Network(vision.MobileNetV3, pictures((2, 3, 64, 64), (1, 3, 64, 64)), open=BATCH),
    "vit": Network(vision.VisionTransformer, pictures((2, 3, 48, 64), (1, 3, 40, 40)), open=PICTURE),
    "windows": Network(vision.ShiftedWindows, pictures((2, 3, 24, 32), (1, 3, 24, 32)), open=BATCH),
    "unet": Network(vision.UNet, pictures((2, 3, 32, 48), (1, 3, 44, 32)), open=PICTURE),
    "super_resolution": Network(vision.SuperResolution, pictures((2, 3, 12, 16), (1, 3, 9, 7)), open=PICTURE),
    "warp": Network(vision.Warp, pictures((2, 3, 16, 20), (1, 3, 16, 20)), open=BATCH),
    "scripted": Network(sequences.Scripted, [{"x": normal(4, 6), "count": np.array(n)} for n in (3, 5, 0)], ("y", "rows"),
                        {"x": {0: "rows"}}, exporters=("torchscript",)),
    "conditional": Network(sequences.Conditional, [{"x": normal(3, 6)}, {"x": -normal(3, 6)}], exporters=("dynamo",)),
    "graph_network": Network(sequences.GraphNetwork, [graph(7, 15), graph(5, 8)], ("y", "distances"),
                             {"nodes": {0: "count"}, "edges": {1: "edges"}}),
    "statistics": Network(sequences.Statistics, [{"x": normal(5, 8), "kinds": integers(5, 5)}],
                          [f"y{n}" for n in range(24)]),
}
