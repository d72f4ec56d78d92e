"""Text of the quant dialect's types -> quantized element types; `types` finds where one begins and ends."""
from __future__ import annotations

import re

from ...runtime.errors import Problem
from ..graph.quantized import STORAGE, Quantized, any_quantized, calibrated, uniform
from ..graph.types import BF16, F16, F32, F64, ElementType
from .syntax import SyntaxFault

NAMES = ("!quant.uniform", "!quant.any", "!quant.calibrated")
FLOATS: dict[str, ElementType] = {t.name: t for t in (F16, BF16, F32, F64)}

GAP, INTEGER, REAL = r"\s*", r"(-?[0-9]{1,12})", r"-?[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][-+]?[0-9]{1,4})?"
STORED = rf"(?P<storage>\w+){GAP}(?:<{GAP}(?P<low>-?[0-9]{{1,12}}){GAP}:{GAP}(?P<high>-?[0-9]{{1,12}}){GAP}>{GAP})?"
UNIFORM = re.compile(rf"<{GAP}{STORED}:{GAP}(?P<expressed>\w+){GAP}(?::{GAP}(?P<axis>[0-9]{{1,4}}){GAP})?,{GAP}"
                     rf"(?P<parameters>[^{{}}<>]*|\{{[^{{}}<>]*\}}){GAP}>")
ANY = re.compile(rf"<{GAP}{STORED}(?::{GAP}(?P<expressed>\w+){GAP})?>")
CALIBRATED = re.compile(rf"<{GAP}(?P<expressed>\w+){GAP}<{GAP}(?P<low>{REAL}){GAP}:{GAP}(?P<high>{REAL}){GAP}>{GAP}>")
PARAMETER = re.compile(rf"({REAL})(?:{GAP}:{GAP}{INTEGER})?")
BLOCKWISE = re.compile(r":\s*\{")
"""Scales for each block of several axes."""
EXAMPLES = {"!quant.uniform": "!quant.uniform<i8:f32, 0.01:-3>", "!quant.any": "!quant.any<i8<-8:7>:f32>",
            "!quant.calibrated": "!quant.calibrated<f32<-1.0:2.5>>"}


def read_quantized(text: str, name: str) -> Quantized | None:
    """Return the type that `text` spells (`name`, then `<...>`); None for a valid but unsupported one: other storage, scales
    for each block. Raise a SyntaxFault for an invalid type, with its offset from the first character of the text."""
    body = text[len(name):]
    if "!" in body or BLOCKWISE.search(body):
        return None
    match = {"!quant.uniform": UNIFORM, "!quant.any": ANY}.get(name, CALIBRATED).fullmatch(body)
    if match is None:
        raise SyntaxFault(f"expected a quantized type, as in {EXAMPLES[name]}", 0, len(text), "type")
    expressed: str | None = match["expressed"]
    if expressed is not None and expressed not in FLOATS:
        raise SyntaxFault(f"{expressed} cannot be what a quantized type stands for", len(name) + match.start("expressed"),
                          len(expressed), "type", f"it may be {', '.join(FLOATS)}")
    try:
        return built(name, match, FLOATS[expressed] if expressed else None)
    except Problem as problem:
        raise SyntaxFault(problem.message, 0, len(text), problem.kind, problem.help) from None
    except SyntaxFault as fault:
        fault.offset += len(name)
        raise


def built(name: str, match: re.Match[str], expressed: ElementType | None) -> Quantized | None:
    """The type from its parts."""
    if name == "!quant.calibrated":
        return calibrated(FLOATS[match["expressed"]], float(match["low"]), float(match["high"]))
    storage = re.sub(r"^([su])i", lambda m: "u" if m[1] == "u" else "i", match["storage"])
    if storage not in STORAGE:
        return None
    limits = (int(match["low"]), int(match["high"])) if match["low"] else None
    if name == "!quant.any":
        return any_quantized(storage, expressed, limits)
    assert expressed is not None
    axis, given = match["axis"], match["parameters"].strip()
    if given.startswith("{") == (axis is None):
        raise SyntaxFault("expected one scale, or with an axis one for each index, as in i8:f32:0, {0.1,0.2:1}",
                          match.start("parameters"), len(given), "type")
    scales, zero_points = [], []
    for part in given.strip("{}").split(","):
        pair = PARAMETER.fullmatch(part.strip())
        if pair is None:
            raise SyntaxFault("expected a scale and perhaps a zero point, as in 0.01:-3", match.start("parameters"), len(given),
                              "type")
        scales.append(float(pair[1]))
        zero_points.append(int(pair[2] or 0))
    return uniform(storage, expressed, scales, zero_points, None if axis is None else int(axis), limits)
