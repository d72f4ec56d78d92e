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
SOME = [("torchscript", 17), ("dynamo", 18), ("dynamo", 26)]
QUANTIZED = {"all": [*SOME, *(("torchscript", n) for n in (11, 13, 20))], "some": SOME, "none": []}
"""The exporters and opsets of files that are quantized."""


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
    quantized: str = "some"
    """Which of its files are quantized, a name of `QUANTIZED`."""
    first: int | None = None
    """How many outputs are compared when it is quantized; those behind are places, which jump where two values are near."""

    @property
    def judged(self) -> int:
        return len(self.outputs) if self.first is None else self.first

    def is_quantized(self, exporter: str, opset: int) -> bool:
        return (exporter, opset) in QUANTIZED[self.quantized]

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
    keys, values = (normal(batch, 2, past, 8, seed=n) for n in range(2))
    return {"tokens": integers(40, batch, length), "keys": keys, "values": values}


def frames(batch: int, *shape: int) -> Arrays:
    """Rows of frames, the longest first, and how many of each are real."""
    return {"x": normal(batch, *shape), "lengths": max(shape) - np.arange(batch) * (max(shape) // 4)}


def heard(seed: int) -> Arrays:
    zeros = {"near": (1, 10, 2), "far": (1, 12, 4), "h": (1, 1, 8), "c": (1, 1, 16)}
    return {"x": normal(1, 10, 5, seed=seed)} | {n: np.zeros(s, np.float32) for n, s in zeros.items()}


def graph(nodes: int, edges: int) -> Arrays:
    return {"nodes": normal(nodes, 8), "edges": integers(nodes, 2, edges)}


BATCH: Extents = {"x": {0: "batch"}}
PICTURE: Extents = {"x": {0: "batch", 2: "height", 3: "width"}}
NETWORKS: dict[str, Network] = {
    "detector": Network(vision.Detector, pictures((2, 3, 64, 96), (1, 3, 96, 64)), ("boxes", "scores", "kinds"), PICTURE,
                        quantized="none"),
    "heads": Network(lambda: vision.Detector(raw=True), pictures((2, 3, 64, 96), (1, 3, 96, 64)), ("boxes", "scores"), PICTURE,
                     quantized="all"),
    "suppressed": Network(vision.Suppressed, pictures((1, 3, 64, 64), (1, 3, 64, 64)), ("kept",), padded=True,
                          quantized="none"),
    "recogniser": Network(sequences.Recogniser, pictures((2, 1, 32, 80), (1, 1, 32, 120)), ("logits", "signs"),
                          {"x": {0: "batch", 3: "width"}}, quantized="all", first=1),
    "transformer": Network(sequences.Transformer, [text(2, 12), text(3, 7)], open={
        "tokens": {0: "batch", 1: "length"}, "real": {0: "batch", 1: "length"}}, quantized="all"),
    "attention": Network(lambda: sequences.Transformer(is_fused=True), [text(2, 12), text(3, 7)], open={
        "tokens": {0: "batch", 1: "length"}, "real": {0: "batch", 1: "length"}}, quantized="none"),
    "encoder": Network(sequences.Encoder, [{"x": normal(2, 5, 16), "memory": normal(2, 9, 16)},
                                           {"x": normal(3, 7, 16), "memory": normal(3, 4, 16)}],
                       open={"x": {0: "batch", 1: "length"}, "memory": {0: "batch", 1: "memories"}}),
    "encoder_fixed": Network(sequences.Encoder, [{"x": normal(2, 5, 16, seed=n), "memory": normal(2, 9, 16, seed=n)}
                                                 for n in range(2)], exporters=("torchscript",)),
    "decoder": Network(sequences.Decoder, [step(2, 3, 6), step(1, 1, 9)], ("logits", "keys_out", "values_out"),
                       {"tokens": {0: "batch", 1: "length"}, "keys": {0: "batch", 2: "past"},
                        "values": {0: "batch", 2: "past"}}),
    "denoiser": Network(sequences.Denoiser, [{"x": abs(normal(1, 4, 24, seed=n)), "h": np.zeros((2, 1, 16), np.float32)}
                                             for n in range(5)], ("y", "hn"), state={"hn": "h"}),
    "spectrogram": Network(sequences.Spectrogram, [{"x": normal(2, 800)}, {"x": normal(1, 800)}], open=BATCH),
    "mobilenet_v3": Network(vision.MobileNetV3, pictures((2, 3, 64, 64), (1, 3, 64, 64)), open=BATCH),
    "vit": Network(vision.VisionTransformer, pictures((2, 3, 48, 64), (1, 3, 40, 40)), open=PICTURE),
    "vit_fixed": Network(vision.VisionTransformer, pictures((2, 3, 48, 64), (2, 3, 48, 64)), exporters=("torchscript",)),
    "windows": Network(vision.ShiftedWindows, pictures((2, 3, 24, 32), (1, 3, 24, 32)), open=BATCH),
    "unet": Network(vision.UNet, pictures((2, 3, 32, 48), (1, 3, 44, 32)), open=PICTURE),
    "super_resolution": Network(vision.SuperResolution, pictures((2, 3, 12, 16), (1, 3, 9, 7)), open=PICTURE),
    "warp": Network(vision.Warp, pictures((2, 3, 16, 20), (1, 3, 16, 20)), open=BATCH),
    "scripted": Network(sequences.Scripted, [{"x": normal(4, 6), "count": np.array(n)} for n in (3, 5, 0)], ("y", "rows"),
                        {"x": {0: "rows"}}, exporters=("torchscript",), quantized="none"),
    "conditional": Network(sequences.Conditional, [{"x": normal(3, 6)}, {"x": -normal(3, 6)}], exporters=("dynamo",),
                           quantized="none"),
    "graph_network": Network(sequences.GraphNetwork, [graph(7, 15), graph(5, 8)], ("y", "distances"),
                             {"nodes": {0: "count"}, "edges": {1: "edges"}}, quantized="none"),
    "statistics": Network(sequences.Statistics, [{"x": normal(5, 8), "kinds": integers(5, 5)}],
                          [f"y{n}" for n in range(24)], quantized="none"),
    "anchored": Network(vision.Anchored, pictures((2, 3, 64, 64), (1, 3, 64, 64)), ("boxes", "scores"), BATCH, quantized="all"),
    "queries": Network(vision.Queries, pictures((2, 3, 32, 48), (1, 3, 48, 32)), ("kinds", "boxes"), PICTURE),
    "shuffled": Network(vision.Shuffled, pictures((2, 3, 36, 36), (1, 3, 36, 36)), open=BATCH),
    "convnext": Network(vision.ConvNeXt, pictures((2, 3, 32, 32), (1, 3, 24, 40)), open=PICTURE),
    "generator": Network(vision.Generator, [{"x": normal(2, 16)}, {"x": normal(3, 16)}], open=BATCH),
    "segmenter": Network(vision.Segmenter, pictures((2, 3, 40, 32), (1, 3, 27, 45)), ("scores", "kinds"), PICTURE, first=1),
    "speech": Network(sequences.Speech, [frames(3, 12, 24), frames(2, 12, 17)], open={
        "x": {0: "batch", 2: "length"}, "lengths": {0: "batch"}}, exporters=("torchscript",)),
    "keyword": Network(sequences.Keyword, [heard(n) for n in range(4)], ("y", "near_out", "far_out", "hn", "cn"), state={
        "near_out": "near", "far_out": "far", "hn": "h", "cn": "c"}, first=1),
    "vocoder": Network(sequences.Vocoder, [{"x": normal(2, 8, 9)}, {"x": normal(1, 8, 14)}], open={
        "x": {0: "batch", 2: "length"}}),
    "relative": Network(sequences.Relative, [{"tokens": integers(30, 2, 9)}, {"tokens": integers(30, 1, 20)}], open={
        "tokens": {0: "batch", 1: "length"}}, quantized="all"),
    "conformer": Network(sequences.Conformer, [frames(2, 17, 16), frames(3, 20, 16)], open={
        "x": {0: "batch", 1: "length"}, "lengths": {0: "batch"}}),
    "experts": Network(sequences.Experts, [{"x": normal(2, 5, 12)}, {"x": normal(1, 8, 12)}], open={
        "x": {0: "batch", 1: "length"}}),
}
