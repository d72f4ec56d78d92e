"""Sample 7: a recurrent PyTorch module with state, trained here, as native code that streams.

A GRU learns to predict the next sample of a wave in noise. Its hidden state is a buffer that `forward` writes; in compiled
code it is a variable of the process, so that each call takes one sample and goes on where the last one was. Needs the extra
`torch`.

    python samples/7_pytorch.py
"""
from __future__ import annotations

import math

import numpy as np
import torch
import tosaic


class Predictor(torch.nn.Module):
    """Takes one sample, f32[1, 1], and gives what it expects to be the next."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(1, width)
        self.out = torch.nn.Linear(width, 1)
        self.register_buffer("hidden", torch.zeros(1, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.out(self.hidden)


def wave(length: int, generator: torch.Generator) -> torch.Tensor:
    """A wave of one frequency and phase, in noise: f32[length]."""
    phase = 2 * math.pi * torch.rand(1, generator=generator)
    return torch.sin(0.3 * torch.arange(length) + phase) + 0.1 * torch.randn(length, generator=generator)


def train(model: Predictor, generator: torch.Generator, steps: int = 200) -> None:
    """On waves of 60 samples, 16 at a time."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        x = torch.stack([wave(61, generator) for _ in range(16)])
        hidden, loss = torch.zeros(16, model.hidden.shape[1]), torch.zeros(())
        for now, following in zip(x.T[:-1], x.T[1:]):
            hidden = model.cell(now[:, None], hidden)
            loss = loss + torch.nn.functional.mse_loss(model.out(hidden)[:, 0], following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    module = Predictor()
    train(module, generator)

    model = tosaic.from_torch(module, torch.zeros(1, 1))
    step = model.main.compile()
    print(model.main)

    stream = wave(300, generator)
    with torch.no_grad():
        expected = np.array([module(x.reshape(1, 1)).item() for x in stream])
    found = np.array([step(x.reshape(1, 1))[0, 0] for x in stream])
    truth = stream[1:].numpy()
    print(f"error of the prediction: {np.sqrt(np.mean((found[20:-1] - truth[20:]) ** 2)):.2f}, "
          f"of the last sample instead: {np.sqrt(np.mean((truth[19:-1] - truth[20:]) ** 2)):.2f}")
    print(f"largest difference from PyTorch in 300 steps: {np.abs(found - expected).max():.0e}")
    hidden = model.context.read("Predictor.hidden")
    print(f"the state is PyTorch's: {np.allclose(hidden, module.hidden.numpy(), atol=1e-5)}")
    report = step.report()
    print(f"arena {report.arena} bytes, state {hidden.nbytes}, constants {report.constants}")


if __name__ == "__main__":
    main()
