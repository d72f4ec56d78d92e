"""The C header of an object, C99 and C++: structures of typed pointers, sizes in bytes, entry functions, error
codes."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...runtime.arguments import tensor_text
from ...runtime.errors import Problem, printable
from ..elements.expression import Buffer
from .interface_c import ALIGNMENT, NULL, VARIABLE, Entry, Interface, c_type, macro

CODES = f"""#ifndef TOSAIC_OK
#define TOSAIC_OK 0
#define TOSAIC_ERROR_NULL ({NULL}) /* a pointer is null */
#define TOSAIC_ERROR_ALIGNMENT ({ALIGNMENT}) /* a pointer is not aligned as its elements, or the workspace, need it */
#define TOSAIC_ERROR_VARIABLE ({VARIABLE}) /* another object has a variable of the same name with another type */
#endif"""


def comment(text: str) -> str:
    """Text that is safe inside a comment of C, on one line."""
    plain = printable(text.replace("\t", " ")).encode("ascii", "backslashreplace").decode()
    return re.sub(r"(?<=[*/?])(?=[*/?])", " ", plain)


def header(interface: Interface, needs: Sequence[str]) -> str:
    """The header's text; `needs` are the functions that the object calls and does not define."""
    guard = f"{interface.prefix.upper()}_H"
    parts = [f"#ifndef {guard}\n#define {guard}", introduction(interface, needs), "#include <stdint.h>",
             '#ifdef __cplusplus\nextern "C" {\n#endif', CODES]
    parts += [part for entry in interface.entries for part in entry_parts(entry)]
    parts += variable_parts(interface)
    parts += [f"/* Brings every variable of the model back to its initial value, or to not written. */\n"
              f"void {interface.prefix}_reset(void);",
              "#ifdef __cplusplus\n}\n#endif", f"#endif /* {guard} */"]
    text = "\n\n".join(parts) + "\n"
    check_macros(text)
    return text


def check_macros(text: str) -> None:
    """A Problem where two macros have the same name."""
    names = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    for name, after in zip(sorted(names), sorted(names)[1:]):
        if name == after:
            raise Problem(f"two macros of the header are called {name}", kind="symbol",
                          help="rename an entry function, an input or an output of the model")


def introduction(interface: Interface, needs: Sequence[str]) -> str:
    shared = ("Calls of functions that use variables must not run at the same time." if interface.variables else
              "Calls may run at the same time, each with a workspace of its own.")
    return (f"/* Written by tosaic for {comment(interface.target.triple)}, {comment(interface.target.cpu)}.\n"
            "   Tensors are row-major. Outputs must share no memory with inputs or each other. Nothing is allocated.\n"
            f"   {shared}\n"
            f"   The object needs {', '.join(map(comment, needs)) or 'nothing'} from elsewhere. */")


def entry_parts(entry: Entry) -> list[str]:
    """What the header says of one entry function."""
    prefix = entry.name.upper()
    parts = [sizes(entry, prefix)]
    parts += structure(entry, "inputs", entry.inputs, "const ") + structure(entry, "outputs", entry.outputs, "")
    regions = entry.regions
    if len(regions) > 1:
        members = "".join(f"\n    void *{r.name}; /* {r.nbytes} bytes at a multiple of {r.alignment} */"
                          for r in regions)
        parts.append(f"struct {entry.name}_workspaces {{{members}\n}};")
    faults = "".join(f"#define {prefix}_FAULT_{i} {i} /* {comment(f.message)} */\n"
                     for i, f in enumerate(entry.program.faults, 1))
    parts.append(f"{faults}/* Returns TOSAIC_OK, an error below 0, or a fault above 0; no variable changes then. */\n"
                 f"int32_t {entry.name}_run({', '.join(parameters(entry))});")
    return parts


def parameters(entry: Entry) -> list[str]:
    found = [f"const struct {entry.name}_{kind} *{kind}" for kind in ("inputs", "outputs")
             if getattr(entry.program, kind)]
    many = len(entry.regions) > 1
    return [*found, f"const struct {entry.name}_workspaces *workspaces" if many else "void *workspace"]


def sizes(entry: Entry, prefix: str) -> str:
    """Sizes in bytes, as macros."""
    lines = [f"/* {comment(entry.program.name)}: sizes and alignments in bytes */"]
    for kind, names in (("INPUT", entry.inputs), ("OUTPUT", entry.outputs)):
        for buffer, name in names.items():
            lines.append(f"#define {prefix}_{kind}_{macro(name)}_SIZE {buffer.nbytes} /* {entry.type(buffer)} */")
    regions = entry.regions
    if len(regions) < 2:
        lines += [f"#define {prefix}_WORKSPACE_SIZE {sum(r.nbytes for r in regions)}",
                  f"#define {prefix}_WORKSPACE_ALIGNMENT {max([1, *(r.alignment for r in regions)])}"]
    for region in regions if len(regions) > 1 else ():
        lines += [f"#define {prefix}_{macro(region.name)}_WORKSPACE_SIZE {region.nbytes}",
                  f"#define {prefix}_{macro(region.name)}_WORKSPACE_ALIGNMENT {region.alignment}"]
    return "\n".join(lines)


def structure(entry: Entry, kind: str, names: Mapping[Buffer, str], qualifier: str) -> list[str]:
    """A structure with a pointer for each tensor; none where there is no tensor (C has no empty structures)."""
    if not names:
        return []
    members = "".join(f"\n    {qualifier}{c_type(b.dtype)} *{name}; /* {entry.type(b)}, {b.nbytes} bytes */"
                      for b, name in names.items())
    return [f"struct {entry.name}_{kind} {{{members}\n}};"]


def variable_parts(interface: Interface) -> list[str]:
    """Declarations of the variables, so that a program may save and set the state."""
    lines = []
    for variable in interface.variables.values():
        buffer = variable.use.buffer
        lines += [f"extern {c_type(buffer.dtype)} {variable.symbol}[{buffer.size}]; "
                  f"/* {tensor_text(buffer.shape, variable.use.element)} */",
                  f"extern uint8_t {variable.flag}; /* whether it has been written */"]
    if not lines:
        return []
    return ["\n".join(["/* Variables; objects that name the same ones share them. */", *lines])]
