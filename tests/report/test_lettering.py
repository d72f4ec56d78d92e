"""Text of the pictures: estimates of its width are from above, every label lies in the picture and a name in its rectangle, no
two meet, for plans of any kind; in a browser, with its own fonts, at three widths; letters can be read on what they stand on.
"""
from __future__ import annotations

import dataclasses
import html
import itertools
import pathlib
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.tools.report import Report, report
from tosaic.jit.tools.report.axes import LAYOUTS
from tosaic.jit.tools.report.figures import BufferLine, StepLine
from tosaic.jit.tools.report.judge_boards import judge_boards
from tosaic.jit.tools.report.lettering import SIZE, Telling, width
from tosaic.jit.tools.report.page import page
from tosaic.lowering.target.boards import BOARDS

from .browser import BROWSER, probed
from .lettering import ADVANCES, BOLD, Text, pictures_of, size_of, texts_of
from .subjects import MODELS, buffer, by_rows, lowered, made

CSS = (pathlib.Path(__file__).parents[2] / "jit" / "tools" / "report" / "page.css").read_text()
PARTS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCMW0123456789_.-"), min_size=1, max_size=18)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.text(max_size=30)
SLACK = 0.02
"""Numbers in a page have two digits."""


# ---- widths ----------------------------------------------------------------------------------------------------------
@given(st.text(st.sampled_from(sorted(ADVANCES)), max_size=60), st.booleans())
def test_a_width_is_estimated_from_above(text: str, bold: bool) -> None:
    true = sum(ADVANCES[c] for c in text) / 2048 * SIZE * (BOLD if bold else 1)
    assert width(text, bold) >= true
    assert len(text) < 10 or set(text) != {"e"} or width(text, bold) < 1.3 * true


@given(st.lists(NAMES, min_size=1, max_size=12, unique=True), st.floats(0, 300))
def test_what_is_left_of_a_name_has_room(names: list[str], room: float) -> None:
    telling = Telling.of(names)
    for name in names:
        found = telling.cut(name, room)
        assert width(found) <= room or not found
        assert found == name or width(name) > room


def test_a_name_keeps_what_tells_it_from_others() -> None:
    names = [f"model/activation_{i}/Relu" for i in range(12)] + ["model/stream_1/concat"]
    telling = Telling.of(names)
    assert telling.cut(names[11], 1000) == names[11]
    assert telling.cut(names[11], width("activation_11")) == "activation_11"
    assert telling.cut(names[11], width("acti…ion_11")) == "acti…on_11"
    assert telling.cut("model/stream_1/concat", width("…/stream_1/concat")) == "…/stream_1/concat"
    assert telling.cut(names[11], 10) == ""


# ---- every picture ---------------------------------------------------------------------------------------------------
def labels_fit(found: Report) -> None:
    """Every label of a page's pictures lies in the picture, and no two meet; names lie in a rectangle."""
    pictures = pictures_of(html_of(found))
    assert len(pictures) == len(LAYOUTS) * sum(p.peak is not None for p in found.workspace_pools)
    for svg in pictures:
        texts, (wide, high) = list(texts_of(svg)), size_of(svg)
        for text in texts:
            assert text.left >= -SLACK and text.right <= wide + SLACK, text
            assert text.top >= -SLACK and text.bottom <= high + SLACK, text
        for one, other in itertools.combinations(texts, 2):
            assert not one.meets(other), (one, other)
        boxes = [tuple(float(r.attrib[k]) for k in ("x", "y", "width", "height")) for g in svg.iter("g")
                 for r in g.iter("rect")]
        for text in texts:
            assert text.css != "name" or any(holds(box, text) for box in boxes), text


def holds(box: tuple[float, ...], text: Text) -> bool:
    left, top, wide, high = box
    return (left - SLACK <= text.left and text.right <= left + wide + SLACK
            and top - SLACK <= text.top and text.bottom <= top + high + SLACK)


def html_of(found: Report) -> str:
    return page(found, "some plan")


@st.composite
def plans(draw: Any) -> Report:
    """A plan of any kind: names, sizes, lifetimes, kernels by rows or whole, buffers over each other, a limit or none."""
    ticks = draw(st.integers(1, 120))
    unit = draw(st.sampled_from([1, 64, 999, 1 << 20]))
    count = draw(st.integers(1, 25))
    buffers: list[BufferLine] = []
    for number in range(count):
        first = draw(st.integers(0, ticks - 1))
        last = draw(st.integers(first, ticks - 1))
        name = draw(NAMES)
        made_of = buffer(f"{name}~{number}", unit * draw(st.integers(1, 40)), unit * draw(st.integers(0, 60)), (first, last),
                         kind=draw(st.sampled_from(["intermediate", "scratch", "input"])))
        buffers.append(dataclasses.replace(made_of, label=name if draw(st.booleans()) else None))
    kernels = draw(st.integers(4, 130))
    found = made(*buffers, ticks=ticks, kernels=kernels, limit=draw(st.none() | st.integers(1, 100 * unit)))
    if draw(st.booleans()):
        low = draw(st.integers(0, ticks - 1))
        steps = tuple(StepLine("compute", (low + t % 3) % kernels, (t, t + 1)) if t >= low else s
                      for t, s in enumerate(found.timeline))
        found = dataclasses.replace(found, timeline=steps)
    return found


@settings(max_examples=60, deadline=None)
@given(plans())
def test_no_label_of_any_plan_is_cut_or_meets_another(found: Report) -> None:
    labels_fit(found)


@pytest.mark.parametrize("model", [*MODELS, by_rows(40, 5)])
def test_no_label_of_a_model_is_cut_or_meets_another(model: str) -> None:
    labels_fit(report(lowered(model)))


def test_a_wide_buffer_has_its_name_and_a_tall_one_has_it_upright() -> None:
    wide, tall = buffer("a_rather_long_name", 100, 0, (0, 9)), buffer("another_long_name", 900, 100, (4, 4))
    for svg in pictures_of(html_of(made(wide, tall, ticks=15, kernels=15))):
        texts = {e.text: "transform" in e.attrib for e in svg.iter("text") if e.attrib["class"] == "name"}
        assert texts == {"a_rather_long_name": False, "another_long_name": True}


def test_the_peak_is_said_wherever_it_is() -> None:
    for tick in (0, 15, 29):
        for svg in pictures_of(html_of(made(buffer("x", 10_000_000, 0, (tick, tick)), ticks=30, kernels=30))):
            (label,) = [t for t in texts_of(svg) if t.css == "peak-label"]
            assert label.words.startswith("peak: 10,000,000 bytes")


# ---- what a reader sees ----------------------------------------------------------------------------------------------
def colours(dark: bool) -> dict[str, str]:
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})\b", blocks[0] + (blocks[1] if dark else "")))


def luminance(colour: str) -> float:
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("letters", "ground"), [
    ("ink", "page"), ("ink", "surface"), ("muted", "page"), ("muted", "surface"), ("ink", "value"), ("ink", "peak"),
    ("ink", "io"), ("bad", "surface"), ("good", "surface"), ("mark", "surface"), ("surface", "ink")])
def test_letters_can_be_read_on_what_they_stand_on(letters: str, ground: str, dark: bool) -> None:
    known = colours(dark)
    low, high = sorted((luminance(known[letters]), luminance(known[ground])))
    assert (high + 0.05) / (low + 0.05) >= 4.5


PROBE = """<script>
const pictures = [...document.querySelectorAll("svg.plan")].filter(s => getComputedStyle(s).display !== "none");
document.querySelectorAll("details").forEach(d => { d.open = true; });
const seen = {page: document.documentElement.scrollWidth, window: innerWidth, sizes: [], texts: []};
seen.scrolled = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.textContent.slice(0, 60));
for (const svg of pictures) {
  const size = svg.getBoundingClientRect(), scale = size.width / svg.viewBox.baseVal.width;
  seen.sizes.push([svg.getAttribute("class"), parseFloat(getComputedStyle(svg).fontSize) * scale]);
  seen.texts.push([...svg.querySelectorAll("text")].map(t => { const b = t.getBoundingClientRect();
    return [t.textContent, b.left - size.left, b.top - size.top, b.right - size.left, b.bottom - size.top, size.width]; }));
}
PROBED(seen);
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to open the page in")
@pytest.mark.parametrize(("width", "layout"), [(390, "narrow"), (820, "medium"), (1440, "wide")])
@pytest.mark.parametrize("model", ["corpus/f_attention_block", "rows"])
def test_labels_and_tables_have_room_in_a_browser(model: str, width: int, layout: str, tmp_path: pathlib.Path) -> None:
    subject = lowered(by_rows(40, 5) if model == "rows" else model)
    found = report(subject, ladder=True, boards=judge_boards(subject, BOARDS[:2]))
    long = tuple(dataclasses.replace(b, label=f"a_model/with_long_parts_{i}/of_its_names/Relu")
                 for i, b in enumerate(found.buffers))
    seen = probed(html_of(dataclasses.replace(found, buffers=long)), PROBE, width, tmp_path)
    assert seen["page"] <= seen["window"] and seen["scrolled"] == []
    ((css, size),) = seen["sizes"]
    assert css == f"plan {layout}" and size >= 9.5
    (texts,) = seen["texts"]
    assert any("_1/" in html.unescape(t[0]) or "parts" in t[0] for t in texts)
    for words, left, _, right, _, whole in texts:
        assert left >= -0.5 and right <= whole + 0.5, words
    for one, other in itertools.combinations(texts, 2):
        apart = one[3] <= other[1] + 0.5 or other[3] <= one[1] + 0.5 or one[4] <= other[2] + 2 or other[4] <= one[2] + 2
        assert apart, (one, other)
