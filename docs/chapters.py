"""The pages of the folders as chapters: each page of Markdown of the repository becomes a module of pdoc that has nothing but a
docstring, with its links led to other chapters, or to pages that show a file or what is in a folder.
"""
from __future__ import annotations

import html
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pdoc.render_helpers import to_html

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("jit", "lowering", "runtime", "samples", "tests", ".github")
LINK = re.compile(r"(\[[^\]]*\])\(([^()\s#]*)(#[^()\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
DOCSTRING = re.compile(r'(?:#.*\n|\s)*"""(.*?)"""', re.DOTALL)
PAGES = "pages"
"""The package that chapters pretend to be in."""


@dataclass(frozen=True)
class Chapter:
    """A page: its file, and what it is called."""
    path: Path

    @property
    def module(self) -> str:
        """The name of its module: `pages.jit`, `pages.tests.bench`, `pages.changelog`."""
        place = self.path.relative_to(ROOT)
        parts = [part.lstrip(".") for part in place.parent.parts if part != ".github"]
        return ".".join([PAGES, *parts, *([] if place.stem == "README" and parts else [place.stem.lower()])])

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def title(self) -> str:
        found = re.search(r"^# (.+)$", self.text, re.MULTILINE)
        return found[1].replace("`", "") if found else self.path.stem


def chapters() -> list[Chapter]:
    """All pages: those at the root first, then folder by folder."""
    own = sorted(ROOT.glob("*.md"), key=lambda p: (p.stem != "README", p.stem))
    return [Chapter(p) for p in (*own, *(p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.md"))))]


@dataclass
class Links:
    """Where the links of chapters lead, and what they make necessary: files and folders that are shown."""
    chapters: dict[Path, Chapter] = field(default_factory=lambda: {c.path: c for c in chapters()})
    shown: dict[Path, None] = field(default_factory=dict)

    def text(self, chapter: Chapter) -> str:
        """The page's Markdown with links that lead inside the site."""
        parts = FENCE.split(chapter.text)
        return "".join(part if n % 2 else LINK.sub(lambda m: self.link(chapter, m), part) for n, part in enumerate(parts))

    def link(self, chapter: Chapter, match: re.Match[str]) -> str:
        label, target, fragment = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = Path(os.path.normpath(chapter.path.parent / target)) if target else chapter.path
        return f"{label}({relative(address_of(chapter.module), self.address(path))}{fragment})"

    def address(self, path: Path) -> str:
        """The page of the site for a path of the repository."""
        for known in (path, path / "README.md"):
            if known in self.chapters:
                return address_of(self.chapters[known].module)
        self.shown[path] = None
        return shown_address(path)


def address_of(module: str) -> str:
    """Where pdoc puts the page of a module."""
    return module.replace(".", "/") + ".html"


def shown_address(path: Path) -> str:
    """Where the page of a file or a folder is."""
    return f"files/{path.relative_to(ROOT).as_posix().lstrip('.')}.html"


def relative(page: str, target: str) -> str:
    """The address of a page from another one."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def modules(links: Links) -> dict[str, ModuleType]:
    """The chapters as modules."""
    found = {}
    for chapter in links.chapters.values():
        module = ModuleType(chapter.module, links.text(chapter))
        module.__all__ = []  # type: ignore[attr-defined]
        found[chapter.module] = module
    return found


def shown(path: Path) -> str:
    """What the page of a file or of a folder says, as HTML."""
    title = f"<h1>{html.escape(path.relative_to(ROOT).as_posix())}</h1>"
    if path.is_file():
        return f"{title}<pre>{html.escape(path.read_text('utf-8', errors='replace'))}</pre>"
    said = first_words(path / "__init__.py", whole=True)
    rows = "".join(f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(words)}</td></tr>"
                   for name, words in inside(path))
    return f"{title}{to_html(said)}<table>{rows}</table>"


def inside(folder: Path) -> Iterator[tuple[str, str]]:
    """Files and folders, and what each says of itself first."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        if path.is_dir():
            yield f"{path.name}/", first_words(path / "__init__.py")
        else:
            yield path.name, first_words(path)


def first_words(path: Path, whole: bool = False) -> str:
    """The first sentence, or all, of a module's docstring. Read as text: to parse a thousand files takes seconds."""
    if path.suffix != ".py" or not path.is_file():
        return ""
    found = DOCSTRING.match(path.read_text("utf-8"))
    text = found[1].strip() if found else ""
    return text if whole else re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].replace("\n", " ")
