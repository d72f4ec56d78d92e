"""Builds the pages that say what tosaic has: the reference from the docstrings, and the folders' pages as chapters.

    python docs -o site         write the pages; open site/index.html, which needs no server and no network
    python docs --check         name the public names that lack a sentence, an example or a word on errors
    python docs --examples      run the examples; those of operators beside NumPy, SciPy and the interpreter
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import chapters
import pdoc.doc
import pdoc.render
import reference

TEMPLATES = Path(__file__).parent / "templates"
DOT = r'</span><span class="o">\.</span><span class="n">'
INSIDE = re.compile(rf"(?<=<span class=\"n\">)tosaic{DOT}(?:jit|lowering|runtime)(?:{DOT}[a-z_0-9]+)+{DOT}(?=[A-Z])")
"""What stands before the name of a class in a signature: where it is defined, which is nobody's business."""


def build(folder: Path) -> None:
    """Write all pages."""
    links = chapters.Links()
    pages = {name: pdoc.doc.Module(module) for name, module in chapters.modules(links).items()}
    docs = reference.documented(reference.modules())
    configure(links, docs)
    for name, module in (pages | docs).items():
        write(folder / chapters.address_of(name), INSIDE.sub("", pdoc.render.html_module(module, pages | docs)))
    frame = pdoc.render.env.get_template("file.html.jinja2")
    for path in links.shown:
        address = chapters.shown_address(path)
        text = frame.render(path=path.name, body=chapters.shown(path), index=chapters.relative(address, "index.html"))
        write(folder / address, text)
    write(folder / "index.html", pdoc.render.env.get_template("index.html.jinja2").render(all_modules=pages | docs))
    write(folder / "search.js", pdoc.render.search_index(pages | docs))


def configure(links: chapters.Links, docs: dict[str, Any]) -> None:
    pdoc.render.configure(docformat="markdown", show_source=False, template_directory=TEMPLATES, footer_text="")
    pdoc.render.precompile_index = lambda documents, _: json.dumps(documents)  # the same with and without Node.js
    titles = {c.module: c.title for c in links.chapters.values()}
    pdoc.render.env.globals.update(titles=titles, reference=list(docs), depth=lambda module: "../" * module.count("."))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python docs", description="Build the reference and the chapters of tosaic.")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write the pages here")
    parser.add_argument("--check", action="store_true", help="name what public names lack; exit code 1 if anything")
    parser.add_argument("--examples", action="store_true", help="run the examples; exit code 1 if any is wrong")
    options = parser.parse_args()
    if not (options.output or options.check or options.examples):
        parser.error("say where to write with -o DIR, or --check, or --examples")
    found: list[str] = []
    if options.output:
        build(options.output)
    if options.check:
        found += reference.missing(reference.documented(reference.modules()))
    if options.examples:
        import examples
        import operator_tables
        found += [*examples.failures(), *operator_tables.failures()]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
