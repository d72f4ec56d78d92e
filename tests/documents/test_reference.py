"""The reference pages: every public name has a sentence, an example that runs and a word on errors; pages are built without a
network, link to what there is, and say nothing of the machine that built them. `python docs` does all of it."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import ModuleType
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import pytest
import tosaic

ROOT = pathlib.Path(__file__).parents[2]
NEEDED = ("pdoc", "scipy", "onnx", "tosa_converter_for_tflite")
UNDOCUMENTED = """
import sys, types
sys.path.insert(0, "docs")
import pdoc.doc, reference
module = types.ModuleType("m", "A module of two functions.")
def bare(): pass
def told():
    '''A function that says what it does; raises a Problem.

    ```python
    told()
    ```
    '''
module.__all__, module.bare, module.told = ["bare", "told"], bare, told
print(*reference.missing({"m": pdoc.doc.Module(module)}), sep="; ")
"""
"""What the check says of a module with one name that lacks all, and one that lacks nothing."""


class Page(NamedTuple):
    ids: frozenset[str]
    links: frozenset[str]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


class Built(NamedTuple):
    folder: pathlib.Path
    said: str


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """One run that builds, checks and runs examples; connections are refused meanwhile."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} cannot be imported")
    folder = tmp_path_factory.mktemp("site")
    program = ("import runpy, socket, sys\n"
               "def refuse(*_, **__): raise OSError('no network')\n"
               "socket.socket.connect = socket.create_connection = refuse\n"
               "sys.path.insert(0, 'docs'); sys.argv = ['docs', '-o', sys.argv[1], '--check', '--examples']\n"
               "runpy.run_path('docs/__main__.py', run_name='__main__')")
    environment = {k: v for k, v in os.environ.items() if k != "TOSAIC_NUM_THREADS"}
    environment["TOSAIC_CACHE"] = str(tmp_path_factory.mktemp("cache") / "code")
    result = subprocess.run([sys.executable, "-c", program, str(folder)], cwd=ROOT, capture_output=True, text=True,
                            env=environment)
    assert result.returncode in (0, 1) and "Traceback" not in result.stderr, result.stderr
    return Built(folder, result.stdout)


@pytest.fixture(scope="module")
def pages(built: Built) -> dict[pathlib.Path, Page]:
    found = {}
    for path in built.folder.rglob("*.html"):
        reader = Reader()
        reader.feed(path.read_text("utf-8"))
        found[path] = Page(frozenset(reader.ids), frozenset(reader.links))
    return found


def test_every_public_name_has_a_sentence_an_example_that_runs_and_a_word_on_errors(built: Built) -> None:
    assert built.said == ""


def test_a_name_without_them_is_found() -> None:
    if importlib.util.find_spec("pdoc") is None:
        pytest.skip("pdoc is not installed (the extra `docs` has it)")
    result = subprocess.run([sys.executable, "-c", UNDOCUMENTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == ("m.bare has no sentence; m.bare has no example in docs/examples or its table; "
                             "m.bare has no word on errors\n")


def test_every_link_leads_to_a_page_and_a_place_on_it(pages: dict[pathlib.Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlparse(link)
            if parts.scheme:
                continue
            target = pathlib.Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if not target.exists() or (parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids):
                dead.append(f"{path.name}: {link}")
    assert not dead and len(pages) > 30


def test_every_public_name_has_its_place(pages: dict[pathlib.Path, Page], built: Built) -> None:
    for page, module in (("tosaic.html", tosaic), ("tosaic/ops.html", tosaic.ops)):
        values = {name: getattr(module, name) for name in module.__all__}
        below = {name for name, value in values.items() if name == "tosa" or (isinstance(value, ModuleType) and name != "jit")}
        assert values.keys() - below <= pages[built.folder / page].ids
        assert all((built.folder / page.removesuffix(".html") / f"{name}.html") in pages for name in below)


def test_every_page_of_the_repository_is_a_chapter(pages: dict[pathlib.Path, Page], built: Built) -> None:
    sources = [p for folder in ("jit", "lowering", "runtime", "samples", "tests") for p in (ROOT / folder).rglob("README.md")]
    for source in sources:
        assert (built.folder / "pages" / source.parent.relative_to(ROOT)).with_suffix(".html") in pages


def test_pages_say_nothing_of_the_machine_that_built_them(built: Built) -> None:
    places = [str(ROOT), str(pathlib.Path.home()) + "/", sys.prefix + "/", str(built.folder)]
    for path in (*built.folder.rglob("*.html"), built.folder / "search.js"):
        text = path.read_text("utf-8")
        assert not [place for place in places if place in text], path
        assert not re.search(r" at 0x[0-9a-f]{6,}", text) or "files" in path.parts, path


def test_the_search_has_its_index_in_a_file_and_knows_names_and_chapters(built: Built) -> None:
    text = (built.folder / "search.js").read_text("utf-8")
    _, _, index = text.partition("const docs = ")
    documents, _ = json.JSONDecoder().raw_decode(index)
    assert {"tosaic.load", "tosaic.ops.exp", "tosaic.tosa.conv2d", "pages.jit"} <= {d["fullname"] for d in documents}
