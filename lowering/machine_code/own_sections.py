"""A section for each function and each constant of an object, named as gcc names them under -ffunction-sections and
-fdata-sections: `.text.NAME` and `.rodata.NAME`. So a linker with --gc-sections leaves out what a program does not use, and
`stack` finds each function alone.

llvmlite has no switch for it, so each definition says its section in the text of the module. Variables have said theirs.
"""
from __future__ import annotations

import re

NAME = r'@(?:"(?P<quoted>[^"\n]*)"|(?P<plain>[-\w.$]+))'
FUNCTION = re.compile(rf"^define [^\n@]*{NAME}\([^\n]*", re.MULTILINE)
CONSTANT = re.compile(rf"^{NAME} = (?!external)(?:[a-z_]+ )*constant [^\n]*", re.MULTILINE)
SECTION = ' section "'


def in_own_sections(module: str) -> str:
    """The text of a module of which each function, and each constant without a section, has one of its own."""
    return CONSTANT.sub(placed_constant, FUNCTION.sub(placed_function, module))


def placed_function(found: re.Match[str]) -> str:
    head = found[0].removesuffix(" {")
    return f'{head}{SECTION}.text.{name(found)}" {{'


def placed_constant(found: re.Match[str]) -> str:
    text = found[0]
    if SECTION in text:
        return text
    value, align, number = text.rpartition(", align ")
    if not number.isdigit():
        value, align, number = text, "", ""
    return f'{value},{SECTION}.rodata.{name(found)}"{align}{number}'


def name(found: re.Match[str]) -> str:
    return found["plain"] or found["quoted"]
