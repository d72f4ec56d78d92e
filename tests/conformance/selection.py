"""Which of the suite's tests stand for the rest: pure functions of the tests' names.

The suite has many tests that differ in shape alone. Of each operator, group of the generator, element type and
special kind (data set, float specials, full range, mode of rescale and resize, ...) one is taken; every negative test
is taken. For each change of the code, as many of these as have each type, each word of a kind and each rule once.
"""
from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

NEGATIVE = "_ERRORIF_"
LARGE = 50_000
"""Elements of the largest shape in a name above which a test is only taken when its group has no smaller one."""

LARGE_FOR_CI = 10_000
"""The same in a selection for each change of the code: Fourier transforms of 16,384 elements take a minute together."""

ELEMENT = r"(?:b|[iu]\d+|f\d+(?:u?e\d+m\d+)?|bf\d+|mi8|bs\d+-f8ue8m0-(?:f\de\dm\d|mi8))"
TYPE = re.compile(rf"(?:out|acc|idx|wt?)?{ELEMENT}(?:x{ELEMENT})*")
"""A word of a name that says element types: i8, f16, bf16, f8e4m3, i8xi4, accf32, outi16."""

SPECIAL = re.compile(r"fs|full|is|si|max|dyn|s[0-5]")
MODES = re.compile(r"rm.?|sc[01]|pc[01]|iu[01]|ou[01]|nan\w*|mode\w*")
MODE_OPERATORS = ("rescale", "resize", "clamp", "maximum", "minimum")
SHAPE = re.compile(r"\d+(?:x\d+)*")
RULE = re.compile(rf"{NEGATIVE}([A-Za-z0-9]+)")

NEW_OPERATORS = frozenset((
    "add_shape", "assert_equal_shape", "avg_pool2d_adaptive", "cast_from_block_scaled", "cast_to_block_scaled",
    "concat_shape", "conv2d_block_scaled", "dim", "div_ceil_shape", "div_floor_shape", "exp2_shape",
    "log2_ceil_shape", "log2_floor_shape", "matmul_t", "matmul_t_block_scaled", "max_pool2d_adaptive",
    "max_shape", "min_shape", "mod_shape", "mul_shape", "reshape_block_scaled", "row_gather",
    "row_gather_block_scaled", "slice_shape", "sub_shape"))
"""Those that 1.1 adds."""

NEW_GROUPS = re.compile("int64|mx")
"""What the generator calls its groups for the types that 1.1 adds."""

MIXES = {"conv2d": 0.12, "matmul_t": 0.2}
"""Share of their kinds in 1.1 that is kept of operators with thousands of mixes of block-scaled and other types: 300 each."""

MIXES_FOR_CI = {"conv2d": 0.03, "matmul_t": 0.08, "avg_pool2d_adaptive": 0.5}
"""The same in a selection for each change of the code."""

KINDS_FOR_CI = 0.2
"""Share of the kinds of 1.0 that is kept there of those that have no type and no word of their own."""

OLD_FOR_CI = 0.3
"""The same of operators that 1.0 has, for the types that 1.1 adds."""


def kind(operator: str, name: str) -> tuple[str, ...]:
    """What a positive test is about besides its shape: the words of its name that say types, data and modes."""
    words = name.split("_")
    found = [word for word in words if TYPE.fullmatch(word) or SPECIAL.fullmatch(word)]
    if operator in MODE_OPERATORS:
        found += [word for word in words if MODES.fullmatch(word)]
    return tuple(found)


def elements(name: str) -> int:
    """Elements of the largest shape that the name has a word for."""
    shapes = [word for word in name.split("_") if SHAPE.fullmatch(word)]
    return max((math.prod(map(int, word.split("x"))) for word in shapes), default=1)


def order(name: str, large: int = LARGE) -> tuple[bool, str]:
    """Where a name stands among those of its group: small ones first, then by a hash, which is the same everywhere."""
    return elements(name) > large, hashlib.sha1(name.encode()).hexdigest()


def share(text: str) -> float:
    """A number from 0 to 1 that a text always has."""
    return int(hashlib.sha1(text.encode()).hexdigest()[:8], 16) / 0x1_0000_0000


def one_of_each_rule(names: Iterable[str]) -> list[str]:
    """Of the negative tests among the names the first of each rule."""
    first: dict[str, str] = {}
    for name in sorted(names, key=order):
        if found := RULE.search(name):
            first.setdefault(found[1], name)
    return list(first.values())


def covering(operator: str, names: Iterable[str], kept: float) -> list[str]:
    """Positive tests, each of a kind of its own, that have each combination of element types and each word that the names
    have, and a share of the others. A large one is taken for its types alone."""
    chosen, seen = [], set[tuple[str, ...]]()
    for name in sorted(names, key=lambda name: order(name, LARGE_FOR_CI)):
        words = kind(operator, name)
        parts = {tuple(word for word in words if TYPE.fullmatch(word))}
        is_small = elements(name) <= LARGE_FOR_CI
        if is_small:
            parts |= {(word,) for word in words}
        if not parts <= seen or (is_small and share(f"kept {name}") < kept):
            chosen.append(name)
        seen |= parts
    return chosen


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests are chosen for a version of the specification: the compact selection, or a part of it (`is_for_ci`), which
    for 1.1 leaves out what 1.0 has already."""
    version: str
    is_for_ci: bool = False

    def takes(self, operator: str, group: str) -> bool:
        """True if anything is chosen of the generator's group of an operator's tests."""
        new = operator in NEW_OPERATORS or bool(NEW_GROUPS.search(group))
        return new or self.version == "1.0" or not self.is_for_ci

    def kept(self, operator: str, group: str) -> float:
        """The share of the kinds that is kept in one of the generator's groups."""
        if self.version == "1.0" or not (operator in NEW_OPERATORS or NEW_GROUPS.search(group)):
            return 1.0
        if not self.is_for_ci:
            return MIXES.get(operator, 1.0)
        return MIXES_FOR_CI.get(operator, 1.0 if operator in NEW_OPERATORS else OLD_FOR_CI)

    def choose(self, operator: str, group: str, names: Iterable[str]) -> list[str]:
        """The chosen ones among the names of one of the generator's batches, which are of one operator and one group."""
        kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
        negative, kept = [], self.kept(operator, group)
        for name in names:
            if NEGATIVE in name:
                negative.append(name)
            else:
                kinds[kind(operator, name)].append(name)
        large = LARGE_FOR_CI if self.is_for_ci else LARGE
        positive = [min(members, key=lambda name: order(name, large)) for words, members in kinds.items()
                    if share(f"{operator} {words}") < kept]
        if self.is_for_ci:
            negative = one_of_each_rule(negative)
            if self.version == "1.0":
                positive = covering(operator, positive, KINDS_FOR_CI)
        return sorted(negative + positive)
