"""The HTML page: well-formed, self-contained, escaped, the same bytes each time, and small for large programs."""
from __future__ import annotations

import dataclasses
import html.parser
import pathlib
import re

import pytest
from tosaic.jit.tools.report import Report, report
from tosaic.jit.tools.report.axes import LAYOUTS
from tosaic.jit.tools.report.fit import fit, parse_limits
from tosaic.jit.tools.report.page import page
from tosaic.lowering.memory.planner import Memory

from .browser import BROWSER, probed
from .subjects import MODELS, buffer, by_rows, in_pools, lowered, made

VOID = {"meta", "wbr"}
HOSTILE = "</title></script><script>alert(1)</script>\"'&<img src=http://x.y/>\x00\x1b[31m\u202e"


class Checker(html.parser.HTMLParser):
    """Elements as they open and close, and their attributes; an AssertionError where they do not nest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert not checker.open
    return checker


def hostile() -> Report:
    """A report in which every text is out to break the page."""
    first = dataclasses.replace(buffer("x", 64, 0, (0, 3)), name=HOSTILE, dtype=HOSTILE)
    found = made(first, buffer("b" * 5000, 64, 64, (1, 2)))
    kernel = dataclasses.replace(found.kernels[0], writes=HOSTILE, operators=HOSTILE, place=HOSTILE, source=HOSTILE)
    named = dataclasses.replace(found.buffers[0], name=HOSTILE)
    return dataclasses.replace(found, name=HOSTILE, target=HOSTILE, kernels=(kernel,) * 4, variables=(named,), inputs=(named,),
                               constant_buffers=(named,), pools=(dataclasses.replace(found.pools[0], name=HOSTILE),),
                               buffers=tuple(dataclasses.replace(b, pool=HOSTILE) for b in found.buffers))


@pytest.mark.parametrize("model", MODELS)
def test_a_page_is_well_formed_and_loads_nothing(model: str) -> None:
    text = page(report(lowered(model), ladder=True, code=True), model)
    found = parsed(text)
    assert [tag for tag, _ in found.seen].count("html") == 1 and text.startswith("<!DOCTYPE html>")
    assert "://" not in text and "@import" not in text and "url(//" not in text
    assert not any({"src", "href", "srcset", "onload", "onclick"} & given.keys() for _, given in found.seen)
    assert all(address.startswith("#") for address in re.findall(r"url\(([^)]*)\)", text))
    ids = [given["id"] for _, given in found.seen if "id" in given]
    assert len(ids) == len(set(ids))


def test_a_page_is_the_same_each_time_whatever_the_clock_says() -> None:
    first, second = (page(report(lowered("corpus/v_lstm"), ladder=True, code=True), "lstm") for _ in range(2))
    assert first == second


def test_the_text_names_every_buffer_and_the_peak_without_a_script() -> None:
    facts = report(lowered("corpus/f_attention_block"), ladder=True)
    found = parsed(page(facts, "attention"))
    whole = " ".join(found.text)
    assert facts.peak is not None and f"{facts.peak.nbytes:,} bytes" in whole
    for b in facts.buffers:
        assert f"{b.name}: {b.type}\n{b.nbytes:,} bytes at {b.offset:,}" in whole
    drawn = [given for tag, given in found.seen if tag == "g" and "b" in (given.get("class") or "").split()]
    assert len(drawn) == len(facts.buffers) * len(LAYOUTS)
    assert sum("peak" in (g["class"] or "") for g in drawn) == len(facts.peak.alive) * len(LAYOUTS)


def test_names_from_a_model_cannot_become_markup() -> None:
    text = page(hostile(), HOSTILE, fit(hostile(), parse_limits("ram:1,rom:1")))
    found = parsed(text)
    tags = [tag for tag, _ in found.seen]
    assert tags.count("script") == 2 and "img" not in tags and tags.count("title") - tags.count("g") == 1
    assert "\x00" not in text and "\x1b" not in text and "\u202e" not in text
    assert "b" * 100 not in text


def test_rectangles_lie_at_their_offsets_and_times() -> None:
    found = parsed(page(made(buffer("low", 100, 0, (0, 1)), buffer("high", 300, 100, (1, 1), (3, 3))), "two"))
    rects = [{k: float(v or 0) for k, v in given.items() if k in ("x", "y", "width", "height")} for tag, given in found.seen
             if tag == "rect" and given.keys() == {"x", "y", "width", "height"}]
    each = len(rects) // len(LAYOUTS)
    for start in range(0, len(rects), each):
        low, *high = rects[start:start + each]
        check_two(low, high)


def check_two(low: dict[str, float], high: list[dict[str, float]]) -> None:
    assert len(high) == 2 and low["width"] == pytest.approx(2 * high[0]["width"], abs=0.02)
    assert high[0]["height"] == pytest.approx(3 * low["height"], abs=0.02)
    assert low["y"] == pytest.approx(high[0]["y"] + high[0]["height"], abs=0.02)
    assert high[1]["x"] == pytest.approx(high[0]["x"] + 2 * high[0]["width"], abs=0.02)


def test_an_empty_plan_says_so() -> None:
    text = " ".join(parsed(page(made(), "nothing")).text)
    assert "Nothing lies in this pool." in text and "It needs no working memory." in text


def test_buffers_that_share_bytes_say_so() -> None:
    text = page(made(buffer("under", 64, 0, (0, 2)), buffer("over", 64, 32, (2, 3)), buffer("alone", 8, 96, (0, 0))), "shared")
    assert text.count('class="b value peak shares"') == 2 * len(LAYOUTS)
    assert text.count("shares bytes with under") == len(LAYOUTS)
    assert "they share 32 bytes" in text and "More is live" not in text


def test_limits_and_waste_are_drawn() -> None:
    found = in_pools(lowered("corpus/f_attention_block"), Memory(algorithm="greedy_by_conflicts", workspace_io=True))
    facts = report(found)
    assert facts.waste > 0
    near = dataclasses.replace(facts, pools=(dataclasses.replace(facts.pools[0], limit=facts.arena + 100),))
    styles = [given.get("class") for _, given in parsed(page(near, "waste")).seen]
    assert "waste" in styles and "across limit" in styles and "across bound" in styles


@pytest.mark.parametrize("kind", ["rows", "buffers", "scratch"])
def test_a_large_program_has_a_small_page(kind: str) -> None:
    match kind:
        case "rows":
            facts = report(lowered(by_rows(900, 8)), ladder=True)
            assert len(facts.timeline) > 5000
        case "buffers":
            names = [f"a_rather_long_name_of_a_tensor_{i}" for i in range(3000)]
            buffers = [buffer(name, 64, 64 * (i % 50), (i, i + 49)) for i, name in enumerate(names)]
            facts = made(*buffers, ticks=3100, kernels=3100)
        case _:
            spans = [[(t, t) for t in range(i, 20_000, 7)] for i in range(7)]
            facts = made(*(buffer(f"s{i}", 8, 8 * i, *live, kind="scratch") for i, live in enumerate(spans)), ticks=20_000)
    text = page(facts, kind)
    parsed(text)
    assert len(text.encode()) < 1 << 20


# ---- in a browser ----------------------------------------------------------------------------------------------------
PROBE = """<script>
const svg = [...document.querySelectorAll("svg.plan")].find(s => getComputedStyle(s).display !== "none");
const buffer = svg.querySelectorAll("g.b")[1], box = buffer.getBoundingClientRect(), tip = document.getElementById("tip");
const seen = {};
buffer.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 1, clientY: box.top + 1}));
seen.buffer = tip.textContent;
const hit = svg.querySelector(".hit"), area = hit.getBoundingClientRect();
hit.dispatchEvent(new PointerEvent("pointermove", {clientX: area.right - 1, clientY: area.top + 1}));
seen.step = tip.textContent;
svg.querySelector("g.b").dispatchEvent(new KeyboardEvent("keydown", {key: "End"}));
seen.focus = document.activeElement === [...svg.querySelectorAll("g.b")].at(-1);
PROBED(seen);
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to open the page in")
@pytest.mark.parametrize("width", [420, 1400])
def test_the_page_works_in_a_browser(width: int, tmp_path: pathlib.Path) -> None:
    facts = report(lowered("corpus/f_attention_block"), ladder=True)
    seen = probed(page(facts, "attention"), PROBE, width, tmp_path)
    assert re.match(r"\S+: \w+\[.*\]\n[\d,]+ bytes at [\d,]+", seen["buffer"])
    assert re.match(rf"[\d,]+ bytes live\nkernel {len(facts.kernels) - 1} ", seen["step"]) and seen["focus"]
