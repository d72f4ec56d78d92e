"""The C source file of a model: prologue, constants, kernels, drivers, entry functions and model functions. It is made from the
same data as an object (`CInterface`, programs and plans), and includes the same header.
"""
from __future__ import annotations

import re

from ....runtime.records import dataclass
from ...elements.expression import Buffer
from ...kernels.text import Labels, print_kernel
from ...loops.ir import buffers_written
from ...target.target import Target
from ..c_object.c_names import KEYWORDS
from ..c_object.header_sections import comment
from ..c_object.interface import CEntry, CInterface
from .c_text import COLUMNS
from .constants import Constants, words_of
from .driver import CDriver, CPlaces
from .entry import entry_function, frame_structure
from .helpers import Helpers
from .kernel_function import Memory
from .kernels import Kernels
from .model_functions import data_sections, initial_values, model_functions
from .places import c_places, overlapping
from .prologue import needs, prologue

LONGEST_COMMENT = 24
"""Maximum number of lines of a kernel's expression in a comment."""


@dataclass(frozen=True, slots=True)
class CSource:
    """A C source file, the C library functions that it needs, and the number of bytes of its constants."""
    text: str
    needs: tuple[str, ...]
    constant_bytes: int


def source_text(interface: CInterface, checksum: int) -> CSource:
    """Return the file of a model; `checksum` is the header's."""
    helpers, constants = Helpers(), Constants(set())
    kernels = Kernels(helpers, has_fma(interface.target))
    drivers = [driver(interface, entry, kernels, constants) for entry in interface.entries]
    initial = initial_values(interface, constants)
    code: list[str] = []
    for entry, d in zip(interface.entries, drivers):
        code += [frame_structure(interface, entry), *d.definitions(), entry_function(interface, entry, d.entry, checksum)]
    body = [*data_sections(interface), *constants.definitions, *kernels.lines(), *initial, *code,
            *model_functions(interface, checksum)]
    text = "\n\n".join(body)
    head = [f"/* {introduction(interface)} */", f'#include "{interface.prefix}.h"']
    pools = sum(p.nbytes for p in interface.memories.of_kind("constant")) if interface.self_contained else 0
    whole = "\n\n".join([*head, *prologue(text, helpers), text]) + "\n"
    return CSource(whole, needs(whole), constants.nbytes + pools)


def has_fma(target: Target) -> bool:
    """True if an object for the target fuses products and sums (one rounding); then its C source does, too."""
    return "float32" in target.fused_floats


def introduction(interface: CInterface) -> str:
    names = ", ".join(comment(entry.program.name) for entry in interface.entries)
    return (f"Written by tosaic: {names}, in C99.\n"
            "   Each kernel is a function, which a driver calls with pointers into the arena;\n"
            f"   {interface.prefix}.h says how to call the model. Results are the same with every compiler.")


def driver(interface: CInterface, entry: CEntry, kernels: Kernels, constants: Constants) -> CDriver:
    """Return the driver of an entry, and add its kernels to those of the file."""
    places, program, labels = c_places(interface, entry, constants), entry.program, Labels()
    prefix = "" if entry.name == interface.prefix else entry.name.removeprefix(f"{interface.prefix}_") + "_"
    names = []
    for number, function in enumerate(program.functions):
        buffers = (*function.params, *function.scratch)
        over, written = overlapping(buffers, entry), buffers_written(function)
        memory = [Memory(places.buffers[b].is_shared, b in written and b not in over) for b in buffers]
        origin = words_of(program.kernels[number].origin or function.name)[:40].strip("_")
        names.append(kernels.add(function, memory, f"{prefix}kernel_{number}_{origin}", parameter_names(buffers),
                                 described(entry, number, labels, places)))
    return CDriver(entry.name, program, names, places)


LOCAL = re.compile(r"(?:t|x|i|sum|lane|folded|literal|last|bytes)\d+[xy]?|l|low|high|get_\w+|put_\w+|\w+_t")
"""Names that functions use for values, or that C defines."""
SHORT = re.compile(r"\w+_(?:[fui]|bf)\d\w*|\w+_bool|(?:bool|[fui]\d+|bf16)x\d+")
"""Names of the functions and vector types of `helpers`."""


def parameter_names(buffers: tuple[Buffer, ...]) -> list[str]:
    """Return a parameter name for each buffer of a function, derived from the model's name."""
    found: list[str] = []
    for b in buffers:
        name = words_of(b.name)
        name = f"b{name}" if name[0].isdigit() else name.lower() if name.isupper() else name
        if name in KEYWORDS or LOCAL.fullmatch(name) or SHORT.fullmatch(name):
            name = f"{name}_"
        found.append(name if name not in found else f"{name}_{len(found)}")
    return found


def described(entry: CEntry, number: int, labels: Labels, places: CPlaces) -> str:
    """Return a comment with a kernel's expression and the location of each of its buffers."""
    function, lines = entry.program.functions[number], []
    for line in print_kernel(number, entry.program.kernels[number], labels):
        lines += folded(comment(line.rstrip()))
    if len(lines) > LONGEST_COMMENT:
        lines[LONGEST_COMMENT:] = ["  ..."]
    for b in (*function.params, *function.scratch):
        pointer = places.buffers[b].pointer.removeprefix("frame->")
        lines.append(f"  {comment(b.name)}: {pointer}, {b.nbytes} bytes")
    return "/* " + "\n   ".join(line.removeprefix("  ") for line in lines) + " */"


def folded(line: str) -> list[str]:
    """Split a line into pieces that fit the line width."""
    width, found = COLUMNS - 6, list[str]()
    while len(line) > width and len(found) <= LONGEST_COMMENT:
        cut = line.rfind(" ", width // 2, width)
        cut = cut if cut > 0 else width
        found.append(line[:cut])
        line = " " * 8 + line[cut:].lstrip()
    return [*found, line]
