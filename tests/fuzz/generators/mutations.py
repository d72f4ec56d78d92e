"""Valid MLIR text -> text with something changed, by a seed: an operation dropped, an operand swapped, dropped or given twice,
a region dropped or given twice, a type or an attribute changed or dropped, a branch sent elsewhere.

Works on text in the generic form, one operation a line and regions in `({`, `}, {` and `})` lines, as the printer writes it.
"""
from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable

TYPES = ("tensor<f32>", "tensor<i1>", "tensor<i32>", "tensor<2xf32>", "tensor<?xf32>", "tensor<*xf32>", "tensor<0xf32>",
         "tensor<?x0x3xf32>", "tensor<2x2xi32>", "tensor<1x3xi8>", "i1", "index", "!tosa.shape<2>", "!tf_executor.control",
         "tensor<!tf_type.string>", "tensor<2x!quant.uniform<i8:f32, 0.5:1>>", "none", "tensor<2xf32, #m>",
         "tensor<4294967296xf32>")
VALUES = ("true", "0 : i32", "-1 : i64", "[0, 1]", '"x"', "dense<0> : tensor<2xi32>", "dense<[]> : tensor<0xi32>", "@main",
          "unit", "array<i64: 0, -3>", "1.5 : f32", "f32", "affine_map<(d0) -> (d0)>")
TYPE = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|\bi1\b")
OPERANDS = re.compile(r'(?<=["\w])\((%[^()]*)\)')
ATTRIBUTE = re.compile(r"(?<=[{ ])(\w+) = ([^,{}<>]+)")
LABEL = re.compile(r"\^bb\d+")
NAME = re.compile(r"%[\w#]+")


def mutated(text: str, seed: str, count: int = 1) -> str:
    """The text with a few changes."""
    chosen = random.Random(seed)
    for _ in range(count):
        text = chosen.choice(MUTATIONS)(text, chosen)
    return text


def dropped_line(text: str, chosen: random.Random) -> str:
    lines = text.split("\n")
    plain = [n for n, line in enumerate(lines) if line.strip() and not line.rstrip().endswith(("{", "}")) and "})" not in line]
    if plain:
        del lines[chosen.choice(plain)]
    return "\n".join(lines)


def doubled_line(text: str, chosen: random.Random) -> str:
    lines = text.split("\n")
    plain = [n for n, line in enumerate(lines) if line.strip() and not line.rstrip().endswith(("{", "}")) and "})" not in line]
    if plain:
        lines.insert(chosen.choice(plain), lines[chosen.choice(plain)])
    return "\n".join(lines)


def changed_match(pattern: re.Pattern[str], text: str, chosen: random.Random, change: Callable[[re.Match[str]], str]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = chosen.choice(found)
    return text[:match.start()] + change(match) + text[match.end():]


def changed_operands(text: str, chosen: random.Random) -> str:
    def change(match: re.Match[str]) -> str:
        names = match[1].split(", ")
        what = chosen.randrange(4)
        if what == 0:
            names.pop(chosen.randrange(len(names)))
        elif what == 1:
            names.insert(chosen.randrange(len(names) + 1), chosen.choice(names))
        elif what == 2:
            chosen.shuffle(names)
        else:
            names[chosen.randrange(len(names))] = chosen.choice(NAME.findall(text))
        return f"({', '.join(names)})"
    return changed_match(OPERANDS, text, chosen, change)


def changed_operands_and_types(text: str, chosen: random.Random) -> str:
    """The first operand of an operation dropped or given twice, and its type with it."""
    pattern = re.compile(r'^(.*"\()(%[\w#]+)((?:, %[\w#]+)*)(\).* : \()([^()]*?)(\) -> .*)$', re.MULTILINE)

    def change(match: re.Match[str]) -> str:
        types = re.split(r", (?![^<>]*>)", match[5])
        if chosen.random() < 0.5:
            return f"{match[1]}{match[2]}, {match[2]}{match[3]}{match[4]}{types[0]}, {', '.join(types)}{match[6]}"
        return f"{match[1]}{match[3].removeprefix(', ')}{match[4]}{', '.join(types[1:])}{match[6]}"
    return changed_match(pattern, text, chosen, change)


def changed_type(text: str, chosen: random.Random) -> str:
    return changed_match(TYPE, text, chosen, lambda match: chosen.choice(TYPES))


def changed_type_everywhere(text: str, chosen: random.Random) -> str:
    found = TYPE.findall(text)
    return text.replace(chosen.choice(found), chosen.choice(TYPES)) if found else text


def changed_attribute(text: str, chosen: random.Random) -> str:
    return changed_match(ATTRIBUTE, text, chosen, lambda match: f"{match[1]} = {chosen.choice(VALUES)}")


def dropped_attribute(text: str, chosen: random.Random) -> str:
    return changed_match(re.compile(r"(?<=[{ ])(\w+) = ([^,{}<>]+)(, )?"), text, chosen, lambda match: "")


def changed_region(text: str, chosen: random.Random) -> str:
    """A region dropped, given twice, or emptied: what stands between two lines that border one."""
    lines = text.split("\n")
    borders = [n for n, line in enumerate(lines) if line.rstrip().endswith("({") or line.strip().startswith(("}, {", "})"))]
    pairs = [(a, b) for a, b in itertools.pairwise(borders) if not lines[a].strip().startswith("})")]
    if not pairs:
        return text
    first, last = chosen.choice(pairs)
    inner, what = lines[first + 1:last], chosen.randrange(3)
    if what == 0:
        lines[first + 1:last] = []
    elif what == 1:
        lines[last:last] = ["  }, {", *inner]
    elif lines[first].strip() == "}, {":
        del lines[first:last]
    return "\n".join(lines)


def changed_label(text: str, chosen: random.Random) -> str:
    labels = LABEL.findall(text)
    return changed_match(LABEL, text, chosen, lambda match: chosen.choice(labels)) if labels else text


MUTATIONS = (dropped_line, doubled_line, changed_operands, changed_operands_and_types, changed_type, changed_type_everywhere,
             changed_attribute, dropped_attribute, changed_region, changed_region, changed_label)
