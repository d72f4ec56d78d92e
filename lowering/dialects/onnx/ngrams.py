"""TfIdfVectorizer: counts of groups of words, which are numbers, in a text; some words between them may be skipped."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from ....runtime.errors import Problem
from ...formulas.layout import part, taken
from ...graph.graph import Value
from ...graph.types import F32, I32, I64, Array
from ..emitter import Emitter
from .operator import Floats, Ints, Operator, Strings, operator


@operator("TfIdfVectorizer")
class TfIdfVectorizer(Operator):
    """Counts of n-grams. `ngram_counts` gives the starts in the pool of the groups of one word, of two, and so on;
    `ngram_indexes` the index in the result of each group's count."""
    max_gram_length: int
    max_skip_count: int
    min_gram_length: int
    mode: str
    ngram_counts: Ints
    ngram_indexes: Ints
    pool_int64s: Ints = ()
    pool_strings: Strings = ()
    weights: Floats = ()

    def groups(self) -> Iterator[tuple[int, int, list[tuple[int | str, ...]]]]:
        """Yield, for each number of words: that number, the number of its first group, and its groups."""
        pool: Sequence[int | str] = self.pool_int64s or self.pool_strings
        ends, first = [*self.ngram_counts[1:], len(pool)], 0
        for length, (start, end) in enumerate(zip(self.ngram_counts, ends), 1):
            own = [tuple(pool[k:k + length]) for k in range(start, end, length)]
            if self.min_gram_length <= length <= self.max_gram_length:
                yield length, first, own
            first += len(own)

    @property
    def count(self) -> int:
        return max(self.ngram_indexes, default=-1) + 1

    def skips(self, length: int) -> range:
        return range(self.max_skip_count + 1 if length > 1 else 1)

    def reference(self, x: Array) -> Array:
        rows = x.reshape(1, -1) if x.ndim < 2 else x
        found = np.zeros((len(rows), self.count), np.float32)
        for result, words in zip(found, rows.tolist()):
            for length, first, groups in self.groups():
                seen: Counter[tuple[int | str, ...]] = Counter()
                for step in (skip + 1 for skip in self.skips(length)):
                    reach = (length - 1) * step
                    seen.update(tuple(words[i:i + reach + 1:step]) for i in range(len(words) - reach))
                for number, group in enumerate(groups, first):
                    result[self.ngram_indexes[number]] = self.weighed(seen[group], number)
        return found.reshape(*x.shape[:-1], self.count)

    def weighed(self, count: int, number: int) -> float:
        weight = self.weights[number] if self.weights else 1.0
        match self.mode:
            case "TF":
                return count
            case "IDF":
                return weight if count else 0.0
            case "TFIDF":
                return count * weight
            case _:
                raise Problem(f"the mode {self.mode} is not known", kind="attribute", help="TF, IDF, TFIDF")

    def lower(self, e: Emitter, x: Value) -> Value:
        """Compare each group with all positions at once, and move the counts to their indices."""
        if not self.pool_int64s:
            raise Problem("words that are strings have no place in TOSA", kind="unsupported", help="give it numbers of words")
        *outer, extent = x.tensor.dims
        words = e.reshape(x if x.tensor.element in (I32, I64) else e.cast(x, I64), (*(outer or [1]), extent))
        rows, places = words.tensor.dims[0], np.zeros(self.count, np.int32)
        counts: list[Value] = []
        for length, first, groups in self.groups():
            if not groups:
                continue
            table = np.array(groups)
            for number in range(len(groups)):
                places[self.ngram_indexes[first + number]] = 1 + sum(c.tensor.dims[1] for c in counts) + number
            counts.append(reduce(e.sum, [self.occurrences(e, words, table, skip + 1) for skip in self.skips(length)]))
        zeros = e.constant(np.zeros((rows, 1), np.int32))  # counts of groups whose number of words is ignored
        found = e.cast(taken(e, e.concat([zeros, *counts], 1), 1, places), F32)
        return e.reshape(self.scaled(e, found), (*outer, self.count))

    def occurrences(self, e: Emitter, words: Value, groups: Array, step: int) -> Value:
        """Return the count of each group in each row, [rows, groups], with its words `step` apart."""
        rows, extent = words.tensor.dims
        length = groups.shape[1]
        places = extent - (length - 1) * step
        if places <= 0:
            return e.constant(np.zeros((rows, len(groups)), np.int32))
        same = []
        for k in range(length):
            own = e.reshape(part(e, words, 1, k * step, k * step + places), (rows, places, 1))
            same.append(e("equal", own, e.constant(groups[None, None, :, k].astype(words.tensor.element.dtype))))
        found = reduce(lambda a, b: e("logical_and", a, b), same)
        return e.reshape(e("reduce_sum", e.cast(found, I32), axis=1), (rows, len(groups)))

    def scaled(self, e: Emitter, counts: Value) -> Value:
        if self.mode == "TF":
            return counts
        weights = np.ones((1, self.count), np.float32)
        for number, place in enumerate(self.ngram_indexes):
            weights[0, place] = self.weights[number] if self.weights else 1.0
        if self.mode not in ("IDF", "TFIDF"):
            raise Problem(f"the mode {self.mode} is not known", kind="attribute", help="TF, IDF, TFIDF")
        factor = e.constant(weights)
        if self.mode == "TFIDF":
            return e.product(counts, factor)
        return e.select(e("greater", counts, e.splat(0, counts)), factor, e.splat(0, factor))
