"""The C program of a project: it makes the recorded calls of a model (`recorded_data`), compares the outputs, and prints OK or
the differences. It prints through a function of its caller and needs no library, so that it is the same on every board; the
`main` of each system is a few lines around it.
"""
from __future__ import annotations

from ...elements.expression import Buffer
from .c_names import c_type
from .example_main import pool_arrays, state_memory
from .interface import THREAD_POOL, CEntry, CInterface
from .recorded_data import FLOATS, Recording, is_bounded
from .variables import pointer_member

NUMBERS = """\
typedef void (*say_function)(const char *text);

static void say_number(say_function say, int64_t number) {
    char text[21], *p = text + 20;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *p = 0;
    do {
        *--p = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    if (number < 0) *--p = '-';
    say(p);
}

static void say_difference(say_function say, int call, const char *what, long index, int64_t got, int64_t expected) {
    say("call ");
    say_number(say, call);
    say(", ");
    say(what);
    if (index >= 0) {
        say("[");
        say_number(say, index);
        say("]");
    }
    say(" is ");
    say_number(say, got);
    say(", expected ");
    say_number(say, expected);
    say("\\n");
}
"""

ELEMENTS = """\
/* An element of an array by its bytes, with its sign where it has one. */
static int64_t element(const void *array, long index, int size, int is_signed) {
    const unsigned char *bytes = (const unsigned char *)array + index * size;
    uint64_t value = 0;
    for (int i = size; i-- > 0;) value = value << 8 | bytes[i];
    if (is_signed && size < 8 && value >> (8 * size - 1)) value |= ~(uint64_t)0 << (8 * size);
    return (int64_t)value;
}
"""

EXACT = """\
/* How many elements are not the expected ones. */
static long differing(say_function say, int call, const char *what, const void *got, const void *expected, long count, int size,
                      int is_signed) {
    long wrong = 0;
    for (long i = 0; i < count; ++i) {
        const int64_t actual = element(got, i, size, is_signed), right = element(expected, i, size, is_signed);
        if (actual != right && wrong++ == 0) say_difference(say, call, what, i, actual, right);
    }
    return wrong;
}
"""

BOUNDED = """\
/* A float as an integer, in the order of floats: both zeros are 0, and every NaN is one above the largest. */
static int64_t ordered(const void *array, long index, int size, int width, uint64_t largest) {
    const uint64_t bits = (uint64_t)element(array, index, size, 0), sign = (uint64_t)1 << (width - 1);
    const uint64_t magnitude = bits & (sign - 1);
    if (magnitude > largest) return (int64_t)largest + 1;
    return bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

/* How many elements are not between the least and the most that they may be; anything will do where the least is above the
   most. What is printed are bits. `width` is 0 for integers. */
static long outside(say_function say, int call, const char *what, const void *got, const void *expected, const void *least,
                    const void *most, long count, int size, int is_signed, int width, uint64_t largest) {
    long wrong = 0;
    for (long i = 0; i < count; ++i) {
        const int64_t actual = width ? ordered(got, i, size, width, largest) : element(got, i, size, is_signed);
        const int64_t low = width ? ordered(least, i, size, width, largest) : element(least, i, size, is_signed);
        const int64_t high = width ? ordered(most, i, size, width, largest) : element(most, i, size, is_signed);
        if (low <= high && (actual < low || actual > high) && wrong++ == 0)
            say_difference(say, call, what, i, element(got, i, size, is_signed), element(expected, i, size, is_signed));
    }
    return wrong;
}
"""


def example_header(interface: CInterface) -> str:
    """Return the header that a `main` includes."""
    prefix = interface.prefix
    return f"""\
/* The example of {prefix}.h: recorded calls, compared with what they must give. */
#ifndef {prefix.upper()}_EXAMPLE_H
#define {prefix.upper()}_EXAMPLE_H

#ifdef __cplusplus
extern "C" {{
#endif

/* Makes the recorded calls and says OK, or what differs; returns how many elements differ, where a call that fails is one. */
long {prefix}_example(void (*say)(const char *text));

#ifdef __cplusplus
}}
#endif

#endif
"""


def example_source(interface: CInterface, recording: Recording) -> str:
    """Return the program, without its `main`."""
    prefix = interface.prefix
    bounded = [[is_bounded(calls, number) for number in range(len(entry.outputs))]
               for entry, calls in zip(interface.entries, recording.calls)]
    flat = [b for each in bounded for b in each]
    sections = [f"/* Makes the recorded calls of {prefix}.h, and compares. It needs no library and no floating point. */\n"
                f'#include "{prefix}.h"\n#include "{prefix}_example.h"\n#include "{prefix}_recorded.h"']
    sections += [NUMBERS.rstrip(), *[ELEMENTS.rstrip()] * bool(flat)]
    sections += [EXACT.rstrip()] * (not all(flat)) + [BOUNDED.rstrip()] * any(flat)
    sections += pool_arrays(interface) + state_memory(interface)
    for entry, each in zip(interface.entries, bounded):
        sections += call_function(interface, entry, each)
    sections.append(whole(interface))
    return "\n\n".join(sections) + "\n"


def call_function(interface: CInterface, entry: CEntry, bounded: list[bool]) -> list[str]:
    """Return the function that makes a recorded call of an entry function and returns the number of elements that differ."""
    declared = [] if entry.is_mapped else outputs_of(entry)
    body = mapped_lines(interface, entry) if entry.is_mapped else given_lines(entry)
    passed = ", ".join("0" if s == THREAD_POOL else f"&{s}" for s in interface.arguments(entry))
    codes = f"{entry.name}_recorded_codes[call]"
    body += [f"    const int32_t code = {entry.name}_run({passed});", f"    if (code != {codes}) {{",
             f'        say_difference(say, call, "the code of {entry.name}_run", -1, code, {codes});',
             "        return 1;", "    }"]
    checks = [check_line(entry, buffer, name, bound) for (buffer, name), bound in zip(entry.outputs.items(), bounded)]
    if checks:
        body += ["    if (code == TOSAIC_OK) {", *checks, "    }"]
    head = f"static long call_{entry.name}(say_function say, int call) {{"
    return ["\n".join(declared)] * bool(declared) + ["\n".join([head, "    long wrong = 0;", *body, "    return wrong;", "}"])]


def outputs_of(entry: CEntry) -> list[str]:
    return [f"static {c_type(buffer.dtype)} {entry.name}_output_{name}[{max(1, buffer.size)}];"
            for buffer, name in entry.outputs.items()]


def given_lines(entry: CEntry) -> list[str]:
    """Return the structures of inputs, which point to the recorded data, and of outputs."""
    lines = []
    if entry.inputs:
        arrays = [f"{entry.name}_recorded_input_{name}[call]" for name in entry.inputs.values()]
        lines.append(structure_line(f"    const struct {entry.name}_inputs inputs", arrays))
    if entry.outputs:
        lines.append(structure_line(f"    const struct {entry.name}_outputs outputs",
                                    [f"{entry.name}_output_{name}" for name in entry.outputs.values()]))
    return lines


def structure_line(head: str, arrays: list[str]) -> str:
    members = [f"{array}, sizeof {array}" for array in arrays]
    line = f"{head} = {{{', '.join(members)}}};"
    return line if len(line) <= 120 else f"{head} = {{\n        " + ",\n        ".join(members) + "};"


def mapped_lines(interface: CInterface, entry: CEntry) -> list[str]:
    """Return the lines that copy the inputs to their addresses in the workspace."""
    given = "" if interface.self_contained else "&workspace_pools"
    lines = [f"    const struct {entry.name}_{kind} {kind} = {entry.name}_map_{kind}({given});"
             for kind, names in (("inputs", entry.inputs), ("outputs", entry.outputs)) if names]
    for buffer, name in entry.inputs.items():
        lines.append(f"    for (long i = 0; i < {max(1, buffer.size)}; ++i) inputs.{name}[i] = "
                     f"{entry.name}_recorded_input_{name}[call][i];")
    return lines


def check_line(entry: CEntry, buffer: Buffer, name: str, bounded: bool) -> str:
    """Return the comparison of an output."""
    got = f"outputs.{name}" if entry.is_mapped else f"{entry.name}_output_{name}"
    size, signed = f"(int)sizeof({c_type(buffer.dtype)})", int(buffer.dtype.startswith("int"))
    what, expected = f'"output {name}"', f"{entry.name}_expected_{name}[call]"
    if not bounded:
        words = ["say", "call", what, got, expected, str(max(1, buffer.size)), size, str(signed)]
        return call_text("        wrong += differing(", words)
    width, largest = FLOATS.get(buffer.dtype, (0, 0))
    words = ["say", "call", what, got, expected, f"{entry.name}_least_{name}[call]", f"{entry.name}_most_{name}[call]",
             str(max(1, buffer.size)), size, str(signed), str(width), f"UINT64_C(0x{largest:x})"]
    return call_text("        wrong += outside(", words)


def call_text(head: str, words: list[str]) -> str:
    """Return a call in lines filled to the line width."""
    lines = [head]
    for number, word in enumerate(words):
        word += ");" if number == len(words) - 1 else ", "
        if len(lines[-1]) + len(word) > 120:
            lines[-1] = lines[-1].rstrip()
            lines.append(" " * len(head))
        lines[-1] += word
    return "\n".join(lines)


def whole(interface: CInterface) -> str:
    """Return the example's function."""
    prefix = interface.prefix
    lines = [f"long {prefix}_example(void (*say)(const char *text)) {{", "    long wrong = 0;", *begun(interface)]
    if any(g.structure == "constant_pools" and g.nbytes for g in interface.pools_given):
        lines.append(failing(f"{prefix}_check_constants(&constant_pools)", "the constants are not the model's"))
    lines.append(f"    for (int call = 0; call < {prefix.upper()}_RECORDED_CALLS; ++call) {{")
    lines += [f"        wrong += call_{entry.name}(say, call);" for entry in interface.entries]
    lines += ["    }", f'    say("{prefix}: ");', f"    say_number(say, {prefix.upper()}_RECORDED_CALLS);",
              '    say(wrong ? " calls, DIFFERENT\\n" : " calls, OK\\n");', "    return wrong;", "}"]
    return "\n".join(lines)


def begun(interface: CInterface) -> list[str]:
    """Return statements that give variables their initial values."""
    prefix = interface.prefix
    if interface.caller_state is None:
        return [failing(f"{prefix}_reset()", "the model has not been reset")]
    names = [pointer_member(s.pool) for s in interface.caller_state.structures if s.pool]
    return [*(f"    state.{name} = &{name};" for name in names),
            failing(f"{prefix}_init(&state)", "the state has not been made")]


def failing(call: str, text: str) -> str:
    """Return a call that ends the example unless it returns TOSAIC_OK."""
    return f'    if ({call} != TOSAIC_OK) {{\n        say("{text}\\n");\n        return 1;\n    }}'
