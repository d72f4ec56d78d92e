"""What a notebook shows of a graph, a plan and a report: well-formed HTML, no script, names that cannot end a tag, a style that
is its own."""
from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import tosaic

VOID = {"meta", "wbr"}
HOSTILE = '</svg><script>alert(1)</script>"\'&<img src=x onerror=alert(1)>'
MODEL = """func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %0 = tosa.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = tosa.reduce_sum %0 {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = tosa.add %0, %1 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %2, %1 : tensor<4x8xf32>, tensor<4x1xf32>
}"""


class Page(HTMLParser):
    """Elements that are open, and what has been met."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(entry: Any) -> dict[str, str]:
    lowered = entry.lower()
    return {"graph": entry.trace()._repr_html_(), "plan": lowered._repr_html_(), "report": lowered.report()._repr_html_()}


@pytest.fixture(scope="module")
def pieces() -> dict[str, str]:
    return shown(tosaic.load(MODEL).main)


def test_pieces_are_well_formed_and_run_nothing(pieces: dict[str, str]) -> None:
    for text in pieces.values():
        page = Page(text)
        assert page.tags[0] == "div" and "svg" in page.tags and not {"script", "iframe", "link", "img"} & set(page.tags)
        assert not any(name.startswith("on") or name in ("href", "src") for name in page.attributes)
    assert "@import" not in pieces["graph"] and "http" not in pieces["graph"]


def test_the_style_is_theirs_alone(pieces: dict[str, str]) -> None:
    for text in pieces.values():
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        assert style is not None and style[1].startswith(".tosaic {") and style[1].count("{") == style[1].count("}")
        assert not re.search(r"(?m)^\s*(:root|html|body) ", style[1])


def test_the_graph_has_a_box_for_each_operation_and_a_line_for_each_operand(pieces: dict[str, str]) -> None:
    page = Page(pieces["graph"])
    assert page.tags.count("rect") == 1 + 3 + 2 and page.tags.count("path") == 1 + 1 + 2 + 2
    assert {"%x", "exp", "reduce_sum", "add", "result", "4x8xf32"} <= set(page.texts)
    assert "1 inputs, 2 outputs, 3 operations, 0 constants." in page.texts


def test_a_graph_too_large_for_a_picture_says_so() -> None:
    def long(x: Any) -> Any:
        for _ in range(90):
            x = tosaic.ops.tanh(x)
        return x

    page = Page(tosaic.jit(long).trace(np.ones(3, np.float32))._repr_html_())
    assert "svg" not in page.tags and any("too many for a picture" in text for text in page.texts)


def test_names_of_a_model_stay_text() -> None:
    name = HOSTILE.replace("\\", "").replace('"', '\\"')
    text = (f'func.func @"{name}"(%x: tensor<4xf32>) -> tensor<4xf32> {{\n'
            f'  %0 = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("{name}")\n'
            "  %1 = tosa.reverse %0 {axis = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  %2 = tosa.cos %1 : (tensor<4xf32>) -> tensor<4xf32>\n  return %2 : tensor<4xf32>\n}")
    for piece in shown(tosaic.load(text).entry()).values():
        page = Page(piece)
        assert not {"script", "img"} & set(page.tags) and "onerror" not in page.attributes
        assert any("alert(1)" in text for text in page.texts)


def test_the_plan_of_a_function_without_memory_is_shown_too() -> None:
    page = Page(tosaic.jit(lambda x: x + 1).lower(np.ones(3, np.float32))._repr_html_())
    assert any("needs no working memory" in text for text in page.texts)
