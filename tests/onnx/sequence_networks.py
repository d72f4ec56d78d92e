"""Networks for text, sound and tables, in PyTorch, for `exports.py`: recurrence, attention, control flow, scattering."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


# ---- recurrence ----------------------------------------------------------------------------------------------------------
class Recogniser(nn.Module):
    """Text in a picture of one line: convolutions, an LSTM of two layers in both directions, the best sign at each place."""

    def __init__(self, signs: int = 20) -> None:
        super().__init__()
        def block(inputs: int, outputs: int, pool: tuple[int, int]) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                                 nn.MaxPool2d(pool, pool))
        self.body = nn.Sequential(block(1, 8, (2, 2)), block(8, 16, (2, 2)), block(16, 24, (2, 1)), nn.Conv2d(24, 24, (4, 1)))
        self.lstm = nn.LSTM(24, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, signs)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.body(x).squeeze(2).transpose(1, 2)
        found = F.log_softmax(self.head(self.lstm(rows)[0]), -1)
        return found, found.argmax(-1)


class Speech(nn.Module):
    """Sound's frames to letters: separable convolutions, a GRU in both directions over rows of their own lengths."""

    def __init__(self, bands: int = 12, letters: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(bands, bands, 5, padding=2, groups=bands), nn.Conv1d(bands, 16, 1), nn.BatchNorm1d(16), nn.ReLU6(),
            nn.ZeroPad1d((2, 0)), nn.Conv1d(16, 16, 3, padding=1, dilation=2), nn.Hardtanh(0, 4))
        self.gru = nn.GRU(16, 12, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, letters)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        rows = self.body(x).transpose(1, 2)
        packed = nn.utils.rnn.pack_padded_sequence(rows, lengths, batch_first=True)
        found, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.head(found).log_softmax(2)


class Keyword(nn.Module):
    """Causal convolutions over what came before, an LSTM with a projection; all state goes in and comes out."""

    def __init__(self, bands: int = 10) -> None:
        super().__init__()
        self.conv, self.deep = nn.Conv1d(bands, 12, 3), nn.Conv1d(12, 12, 3, dilation=2, groups=12)
        self.lstm = nn.LSTM(12, 16, proj_size=8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor, near: Tensor, far: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        x = torch.cat([near, x], 2)
        y = torch.cat([far, F.silu(self.conv(x))], 2)
        rows, (h, c) = self.lstm(F.mish(self.deep(y)).permute(2, 0, 1), (h, c))
        return self.head(rows[-1]).softmax(1), x[:, :, -2:], y[:, :, -4:], h, c


class Vocoder(nn.Module):
    """Frames to sound: transposed convolutions, dilated blocks, an RNN's last state as a bias."""

    def __init__(self, bands: int = 8) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.rnn = nn.RNN(bands, 16, batch_first=True, nonlinearity="relu")
        self.enter = norm(nn.Conv1d(bands, 16, 7, padding=3))
        self.up = nn.ModuleList([norm(nn.ConvTranspose1d(16, 8, 8, 4, 2)), nn.ConvTranspose1d(8, 4, 5, 3, 1, output_padding=1)])
        self.blocks = nn.ModuleList(nn.Conv1d(c, c, 3, padding=d, dilation=d) for c, d in ((8, 1), (8, 3), (4, 1), (4, 5)))
        self.leave = nn.Conv1d(4, 1, 7, padding=3, padding_mode="reflect")

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x) + self.rnn(x.transpose(1, 2))[1][0][:, :, None]
        for number, up in enumerate(self.up):
            x = up(F.leaky_relu(x, 0.1))
            for block in self.blocks[2 * number:2 * number + 2]:
                x = x + block(F.leaky_relu(x, 0.1))
        return self.leave(F.softplus(x)).tanh().squeeze(1)


class Denoiser(nn.Module):
    """Frames of a spectrum in, the frame times a mask out; the state goes in and comes out."""

    def __init__(self, bins: int = 24, hidden: int = 16) -> None:
        super().__init__()
        self.enter = nn.utils.parametrizations.weight_norm(nn.Conv1d(bins, hidden, 1))
        self.gru = nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.leave = nn.Linear(hidden, bins)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        rows = F.elu(self.enter(x.log1p().transpose(1, 2))).transpose(1, 2)
        rows, h = self.gru(rows, h)
        return x * self.leave(rows).sigmoid(), h


class Spectrogram(nn.Module):
    """Sound to frames of mel bands, and a network of them."""

    def __init__(self, bands: int = 16) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bands", torch.rand(33, bands))
        self.body = nn.Sequential(nn.Conv1d(bands, 16, 3, padding=1), nn.GELU(approximate="tanh"), nn.Conv1d(16, 8, 3, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        found = torch.stft(x, 64, 32, window=self.window, center=True, pad_mode="constant", return_complex=True)
        power = torch.view_as_real(found).square().sum(-1)
        mel = (power.transpose(1, 2) @ self.bands).clamp(min=1e-6).log10().transpose(1, 2)
        return self.body(torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0))


# ---- attention -----------------------------------------------------------------------------------------------------------
class Transformer(nn.Module):
    """Tokens and which of them are real; a vector for each. Attention is written out, or PyTorch's function."""

    def __init__(self, words: int = 50, width: int = 32, heads: int = 4, is_fused: bool = False) -> None:
        super().__init__()
        self.heads, self.is_fused = heads, is_fused
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "first": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)), "second": nn.LayerNorm(width)})
            for _ in range(2))

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        batch, length = tokens.shape
        x = self.norm(self.words(tokens) + self.places(torch.arange(length, device=tokens.device)))
        mask = real.bool()[:, None, None, :]
        for layer in self.layers:
            q, k, v = (y.view(batch, length, self.heads, -1).transpose(1, 2) for y in layer["qkv"](x).chunk(3, -1))
            if self.is_fused:
                found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            else:
                scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e4)
                found = scores.softmax(-1) @ v
            x = layer["first"](x + layer["out"](found.transpose(1, 2).reshape(batch, length, -1)))
            x = layer["second"](x + layer["mlp"](x))
        return x


class Encoder(nn.Module):
    """PyTorch's own encoder and decoder layers, with a causal mask."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoderLayer(width, 2, 32, batch_first=True)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        return self.decoder(x, self.encoder(memory), tgt_mask=mask)


class Decoder(nn.Module):
    """One step of a language model: turned queries and keys, fewer heads for keys, what came before goes in and comes out."""

    def __init__(self, words: int = 40, width: int = 32, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.words = nn.Embedding(words, width)
        self.first, self.second = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q, self.kv = nn.Linear(width, width, False), nn.Linear(width, 2 * groups * self.size, False)
        self.out = nn.Linear(width, width, False)
        self.gate, self.up, self.down = nn.Linear(width, 48, False), nn.Linear(width, 48, False), nn.Linear(48, width, False)
        self.register_buffer("steps", 1.0 / 100 ** (torch.arange(0, self.size, 2) / self.size))

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        angles = (places[..., None].float() * self.steps).repeat(1, 1, 2)[:, None]
        half = self.size // 2
        return x * angles.cos() + torch.cat([-x[..., half:], x[..., :half]], -1) * angles.sin()

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, length = tokens.shape
        past = keys.shape[2]
        x = self.words(tokens)
        y = self.first(x)
        places = torch.arange(length, device=tokens.device)[None] + past
        q = self.turned(self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2), places)
        k, v = self.kv(y).view(batch, length, self.groups, 2 * self.size).transpose(1, 2).split(self.size, -1)
        keys, values = torch.cat([keys, self.turned(k, places)], 2), torch.cat([values, v], 2)
        wide = self.heads // self.groups
        k, v = (t[:, :, None].expand(-1, -1, wide, -1, -1).reshape(batch, self.heads, past + length, self.size)
                for t in (keys, values))
        allowed = torch.arange(past + length)[None, :] <= places[0][:, None]
        scores = (q @ k.transpose(-1, -2) / math.sqrt(self.size)).masked_fill(~allowed, torch.finfo(torch.float32).min)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))
        y = self.second(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return F.linear(x[:, -1], self.words.weight), keys, values


class Relative(nn.Module):
    """Attention with a bias for each bucket of distances; rows are normalised by their square mean."""

    def __init__(self, words: int = 30, width: int = 24, heads: int = 3, buckets: int = 8) -> None:
        super().__init__()
        self.heads, self.buckets = heads, buckets
        self.words, self.bias = nn.Embedding(words, width, padding_idx=0), nn.Embedding(buckets, heads)
        self.qkv, self.out = nn.Linear(width, 3 * width, False), nn.Linear(width, width, False)
        self.gain = nn.Parameter(torch.rand(width) + 0.5)

    def bucket(self, apart: Tensor) -> Tensor:
        half = self.buckets // 2
        side, apart = (apart > 0).long() * half, apart.abs()
        near = half // 2
        far = near + (torch.log(apart.float() / near) / math.log(16 / near) * (half - near)).long()
        return side + torch.where(apart < near, apart, torch.min(far, torch.full_like(far, half - 1)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(y).split(x.shape[-1], -1))
        places = torch.arange(tokens.shape[1])
        bias = self.bias(self.bucket(places[None, :] - places[:, None])).permute(2, 0, 1)[None]
        real = (tokens != 0)[:, None, None, :]
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) + bias + (1.0 - real.to(x.dtype)) * -1e9
        return x + self.out(torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v).transpose(1, 2).flatten(2))


class Conformer(nn.Module):
    """Half a feed-forward, attention that does not see what is padded, a convolution behind a gate, the other half."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        def forward() -> nn.Sequential:
            return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
        self.first, self.last = forward(), forward()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.deep = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.batch, self.narrow = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        padded = torch.arange(x.shape[1], device=x.device)[None] >= lengths[:, None]
        x = x + 0.5 * self.first(x)
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, key_padding_mask=padded)[0]
        y = F.glu(self.wide(self.norms[1](x).transpose(1, 2)), 1)
        x = x + self.narrow(F.silu(self.batch(self.deep(y)))).transpose(1, 2)
        return self.norms[2](x + 0.5 * self.last(x)).masked_fill(padded[..., None], 0.0)


class Experts(nn.Module):
    """The best two of four networks for each token, weighted."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4)
        self.enter, self.leave = nn.Parameter(torch.randn(4, width, 20) / 4), nn.Parameter(torch.randn(4, 20, width) / 4)

    def forward(self, x: Tensor) -> Tensor:
        weight, places = self.gate(x).topk(2, -1)
        share = torch.zeros(*x.shape[:-1], 4).scatter(-1, places, weight.softmax(-1))
        each = torch.einsum("bld,edh->belh", x, self.enter).relu()
        return x + torch.einsum("belh,ehd,ble->bld", each, self.leave, share)


# ---- control flow --------------------------------------------------------------------------------------------------------
@torch.jit.script
def iterated(x: Tensor, weight: Tensor, count: Tensor) -> Tensor:
    """A loop as often as an input says, with a choice inside."""
    total = torch.zeros_like(x)
    for i in range(int(count.item())):
        x = torch.tanh(x @ weight)
        if x.sum() > 0:
            total = total + x * i
        else:
            total = total - x
    return total


@torch.jit.script
def read_rows(x: Tensor, weight: Tensor) -> Tensor:
    """A loop over the rows of an input that collects."""
    state = torch.zeros_like(x[0])
    rows = []
    for i in range(x.size(0)):
        state = torch.sigmoid(state @ weight + x[i])
        rows.append(state)
    return torch.stack(rows)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        return iterated(x, self.weight, count), read_rows(x, self.weight)


class Conditional(nn.Module):
    """`torch.cond` and `while_loop`, for the exporter that is not TorchScript's."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).tanh() * 2, (x,))


# ---- tables --------------------------------------------------------------------------------------------------------------
class GraphNetwork(nn.Module):
    """Messages along edges, summed and averaged where they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.own = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, nodes: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        begin, end = edges[0], edges[1]
        message = F.relu(self.message(torch.cat([nodes[begin], nodes[end]], -1)))
        total = torch.zeros_like(nodes).index_add(0, end, message)
        count = torch.zeros(nodes.shape[0]).scatter_add(0, end, torch.ones_like(end, dtype=torch.float32))
        found = self.own(torch.cat([nodes, total / count.clamp(min=1)[:, None]], -1))
        return F.normalize(found, dim=-1), torch.cdist(found, found[:2])


class Statistics(nn.Module):
    """What tables are asked for: variances, sorted rows, running sums, classes as rows of bits, values put where a mask is."""

    def forward(self, x: Tensor, kinds: Tensor) -> tuple[Tensor, ...]:
        order, places = torch.sort(x, 1, descending=True)
        bits = F.one_hot(kinds, 5)
        written = x.clone()
        written[:, 1] = kinds.to(x.dtype)
        written[:, -2:] *= 2
        return (x.var(1, unbiased=True), x.std((0, 1), correction=0), order.cumsum(1), places, bits, written,
                torch.logsumexp(x, 1), torch.where(x > 0, x, x.expm1()).norm(p=2, dim=1), x.amin(1),
                torch.remainder(kinds, 3), torch.div(kinds, 2, rounding_mode="floor"), torch.einsum("ij,kj->ik", x, x).tril(),
                x.prod(1), torch.floor(x * 3).to(torch.int32) % 4, x.flip(1), torch.bitwise_and(kinds, 3),
                torch.stack([x.round(), x.sign(), x.trunc()], -1), F.pad(x, (1, 2), value=0.5), x.unfold(1, 3, 2),
                torch.any(x > 2, 1), torch.all(x > -3, 1), x.repeat(2, 1), x.argmin(1), torch.atan2(x, x + 1.5))
