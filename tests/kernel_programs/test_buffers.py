"""Buffers of a kernel program: what is used for the last time is given away, and what is used again is not."""
from __future__ import annotations

import pytest
from tosaic import Context, CoreRuntime
from tosaic.jit.op_by_op.programs.running import run_program

from .programs import CPU, dense, shown

ADD = '%{0} = corert.executeop(%cpu) "tosa.add"(%{1}, %{2}) : 1\n'
MAKE = dense("%a", "[2]", "[1 : i32]") + dense("%b", "[2]", "[10 : i32]")
LATER = '%{0} = corert.executeop(%cpu) "tfrt_test.async.noop"(%{1}) : 1\n'
FUNCTION = "(!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)"
CALLED = ("func.func @{0}(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {{\n"
          ' %cpu = corert.get_op_handler %c "cpu"\n {1} tfrt.return %c, %y : !tfrt.chain, !corert.tensorhandle\n}}\n')
TWICE = CALLED.format("twice", dense("%k", "[2]", "[100 : i32]") + ADD.format("y", "x", "k"))


def line(*values: int) -> str:
    return f"DenseHostTensor dtype = i32, shape = [{len(values)}], values = [{', '.join(map(str, values))}]"


def counted(text: str, more: str = "") -> tuple[list[str], int, int]:
    """What a function with these kernels prints, and how often a buffer was reused, and could not be."""
    runtime, lines = CoreRuntime(context=Context("test")), list[str]()
    source = f"{more}func.func @f() -> !tfrt.chain {{{CPU}{text}\n  tfrt.return %end : !tfrt.chain\n}}"
    run_program(source, write=lines.append, runtime=runtime, entry="f")
    runtime.shutdown()
    assert lines[-1] == "'f' returned !tfrt.chain value"
    return lines[1:-1], runtime.buffers_reused, runtime.buffers_refused


@pytest.mark.parametrize("is_last, reused", [(True, 1), (False, 0)])
def test_the_last_use_of_a_handle_gives_its_buffer_away(is_last: bool, reused: int) -> None:
    text = MAKE + ADD.format("c", "a", "b") + f"%d = {shown('%c', '%ch0')}\n"
    text += "%end = tfrt.merge.chains %d : !tfrt.chain" if is_last else (
        f"%e = {shown('%a', '%d')}\n %end = {shown('%b', '%e')}")
    printed, found, refused = counted(text)
    assert (found, refused) == (reused, 1 - reused)
    assert printed == [line(11, 11)] + ([] if is_last else [line(1, 1), line(10, 10)])


def test_a_row_of_operations_works_in_one_buffer() -> None:
    row = "".join(ADD.format(f"r{n + 1}", f"r{n}", "b") for n in range(10)).replace("%r0,", "%a,")
    assert counted(f"{MAKE}{row}%end = {shown('%r10', '%ch0')}") == ([line(101, 101)], 10, 0)


def test_the_last_use_is_the_last_in_time_not_in_the_text() -> None:
    text = MAKE + LATER.format("l", "b") + ADD.format("first", "a", "l") + ADD.format("second", "a", "b")
    text += f"%d = {shown('%second', '%ch0')}\n %end = {shown('%first', '%d')}"
    printed, reused, _ = counted(text)
    assert printed == [line(11, 11), line(11, 11)] and reused >= 1


def test_a_handle_that_is_printed_later_is_kept() -> None:
    text = MAKE + LATER.format("l", "b") + f"%d = {shown('%l', '%ch0')}\n %e = {shown('%a', '%d')}\n"
    printed, reused, _ = counted(text + ADD.format("c", "a", "a") + f"%end = {shown('%c', '%e')}")
    assert printed == [line(10, 10), line(1, 1), line(2, 2)] and not reused


def test_the_same_handle_as_both_operands_is_not_written_over() -> None:
    assert counted(MAKE + ADD.format("c", "a", "a") + f"%end = {shown('%c', '%ch0')}") == ([line(2, 2)], 0, 1)


def test_a_function_gets_its_arguments_last_use_and_gives_its_results_away() -> None:
    call = f"%d, %y = tfrt.call @twice(%ch0, %a) : {FUNCTION}\n"
    text = MAKE + call + ADD.format("z", "y", "b") + f"%end = {shown('%z', '%d')}"
    assert counted(text, TWICE) == ([line(111, 111)], 2, 0)
    text = MAKE + call + ADD.format("z", "y", "b") + f"%e = {shown('%z', '%d')}\n %end = {shown('%a', '%e')}"
    printed, reused, _ = counted(text, TWICE)
    assert printed == [line(111, 111), line(1, 1)] and reused == 2  # over the function's own constant, and its result


def test_constants_of_the_program_are_never_written() -> None:
    constant = "%k = corert.const_dense_tensor dense<7> : tensor<2xi32>\n"
    called = CALLED.format("add", constant + ADD.format("y", "k", "x"))
    calls = "".join(f"%d{n}, %y{n} = tfrt.call @add(%ch0, %a{n}) : {FUNCTION}\n" for n in range(3))
    makes = "".join(dense(f"%a{n}", "[2]", f"[{n} : i32]") for n in range(3))
    shows = f"%e0 = {shown('%y0', '%ch0')}\n %e1 = {shown('%y1', '%e0')}\n %end = {shown('%y2', '%e1')}"
    printed, reused, _ = counted(makes + calls + shows, called)
    assert printed == [line(7, 7), line(8, 8), line(9, 9)] and reused == 3


def test_scalar_tensors_are_never_written() -> None:
    scalar = '%s = corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [2], value = 3 : i32} : 1\n'
    rows = dense("%a", "[2]", "[1 : i32, 2 : i32]") + scalar + ADD.format("c", "s", "a") + f"%end = {shown('%c', '%ch0')}"
    assert counted(rows) == ([line(4, 5)], 1, 0)
    printed, reused, _ = counted(scalar + ADD.format("c", "s", "s") + f"%end = {shown('%c', '%ch0')}")
    assert printed == [line(6, 6)] and not reused


LOOP = """%n = tfrt.constant.i32 4
%r, %d = tfrt.repeat.i32 %n, %a, %ch0 : !corert.tensorhandle, !tfrt.chain {
  %cpu = corert.get_op_handler %ch0 "cpu"
  %k = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2], values = [5 : i32]} : 1
  %s = corert.executeop(%cpu) "tosa.add"(%a, %k) : 1
  tfrt.return %s, %ch0 : !corert.tensorhandle, !tfrt.chain
}
"""


def test_turns_of_a_loop_work_in_one_buffer() -> None:
    assert counted(f"{MAKE}{LOOP}%end = {shown('%r', '%d')}") == ([line(21, 21)], 4, 0)
    printed, reused, _ = counted(f"{MAKE}{LOOP}%e = {shown('%r', '%d')}\n %end = {shown('%a', '%e')}")
    assert printed == [line(21, 21), line(1, 1)] and reused == 4


SMALLER = """func.func @smaller(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %m = corert.executeop(%cpu) "tosa.reduce_max"(%x) {axis = 0 : i32} : 1
  %k = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [50 : i32]} : 1
  %p = corert.executeop(%cpu) "tosa.greater"(%k, %m) : 1
  tfrt.return %c, %p : !tfrt.chain, !corert.tensorhandle
}
"""


def test_while_of_tensors_looks_at_its_values_before_it_gives_them_to_the_body() -> None:
    loop = "%d, %r = corert.while @smaller @twice (%ch0, %a) : (!corert.tensorhandle) -> (!corert.tensorhandle)\n"
    printed, reused, _ = counted(f"{MAKE}{loop}%end = {shown('%r', '%d')}", TWICE + SMALLER)
    assert printed == [line(101, 101)] and reused == 1


def test_branches_and_composite_operations_give_away_too() -> None:
    more = TWICE + CALLED.format("same", "%y = corert.executeop(%cpu) \"tosa.abs\"(%x) : 1\n")
    cond = "%d, %y = corert.cond %b @twice @same (%ch0, %a) : (!corert.tensorhandle) -> (!corert.tensorhandle)\n"
    text = MAKE.replace("%b", "%z").replace("%z = corert.executeop(%cpu) \"tfrt_test.create_dense_tensor\"() {shape = [2]",
                                            "%b = corert.executeop(%cpu) \"tfrt_test.create_dense_tensor\"() {shape = [1]")
    assert counted(f"{text}{cond}%end = {shown('%y', '%d')}", more) == ([line(101, 101)], 1, 0)
    make = '%op = "corert.make_composite_op"() {fn = @twice} : () -> !corert.op\n'
    composite = '%y = "corert.execute_crt_op"(%op, %a) {op_attrs = [], op_func_attrs = []} : (!corert.op, !corert.tensorhandle)'
    assert counted(f"{MAKE}{make}{composite} -> !corert.tensorhandle\n %end = {shown('%y', '%ch0')}", more) == (
        [line(101, 101)], 1, 0)
