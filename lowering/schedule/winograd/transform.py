"""The product of a small constant matrix and a vector of vectors, with as few operations as the matrix's symmetry allows."""
from __future__ import annotations

from collections.abc import Sequence

from ...loops.builder import Builder
from ...loops.ir import Literal, Operand

Row = Sequence[float]


def transformed(b: Builder, matrix: Sequence[Row], values: Sequence[Operand]) -> list[Operand]:
    """Return matrix x values. Pairs of opposite points share additions: two rows that differ in the signs of every other
    element share the sums of even and of odd terms; two such columns share the sum and the difference of their values."""
    if pairs := opposite([[row[i] for row in matrix] for i in range(len(values))]):
        return by_columns(b, matrix, values, pairs)
    return by_rows(b, matrix, values)


def opposite(vectors: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the pairs of neighbouring vectors that differ in the signs of every other element."""
    found, i = [], 0
    while i + 1 < len(vectors):
        x, y = vectors[i:i + 2]
        if sum(v != 0 for v in x) > 1 and all(q == p * (-1)**n for n, (p, q) in enumerate(zip(x, y))):
            found.append((i, i + 1))
            i += 1
        i += 1
    return found


def by_columns(b: Builder, matrix: Sequence[Row], values: Sequence[Operand], pairs: Sequence[tuple[int, int]]) -> list[Operand]:
    sums = {i: b.op("add", values[i], values[j]) for i, j in pairs}
    differences = {i: b.op("sub", values[i], values[j]) for i, j in pairs}
    single = [i for i in range(len(values)) if all(i not in pair for pair in pairs)]
    return [combined(b, [(row[i], values[i]) for i in single] + [
        (row[i], (differences if n % 2 else sums)[i]) for i, _ in pairs]) for n, row in enumerate(matrix)]


def by_rows(b: Builder, matrix: Sequence[Row], values: Sequence[Operand]) -> list[Operand]:
    found: dict[int, Operand] = {}
    for i, j in opposite(matrix):
        even, odd = (combined(b, [(c, v) for c, v in zip(matrix[i][start::2], values[start::2])]) for start in (0, 1))
        found[i], found[j] = b.op("add", even, odd), b.op("sub", even, odd)
    return [found[i] if i in found else combined(b, list(zip(row, values))) for i, row in enumerate(matrix)]


def combined(b: Builder, terms: Sequence[tuple[float, Operand]]) -> Operand:
    """Return the sum of coefficients times values, starting from a value with coefficient 1 if there is one."""
    (first, total), *others = sorted([(c, v) for c, v in terms if c], key=lambda t: t[0] != 1)
    if first != 1:
        total = b.op("mul", total, Literal(first, total.type))
    for c, v in others:
        match c:
            case 1:
                total = b.op("add", total, v)
            case -1:
                total = b.op("sub", total, v)
            case _:
                total = b.op("fma", v, Literal(c, v.type), total)
    return total
