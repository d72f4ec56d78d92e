"""Where the text of a picture stands, read from its SVG: boxes by the widths of a font as wide as those for screens are.
Shares no code with the picture.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

ADVANCES = dict(zip(map(chr, range(32, 127)), (
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303, 1303, 1303, 1303, 1303, 1303,
    1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604,
    1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300, 1300, 842, 1067, 803,
    1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716)))
"""Of the printable characters of ASCII, in DejaVu Sans: 2048ths of the size."""
ASCENT, DESCENT = 0.76, 0.24
"""Of letters with the longest stems, in sizes."""
BOLD = 1.11
"""Bold digits and letters of that font are so much wider on average."""


@dataclass(frozen=True)
class Text:
    """A text of a picture and the rectangle that it covers."""
    words: str
    css: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Text) -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


def texts_of(svg: ElementTree.Element) -> Iterator[Text]:
    """The texts of a picture, turned as they are."""
    size = float(svg.attrib["font-size"])
    for element in svg.iter("text"):
        css, words = element.attrib["class"].split(), element.text or ""
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        long = sum(ADVANCES.get(c, 2048) for c in words) / 2048 * size * (BOLD if "peak-label" in css else 1)
        begin = -long if "end" in css else -long / 2 if "middle" in css else 0.0
        if turn := element.attrib.get("transform"):
            found = re.fullmatch(r"rotate\(-90 ([\d.]+) ([\d.]+)\)", turn)
            assert found and abs(float(found[1]) - x) < 0.01 and abs(float(found[2]) - y) < 0.01
            yield Text(words, css[0], x - ASCENT * size, y - begin - long, x + DESCENT * size, y - begin)
        else:
            yield Text(words, css[0], x + begin, y - ASCENT * size, x + begin + long, y + DESCENT * size)


def pictures_of(page: str) -> list[ElementTree.Element]:
    """The pictures of a page."""
    return [ElementTree.fromstring(found.replace("tabindex", "data-tabindex")) for found in
            re.findall(r'<svg class="plan.*?</svg>', page, re.DOTALL)]


def size_of(svg: ElementTree.Element) -> tuple[float, float]:
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    return width, height
