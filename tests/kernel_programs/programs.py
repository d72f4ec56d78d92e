"""Running a text in the tests: what it prints, and the errors that it tells of, with the line of each."""
from __future__ import annotations

from tosaic.jit.op_by_op.program_text.printer import print_program
from tosaic.jit.op_by_op.program_text.reader import read_program
from tosaic.jit.op_by_op.programs.running import run_program

PRINT = '"corert.print_tensorhandle"({0}) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain'
CPU = """
  %ch0 = tfrt.new.chain
  %cpu = corert.get_op_handler %ch0 "cpu"
"""


def run(text: str, entry: str | None = None) -> tuple[list[str], list[str]]:
    """The lines that a program prints, and its errors at run time as `line: message`. The text that it prints as, which is read
    again here, gives the same."""
    printed, errors = run_once(text, entry)
    again, found = run_once(print_program(read_program(text)), entry)
    assert again == printed
    assert [e.partition(": ")[2] for e in found] == [e.partition(": ")[2] for e in errors]
    return printed, errors


def run_once(text: str, entry: str | None) -> tuple[list[str], list[str]]:
    printed: list[str] = []
    errors: list[str] = []
    run_program(text, write=printed.append, entry=entry, report=lambda position, message: errors.append(
        f"{position.line if position else None}: {message}"))
    return printed, errors


def shown(handle: str, chain: str) -> str:
    """The kernel that prints a tensor."""
    return PRINT.format(f"{handle}, {chain}")


def body(text: str) -> list[str]:
    """What a function `f` with these kernels prints; its last chain is %end."""
    printed, errors = run(f"func.func @f() -> !tfrt.chain {{{CPU}{text}\n  tfrt.return %end : !tfrt.chain\n}}")
    assert not errors and printed[0] == "--- Running 'f'" and printed[-1] == "'f' returned !tfrt.chain value"
    return printed[1:-1]


def dense(name: str, shape: str, values: str) -> str:
    """The kernel that makes a tensor of numbers with their types."""
    return f'{name} = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {{shape = {shape}, values = {values}}} : 1\n'
