"""Random functions of several blocks, with forks, switches and loops: text that ends for every input.

A branch to a block before is taken only while a counter is above zero, which every block counts down. Some graphs are
reducible, some are not. Blocks read values of the blocks that dominate them, and write a variable, so that what
runs twice, or not, shows.
"""
from __future__ import annotations

import random
from collections.abc import Sequence

T = "tensor<i32>"


class BlocksMaker:
    """One text: a function @main of a counter and two numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"blocks {seed}")
        self.count = self.random.randint(2, 9)
        self.lines: list[str] = []
        self.targets = [self.ways(block) for block in range(self.count)]
        self.values: dict[int, list[str]] = {}

    def ways(self, block: int) -> list[int]:
        """Where a block may go: the first way is forward (none: it returns), the others anywhere."""
        last = self.count - 1
        if block == last:
            return []
        forward = self.random.randint(block + 1, min(last, block + 3))
        return [forward, *(self.random.randint(1, last) for _ in range(self.random.choice((0, 1, 1, 1, 2))))]

    def dominators(self, block: int) -> list[int]:
        """The blocks without which another is not reached."""
        return [other for other in range(self.count) if other != block and block not in self.reached(other)]

    def reached(self, without: int | None = None) -> set[int]:
        found, queue = set(), [0] if without != 0 else []
        while queue:
            block = queue.pop()
            if block not in found:
                found.add(block)
                queue += [t for t in self.targets[block] if t != without]
        return found

    def text(self) -> str:
        blocks = sorted(self.reached())
        order = [0, *self.random.sample(blocks[1:], len(blocks) - 1)]
        bodies = {block: self.block(block) for block in blocks}
        return "\n".join(["tosa.variable @seen = dense<0> : tensor<i32>",
                          f"func.func @main(%n0: {T}, %a0: {T}, %b0: {T}) -> ({T}, {T}, {T}) {{",
                          *(line for block in order for line in bodies[block]), "}"])

    def block(self, k: int) -> list[str]:
        lines = [f"^bb{k}(%n{k}: {T}, %a{k}: {T}, %b{k}: {T}):"] if k else []
        seen = [f"%a{k}", f"%b{k}"] + [f"%{v}{d}" for d in self.dominators(k) for v in ("a", "b", "x", "y")]
        pick = self.random.choice
        lines += [f"  %one{k} = arith.constant dense<1> : {T}", f"  %m{k} = tosa.sub %n{k}, %one{k} : ({T}, {T}) -> {T}",
                  f"  %x{k} = tosa.add {pick(seen)}, {pick(seen)} : ({T}, {T}) -> {T}",
                  f"  %y{k} = tosa.bitwise_xor %x{k}, {pick(seen)} : ({T}, {T}) -> {T}"]
        if self.random.random() < 0.5:
            lines += [f"  %v{k} = tosa.variable_read @seen : {T}", f"  %w{k} = tosa.add %v{k}, %y{k} : ({T}, {T}) -> {T}",
                      f"  tosa.variable_write @seen, %w{k} : {T}"]
        return [*lines, *self.end(k)]

    def end(self, k: int) -> list[str]:
        own = [f"%a{k}", f"%b{k}", f"%x{k}", f"%y{k}"]

        def way(target: int) -> str:
            return f"^bb{target}(%m{k}, {self.random.choice(own)}, {self.random.choice(own)} : {T}, {T}, {T})"

        match self.targets[k]:
            case []:
                return [f"  return %m{k}, %x{k}, %y{k} : {T}, {T}, {T}"]
            case [only]:
                return [f"  cf.br {way(only)}"]
            case [forward, *others]:
                return self.decided(k, forward, others, way)

    def decided(self, k: int, forward: int, others: Sequence[int], way: object) -> list[str]:
        assert callable(way)
        lines = [f"  %zero{k} = arith.constant dense<0> : {T}",
                 f"  %left{k} = tosa.greater %m{k}, %zero{k} : ({T}, {T}) -> tensor<i1>",
                 f"  %three{k} = arith.constant dense<3> : {T}",
                 f"  %bits{k} = tosa.bitwise_and %y{k}, %three{k} : ({T}, {T}) -> {T}"]
        if len(others) == 1:
            return [*lines, f"  %odd{k} = tosa.greater %bits{k}, %one{k} : ({T}, {T}) -> tensor<i1>",
                    f"  %both{k} = tosa.logical_and %odd{k}, %left{k} : (tensor<i1>, tensor<i1>) -> tensor<i1>",
                    f"  %c{k} = tensor.extract %both{k}[] : tensor<i1>",
                    f"  cf.cond_br %c{k}, {way(others[0])}, {way(forward)}"]
        cases = ", ".join(f"{number + 1}: {way(target)}" for number, target in enumerate(others))
        return [*lines, f"  %flag{k} = tosa.select %left{k}, %bits{k}, %zero{k} : (tensor<i1>, {T}, {T}) -> {T}",
                f"  %s{k} = tensor.extract %flag{k}[] : {T}", f"  cf.switch %s{k} : i32, [default: {way(forward)}, {cases}]"]
