"""Networks for pictures, in PyTorch, for `exports.py`: detectors, classifiers, and networks from picture to picture."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv_norm(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1, act: type[nn.Module] = nn.SiLU
              ) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs), act())


# ---- detection -----------------------------------------------------------------------------------------------------------
class Detector(nn.Module):
    """Three strides, a pyramid from the coarsest to the finest, boxes from the cells' places. `raw` stops before the best
    boxes are chosen."""

    def __init__(self, classes: int = 4, best: int = 20, raw: bool = False) -> None:
        super().__init__()
        self.classes, self.best, self.raw = classes, best, raw
        self.stem = conv_norm(3, 8, stride=2)
        self.stages = nn.ModuleList(nn.Sequential(conv_norm(a, b, stride=2), conv_norm(b, b)) for a, b in
                                    ((8, 16), (16, 24), (24, 32)))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.mix = conv_norm(64, 32, 1)
        self.lateral = nn.ModuleList(conv_norm(a + b, b, 1) for a, b in ((32, 24), (24, 16)))
        self.heads = nn.ModuleList(nn.Conv2d(c, 4 + classes, 1) for c in (16, 24, 32))
        self.register_buffer("anchors", torch.tensor([8.0, 16.0, 32.0]))

    def maps(self, x: Tensor) -> list[Tensor]:
        levels = []
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        fine, middle, coarse = levels
        coarse = self.mix(torch.cat([coarse, self.pool(coarse)], 1))
        middle = self.lateral[0](torch.cat([F.interpolate(coarse, scale_factor=2.0, mode="nearest"), middle], 1))
        up = F.interpolate(middle, size=fine.shape[-2:], mode="bilinear", align_corners=False)
        fine = self.lateral[1](torch.cat([up, fine], 1))
        return [head(level) for head, level in zip(self.heads, (fine, middle, coarse))]

    def decoded(self, level: Tensor, anchor: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        batch, _, rows, columns = level.shape
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        grid = torch.stack((x, y), -1).view(1, rows, columns, 2).expand(batch, rows, columns, 2).to(level.dtype)
        level = level.permute(0, 2, 3, 1)
        middle = (level[..., :2].sigmoid() * 2 - 0.5 + grid) * stride
        extent = (level[..., 2:4].sigmoid() * 2) ** 2 * anchor
        boxes = torch.cat((middle - extent / 2, middle + extent / 2), -1)
        return boxes.reshape(batch, -1, 4), level[..., 4:].sigmoid().reshape(batch, -1, self.classes)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        found = [self.decoded(level, self.anchors[n], 4 << n) for n, level in enumerate(self.maps(x))]
        boxes, scores = torch.cat([b for b, _ in found], 1), torch.cat([s for _, s in found], 1)
        if self.raw:
            return boxes, scores
        most, kinds = scores.max(-1)
        best, places = most.topk(self.best, 1)
        return boxes.gather(1, places.unsqueeze(-1).expand(-1, -1, 4)), best, kinds.gather(1, places)


class Anchored(nn.Module):
    """Prior boxes of three shapes at each place of two maps; softmax over classes, the nearest class is what is not there."""

    def __init__(self, classes: int = 3, shapes: int = 3) -> None:
        super().__init__()
        self.classes = classes + 1
        self.stem = nn.Sequential(conv_norm(3, 16, stride=4, act=nn.ReLU6), conv_norm(16, 16, groups=16, act=nn.ReLU6))
        self.next = nn.Sequential(conv_norm(16, 24, stride=2, act=nn.ReLU6), nn.Dropout2d())
        self.pyramid = nn.ModuleList([nn.Conv2d(16, 16, 1), nn.Conv2d(24, 16, 1)])
        self.kinds, self.boxes = nn.Conv2d(16, shapes * self.classes, 3, padding=1), nn.Conv2d(16, shapes * 4, 3, padding=1)
        rows = torch.cat([self.priors(16, shapes), self.priors(8, shapes)])
        self.register_buffer("prior", rows)

    def priors(self, count: int, shapes: int) -> Tensor:
        middle = (torch.arange(count) + 0.5) / count
        y, x = torch.meshgrid(middle, middle, indexing="ij")
        extent = torch.tensor([[1.0, 1.0], [1.4, 0.7], [0.7, 1.4]])[:shapes] * 2 / count
        place = torch.stack([x, y], -1)[:, :, None].expand(-1, -1, shapes, -1)
        return torch.cat([place, extent.expand(count, count, -1, -1)], -1).reshape(-1, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.stem(x)
        coarse = self.pyramid[1](self.next(fine))
        fine = self.pyramid[0](fine) + F.interpolate(coarse, size=fine.shape[2:], mode="nearest")
        batch, maps = x.shape[0], (fine, coarse)
        kinds = torch.cat([self.kinds(m).permute(0, 2, 3, 1).reshape(batch, -1, self.classes) for m in maps], 1)
        moves = torch.cat([self.boxes(m).permute(0, 2, 3, 1).reshape(batch, -1, 4) for m in maps], 1)
        middle = self.prior[:, :2] + moves[..., :2] * 0.1 * self.prior[:, 2:]
        extent = self.prior[:, 2:] * torch.exp(moves[..., 2:].clamp(max=4) * 0.2)
        boxes = torch.cat([middle - extent / 2, middle + extent / 2], -1).clamp(0, 1)
        return boxes, F.softmax(kinds, -1)[..., 1:]


class Queries(nn.Module):
    """Boxes from learnt queries that look at a picture's places, which sines tell apart."""

    def __init__(self, width: int = 16, count: int = 6) -> None:
        super().__init__()
        self.body = nn.Sequential(conv_norm(3, 8, stride=4, act=nn.ReLU), conv_norm(8, width, stride=2, act=nn.ReLU))
        self.queries = nn.Embedding(count, width)
        self.attention = nn.MultiheadAttention(width, 2)
        self.norm, self.kinds, self.boxes = nn.LayerNorm(width), nn.Linear(width, 5), nn.Linear(width, 4)

    def places(self, x: Tensor) -> Tensor:
        there = torch.ones_like(x[:, 0])
        steps = 20 ** (2 * (torch.arange(8) // 2) / 8)
        found = [there.cumsum(a)[..., None] / steps for a in (1, 2)]
        found = [torch.stack([f[..., 0::2].sin(), f[..., 1::2].cos()], -1).flatten(3) for f in found]
        return torch.cat(found, -1).permute(0, 3, 1, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(x)
        memory = x.flatten(2).permute(2, 0, 1)
        queries = self.queries.weight[:, None].repeat(1, x.shape[0], 1)
        found = self.attention(queries, memory + self.places(x).flatten(2).permute(2, 0, 1), memory)[0]
        found = self.norm(queries + found).transpose(0, 1)
        return self.kinds(found), self.boxes(found).sigmoid()


class Suppress(torch.autograd.Function):
    """ONNX's NonMaxSuppression; TorchScript's exporter asks `symbolic`."""

    @staticmethod
    def forward(ctx: object, boxes: Tensor, scores: Tensor, most: Tensor, overlap: Tensor, least: Tensor) -> Tensor:
        return torch.zeros((5, 3), dtype=torch.int64)

    @staticmethod
    def symbolic(g: object, *operands: object) -> object:
        return g.op("NonMaxSuppression", *operands)  # type: ignore[attr-defined]


class Suppressed(nn.Module):
    """A detector that gives which boxes stay."""

    def __init__(self) -> None:
        super().__init__()
        self.detector = Detector(raw=True)

    def forward(self, x: Tensor) -> Tensor:
        boxes, scores = self.detector(x)
        operands = boxes, scores.transpose(1, 2), torch.tensor([8]), torch.tensor([0.5]), torch.tensor([0.55])
        if torch.compiler.is_exporting() and not torch.jit.is_tracing():
            return torch.onnx.ops.symbolic("NonMaxSuppression", operands, dtype=torch.int64, shape=(5, 3))
        return Suppress.apply(*operands)


# ---- classification ------------------------------------------------------------------------------------------------------
class Squeeze(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(self.pool(x)))))


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.own = stride == 1 and inputs == outputs
        self.body = nn.Sequential(conv_norm(inputs, 4 * inputs, 1, act=act),
                                  conv_norm(4 * inputs, 4 * inputs, 5, stride, 4 * inputs, act), Squeeze(4 * inputs),
                                  conv_norm(4 * inputs, outputs, 1, act=nn.Identity))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.own else self.body(x)


class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        hard = nn.Hardswish
        self.body = nn.Sequential(conv_norm(3, 8, stride=2, act=hard), Inverted(8, 8, 1, nn.ReLU), Inverted(8, 16, 2, nn.ReLU6),
                                  Inverted(16, 16, 1, hard), conv_norm(16, 48, 1, act=hard))
        self.head = nn.Sequential(nn.Linear(48, 64), hard(), nn.Dropout(0.2), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean((2, 3)))


class VisionTransformer(nn.Module):
    """Patches, a token of its own, places that are resized to the picture, PyTorch's own attention."""

    def __init__(self, width: int = 32, patch: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, width, 4, 4))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "first": nn.LayerNorm(width), "attention": nn.MultiheadAttention(width, 4, batch_first=True),
            "second": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))}) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        x = x + F.interpolate(self.places, size=x.shape[-2:], mode="bicubic", align_corners=False)
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        for layer in self.layers:
            y = layer["first"](x)
            x = x + layer["attention"](y, y, y, need_weights=False)[0]
            x = x + layer["mlp"](layer["second"](x))
        return self.head(x[:, 0]).softmax(-1)


class ShiftedWindows(nn.Module):
    """Attention in windows, rolled by half a window: a bias by relative places, and a mask where the roll joins edges."""

    def __init__(self, width: int = 16, window: int = 4, shift: int = 2) -> None:
        super().__init__()
        self.window, self.shift, self.heads = window, shift, 2
        self.patches, self.norm = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn((2 * window - 1) ** 2, self.heads))
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])

    def windows(self, x: Tensor) -> Tensor:
        batch, rows, columns, width = x.shape
        x = x.view(batch, rows // self.window, self.window, columns // self.window, self.window, width)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window * self.window, width)

    def whole(self, x: Tensor, rows: int, columns: int) -> Tensor:
        x = x.view(-1, rows // self.window, columns // self.window, self.window, self.window, x.shape[-1])
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, rows, columns, x.shape[-1])

    def mask(self, rows: int, columns: int, device: torch.device) -> Tensor:
        region = torch.zeros((1, rows, columns, 1), device=device)
        parts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for number, (a, b) in enumerate((a, b) for a in parts for b in parts):
            region[:, a, b, :] = number
        flat = self.windows(region).squeeze(-1)
        apart = flat.unsqueeze(1) - flat.unsqueeze(2)
        return torch.zeros_like(apart).masked_fill(apart != 0, -100.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).permute(0, 2, 3, 1)
        batch, rows, columns, width = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = self.windows(y)
        q, k, v = self.qkv(y).reshape(y.shape[0], -1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        scores = scores + self.bias[self.index.view(-1)].view(self.window ** 2, self.window ** 2, -1).permute(2, 0, 1)
        mask = self.mask(rows, columns, x.device)
        scores = scores.view(batch, mask.shape[0], self.heads, *scores.shape[-2:]) + mask.unsqueeze(1).unsqueeze(0)
        found = scores.view(-1, self.heads, *scores.shape[-2:]).softmax(-1) @ v
        found = self.whole(self.out(found.transpose(1, 2).reshape(y.shape)), rows, columns)
        return (x + torch.roll(found, (self.shift, self.shift), (1, 2))).mean((1, 2))


class Shuffled(nn.Module):
    """Groups whose channels are shuffled, dense blocks, average pools whose borders count or do not."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 12, stride=2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.group = conv_norm(6, 6, 3, groups=3, act=nn.CELU)
        self.dense = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(c), nn.SELU(), nn.Conv2d(c, 4, 3, padding=1)) for c in (12, 16))
        self.pools = nn.ModuleList([nn.AvgPool2d(3, 2, 1), nn.AvgPool2d(3, 2, 1, count_include_pad=False)])
        self.norm = nn.LocalResponseNorm(5)
        self.head = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(40, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        a, b = x.chunk(2, 1)
        x = torch.cat([a, self.group(b)], 1)
        batch, width, rows, columns = x.shape
        x = x.view(batch, 2, width // 2, rows, columns).transpose(1, 2).reshape(batch, -1, rows, columns)
        for block in self.dense:
            x = torch.cat([x, block(x)], 1)
        return self.head(torch.cat([pool(self.norm(x)) for pool in self.pools], 1))


class ConvNeXt(nn.Module):
    """Wide depthwise convolutions; norms and products on channels that are last; a scale for each."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, width, 4, 4), nn.GroupNorm(1, width)
        self.deep, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale, self.gain = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(1, 1, 1, 4 * width))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.stem(x))
        y = F.gelu(self.up(self.norm(self.deep(x).permute(0, 2, 3, 1))))
        power = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
        y = y + y * self.gain * power / (power.mean(-1, keepdim=True) + 1e-6)
        x = x + (self.scale * self.down(y)).permute(0, 3, 1, 2)
        return self.head(x.mean([-2, -1]))


# ---- pictures from pictures ----------------------------------------------------------------------------------------------
class UNet(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        def block(inputs: int, outputs: int, norm: nn.Module) -> nn.Sequential:
            return nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(inputs, outputs, 3), norm, nn.LeakyReLU(0.1))
        self.down = nn.ModuleList([block(3, width, nn.InstanceNorm2d(width)),
                                   block(width, 2 * width, nn.InstanceNorm2d(2 * width, affine=True))])
        self.middle = block(2 * width, 4 * width, nn.GroupNorm(4, 4 * width))
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                                 nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False)])
        self.join = nn.ModuleList([block(4 * width, 2 * width, nn.InstanceNorm2d(2 * width)),
                                   block(2 * width, width, nn.Identity())])
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for stage in self.down:
            x = stage(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2, ceil_mode=True)
        x = self.middle(x)
        for up, join, old in zip(self.up, self.join, reversed(kept)):
            x = join(torch.cat([up(x)[..., :old.shape[-2], :old.shape[-1]], old], 1))
        return F.softmax(self.out(x), 1)


class SuperResolution(nn.Module):
    """Shuffled pixels, beside the bicubic picture; a part is moved along a flow."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(16),
                                  nn.Conv2d(16, 12, 3, padding=1, padding_mode="replicate"), nn.PixelShuffle(2))

    def forward(self, x: Tensor) -> Tensor:
        wide = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True)
        return (self.body(x) + wide).clamp(0, 1)


class Warp(nn.Module):
    """A picture sampled along a grid that a network finds."""

    def __init__(self) -> None:
        super().__init__()
        self.find = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(),
                                  nn.Linear(32, 6))

    def forward(self, x: Tensor) -> Tensor:
        theta = self.find(x).view(-1, 2, 3) + torch.eye(2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


class Generator(nn.Module):
    """A picture from noise: transposed convolutions, norms over channels, noise that is a weight."""

    def __init__(self, noise: int = 16) -> None:
        super().__init__()
        self.enter = nn.Linear(noise, 16 * 16)
        self.up = nn.Sequential(nn.ConvTranspose2d(16, 12, 4, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU(True),
                                nn.ConvTranspose2d(12, 8, 3, 2, 1, output_padding=1, groups=4), nn.BatchNorm2d(8), nn.ELU(),
                                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(8, 3, 3, padding=1))
        self.style = nn.Linear(noise, 32)

    def forward(self, x: Tensor) -> Tensor:
        x = x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-8)
        gain, bias = self.style(x)[..., None, None].chunk(2, 1)
        y = self.enter(x).view(-1, 16, 4, 4)
        mean, var = y.mean((2, 3), keepdim=True), y.var((2, 3), keepdim=True)
        return torch.tanh(self.up((y - mean) / torch.sqrt(var + 1e-5) * (1 + gain) + bias))


class Segmenter(nn.Module):
    """Dilated convolutions beside the mean of the picture, enlarged to it; the best class of each place."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 8, stride=2, act=nn.Hardswish), conv_norm(8, 16, stride=2, act=nn.LeakyReLU))
        self.branches = nn.ModuleList(nn.Conv2d(16, 8, 3, padding=d, dilation=d) for d in (1, 2, 4))
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 8, 1), nn.ReLU())
        self.head = nn.Conv2d(32, classes, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.stem(x)
        mean = F.interpolate(self.mean(y), size=y.shape[-2:], mode="bilinear", align_corners=False)
        y = self.head(torch.cat([F.relu(b(y)) for b in self.branches] + [mean], 1))
        y = F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return y, y.argmax(1)
