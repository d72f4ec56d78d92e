"""No name that a model, a file or an argument brings along reaches a terminal, a page or a header as it is: it could move the
cursor, change the title, write over what was said, or turn text around.
"""
from __future__ import annotations

import html.parser
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.operator import OPERATORS
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.runtime.errors import Problem, printable, printable_text

from ..fuse.graphs import Graph

EVIL = "m\x1b]0;pwn\x07\x1b[2J\x9b31m\x00\x7f\u202e\u2066\u2028\u061c<script>alert(1)</script>*/\n\r\bx"
"""ESC with an operating system's command, a control sequence, the same in one character of C1, NUL, DEL, marks of direction, a
line separator, markup, the end of a comment in C, a line break, a carriage return and a backspace."""
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")
RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r")
"""What the progress line itself sends: colours, the cursor off and on, and the line anew."""


def quoted(text: str) -> str:
    """As MLIR writes a string."""
    return '"' + "".join(f"\\{b:02X}" if b < 0x20 or b > 0x7E or b in b'"\\' else chr(b) for b in text.encode()) + '"'


E = quoted(EVIL)
MODEL = f"""module @{E} {{
  tosa.variable @{E[:-1]}v" = dense<1.0> : tensor<4x4xf32>
  func.func @{E}(%a: tensor<4x4xf32> {{tosa.x = {E}}}) -> tensor<4x4xf32> attributes {{tosa.y = {E}}} {{
    %v = tosa.variable_read @{E[:-1]}v" : tensor<4x4xf32>
    %0 = tosa.add %a, %v {{tosa.z = {E}}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc({E})
    %1 = tosa.transpose %0 {{perms = array<i32: 1, 0>}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      loc("</script><script>alert(2)</script>")
    tosa.variable_write @{E[:-1]}v", %1 : tensor<4x4xf32>
    return %1 : tensor<4x4xf32> loc("--></style>")
  }}
}}"""
BAD = {
    "rank.mlir": MODEL.replace("perms = array<i32: 1, 0>", "perms = array<i32: 1, 1>"),
    "unknown.mlir": f'func.func @{E}(%a: tensor<4xf32>) -> tensor<4xf32> {{ %0 = "evil.op"(%a) {{x = {E}}} : (tensor<4xf32>) '
                    f"-> tensor<4xf32> return %0 : tensor<4xf32> }}",
    "custom.mlir": f"func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{ %0 = tosa.custom %a {{domain_name = {E}, "
                   f"operator_name = {E}, implementation_attrs = {E}}} : (tensor<4xf32>) -> tensor<4xf32> "
                   f"return %0 : tensor<4xf32> }}",
    "undeclared.mlir": f"func.func @f() -> tensor<4xf32> {{ %0 = tosa.variable_read @{E} : tensor<4xf32> "
                       f"return %0 : tensor<4xf32> }}",
    "twice.mlir": MODEL.replace("func.func", f"func.func @{E}() {{ return }}\n func.func"),
    "raw.mlir": f"func.func @f() {{ {EVIL} }}",
    "tf.mlir": f'func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{ %0 = "tf.{EVIL[:1]}Odd"(%a) {{device = {E}, '
               f'name = {E}}} : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }}',
    "call.mlir": f'func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{ %0 = "tf.PartitionedCall"(%a) {{f = @{E}}} : '
                 f'(tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }}',
    "program.mlir": f"func.func @{E}() {{ %c = tfrt.new.chain %d = tfrt.print.odd {E}, %c tfrt.return }}",
}
"""Models that are refused, with words that have hostile names in them."""

COMMANDS = [
    "run {}", "run {} --entry odd", "check {}", "show graph {}", "show kernels {}", "show schedule {}", "show loops {}",
    "show plan {}", "show llvm {}", "show asm {}", "profile {} --calls 1 --trace {OUT}/trace.json", "report {}",
    "report {} --json", "report {} --html {OUT}/report.html --fit RAM:1K", "report {} --diff {}", "run {} --json",
    "profile {} --calls 1 --json", "compile {} -o {OUT}/c --name model --main --library", "convert {} {OUT}/again.mlir",
    "convert {} {OUT}/again.tosa", "tune {} --calls 1 -o {OUT}/tuning", "run {} --save {OUT}/saved.npz",
    "run {} --state {OUT}/state.npz", "run {} --shape EVIL=2x3", "run {} --input EVIL=random:1", "EVIL {}", "run {} EVIL",
    "run {} --EVIL", "show {} EVIL", "compile {} --target EVIL", "report {} --fit EVIL", "run {} --entry EVIL",
    "compile {} --name EVIL -o {OUT}/d", "convert {} {OUT}/EVIL.odd", "run {OUT}/EVIL.mlir",
    "report {} --tuning {OUT}/EVIL"]

CHILD = """
import json, sys
from tosaic.jit.command_line import progress
from tosaic.jit.command_line.cli import main
progress.Progress.__init__.__defaults__ = (0.0,)
for line in json.load(open(sys.argv[1], encoding="utf-8", errors="surrogateescape")):
    print("$", main(line), flush=True)
"""


def without_break(text: str) -> str:
    return text.replace("\x00", "").replace("/", "").replace("\n", "")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Command lines: every command on a hostile model in three forms, and `run` and `show` on models that are refused."""
    folder = tmp_path_factory.mktemp("hostile")
    name = without_break(EVIL)
    models = {f"{name}.mlir": MODEL.encode(), "\udcff\udc80.mlir": MODEL.encode(),
              f"{name}.tosa": file_with_names()}
    for file, data in models.items():
        (folder / file).write_bytes(data)
    for file, text in BAD.items():
        (folder / file).write_text(text, encoding="utf-8", newline="")
    out = folder / "out"
    out.mkdir()
    found = []
    for number, file in enumerate(models):
        for command in COMMANDS if number == 0 else COMMANDS[:14] if number == 2 else COMMANDS[:1]:
            found.append([part.replace("{OUT}", str(out)).replace("{}", str(folder / file)).replace("EVIL", name)
                          for part in command.split()])
    found += [[*command, str(folder / file)] for file in BAD for command in (["run"], ["show", "graph"])]
    for file, some in (("lines.json", found), ("few.json", found[::7])):
        (folder / file).write_text(json.dumps(some), encoding="utf-8")
    return [[str(folder), str(out)], *found]


def file_with_names() -> bytes:
    """A .tosa whose tensors and variable have hostile names."""
    graph, type = Graph(), TensorType((4, 4), F32)
    x = graph.argument(type, EVIL)
    y, = graph.add(OPERATORS["tosa.add"](), x, graph.read(EVIL, type), name=f"{EVIL}y")
    z, = graph.add(OPERATORS["tosa.transpose"](perms=(1, 0)), y, name=f"{EVIL}z")
    graph.write(EVIL, z)
    return write_module(graph.module(z, variables=((EVIL, type, np.ones((4, 4), np.float32)),)))


def shown_on_terminal(arguments: list[str]) -> tuple[str, int]:
    """What a process writes to a terminal that is its standard output and error, and its exit code."""
    reader, terminal = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stdout=terminal, stderr=terminal,
                               env={**os.environ, "TERM": "xterm", "COLUMNS": "200"})
    os.close(terminal)
    found = b""
    while True:
        try:
            data = os.read(reader, 1 << 16)
        except OSError:  # Linux reports the closed end so
            break
        if not data:
            break
        found += data
    os.close(reader)
    return RICH.sub("", found.decode()), process.wait()


def check(text: str, count: int) -> None:
    codes = re.findall(r"^\$ (\d+)$", text, re.MULTILINE)
    assert len(codes) == count, text[-3000:]
    assert "4" not in codes and "internal error" not in text, text[max(0, text.find("internal error") - 800):][:1600]
    found = [line for line in text.replace("\r\n", "\n").split("\n") if FORBIDDEN.search(line)]
    assert not found, [line[:300] for line in found[:5]]


@pytest.mark.sampled(4)
def test_no_command_sends_a_control_character_to_a_terminal(lines: list[list[str]]) -> None:
    (folder, _), *each = lines
    text, code = shown_on_terminal([f"{folder}/lines.json"])
    assert code == 0
    check(text, len(each))


@pytest.mark.sampled(4)
def test_no_command_sends_one_into_a_pipe_or_a_file(lines: list[list[str]]) -> None:
    (folder, out), *each = lines
    for encoding, file, count in (("ascii", "few.json", len(each[::7])), ("utf-8", "lines.json", len(each))):
        process = subprocess.run([sys.executable, "-c", CHILD, f"{folder}/{file}"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert process.returncode == 0
        check(process.stdout.decode(encoding), count)
    for path in (p for p in Path(out).rglob("*") if p.suffix in (".h", ".c", ".html", ".json", ".mlir", ".S") or not p.suffix):
        if path.is_file():
            found = FORBIDDEN.search(path.read_text(encoding="utf-8"))
            assert found is None, (path.name, found)
    check_page((Path(out) / "report.html").read_text(encoding="utf-8"))
    for header in Path(out).rglob("*.h"):
        subprocess.run(["gcc", "-fsyntax-only", "-Wall", "-Werror", "-xc", str(header)], check=True)


class Page(html.parser.HTMLParser):
    """The scripts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_script = tag == "script"
        assert not any(key.startswith("on") for key, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self.is_script = False

    def handle_data(self, data: str) -> None:
        if self.is_script:
            self.scripts.append(data)


def check_page(text: str) -> None:
    """Its only script is ours."""
    page = Page()
    page.feed(text)
    ours = Path(tosaic.__path__[0], "jit", "tools", "report", "page.js").read_text(encoding="utf-8")
    data, code = page.scripts
    assert code.strip() == ours.strip() and json.loads(data)
    assert "<script>alert" not in text


# ---- from Python -----------------------------------------------------------------------------------------------------------
def texts() -> Iterator[tuple[str, str]]:
    """What Python code may print of a hostile model."""
    model = tosaic.load(MODEL)
    entry = model.entry()
    lowered, compiled, x = entry.lower(), entry.compile(context=tosaic.Context(EVIL)), np.ones((4, 4), np.float32)
    yield from (("model", str(model)), ("repr", repr(model)), ("entry", repr(entry)), ("inputs", str(entry.inputs)))
    yield from ((stage, lowered.show(stage)) for stage in ("graph", "kernels", "schedule", "loops", "plan", "llvm", "asm"))
    yield from (("compiled", str(compiled)), ("repr", repr(compiled)), ("report", str(compiled.report())))
    yield from (("profile", str(lowered.profile([x], 1))), ("trace", json.dumps(lowered.profile([x], 1).trace())))
    yield from (("executable", repr(compiled.executable)), ("page", str(lowered.report())))
    for wrong in (lambda: model["odd"], lambda: entry(x, x), lambda: entry(x[0]), lambda: entry.specialize({EVIL: (1,)}),
                  lambda: tosaic.load(Path("/nowhere", without_break(EVIL))), lambda: model.odd,
                  lambda: getattr(model, EVIL + EVIL)):
        try:
            wrong()
        except (Problem, AttributeError) as problem:
            yield "problem", str(problem)
        else:
            raise AssertionError("this is a Problem")


def test_what_python_prints_has_no_control_characters() -> None:
    for what, text in texts():
        found = FORBIDDEN.search(text)
        assert found is None, (what, found, text[max(0, found.start() - 80):found.start() + 20])


def test_every_character_that_is_escaped_is_so_on_one_line_and_in_texts() -> None:
    every = "".join(map(chr, (*range(0x300), *range(0x2000, 0x2100), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10000),
                              *range(0xE0000, 0xE0080))))
    assert FORBIDDEN.search(printable(every)) is None and "\n" not in printable(every)
    assert FORBIDDEN.search(printable_text(every)) is None and "\n" in printable_text(every)
    assert printable(every).isprintable() or "\t" in printable(every)
    assert printable("plain é 漢字 🙂 text\ttab") == "plain é 漢字 🙂 text\ttab"
