"""The permission that an object with code for a matrix unit must request: Linux lets a process use tiles once it has asked, and
an object cannot rely on other code to have asked. So an entry function with tiles asks in each call, which takes about a tenth
of a microsecond, and returns an error if the system refuses; its header names the error.
"""
from __future__ import annotations

from ....runtime.tiles import ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
from ...loops.ir import ShapeTiles
from ...loops.program import Program
from ...machine_code.llvm_writer import Value, Writer, constant


def uses_tiles(program: Program) -> bool:
    """True if one of the functions shapes tiles. That statement is in the outermost block."""
    return any(isinstance(stmt, ShapeTiles) for f in program.functions for stmt in f.body)


def refused(w: Writer) -> Value:
    """Ask for the use of tiles; return true if the system refuses. The system call of x86-64 Linux takes its number in rax."""
    answer = w.assembly("syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}", "i64",
                        *(constant("i64", n) for n in (ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)))
    return w.compare("ne", answer, 0)
