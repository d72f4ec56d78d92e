"""Errors at run time: where they begin, whom they reach, whom they do not; cancellation."""
from __future__ import annotations

from .programs import CPU, dense, run, shown


def failing(text: str, results: str = "!tfrt.chain", returned: str = "%end") -> tuple[list[str], list[str]]:
    """What a function `f` prints, and its errors; their lines count from that of its name."""
    return run(f"func.func @f() -> ({results}) {{{CPU}{text}\n tfrt.return {returned} : {results}\n}}")


BROKEN = 'corert.executeop(%cpu) "tfrt_test.error.tensor"(%a) : 1\n'
MESSAGE = "error from tfrt_test.error.tensor implementation"


def test_an_error_reaches_exactly_what_is_downstream_of_it() -> None:
    text = dense("%a", "[1]", "[1 : i32]") + f'%b = {BROKEN}%c = corert.executeop(%cpu) "tfrt_test.add"(%b, %b) : 1\n'
    text += '%d = corert.executeop.seq(%cpu, %ch0) "tfrt_test.print"(%c) : 0\n' + f"%e = {shown('%a', '%ch0')}\n"
    text += f"%end = {shown('%c', '%ch0')}"
    printed, errors = failing(text, "!tfrt.chain, !tfrt.chain, !tfrt.chain", "%end, %d, %e")
    assert printed == ["--- Running 'f'", "DenseHostTensor dtype = i32, shape = [1], values = [1]",
                       f"'f' returned <<error: {MESSAGE}>>,<<error: {MESSAGE}>>,!tfrt.chain value"]
    assert errors == [f"5: {MESSAGE}"]


def test_an_error_passes_through_chains() -> None:
    text = '%c = "tfrt_test.error_chain"(%ch0) : (!tfrt.chain) -> !tfrt.chain\n'
    text += '%d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain\n'
    text += "%end = tfrt.merge.chains %ch0, %d : !tfrt.chain, !tfrt.chain"
    assert failing(text) == (["--- Running 'f'", "'f' returned <<error: error chain>>"], ["4: error chain"])


def test_an_error_handle_stops_the_kernels_that_need_it() -> None:
    text = '%h = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle\n'
    text += '%s = "corert.tensorhandle_to_shape"(%h, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape\n'
    text += '%c = "ts.print_shape"(%s, %ch0) : (!ts.shape, !tfrt.chain) -> !tfrt.chain\n %one = tfrt.constant.i32 1\n'
    assert failing(text, "i32, !corert.tensorhandle", "%one, %h") == (
        ["--- Running 'f'", "'f' returned 1,<<error: invalid tensorhandle>>"], ["4: invalid tensorhandle"])


def test_a_kernel_that_fails_has_an_error_for_its_result() -> None:
    assert failing('%x = "tfrt_test.fail"() : () -> i32', "i32", "%x") == (
        ["--- Running 'f'", "'f' returned <<error: something bad happened>>"], ["4: something bad happened"])


def test_an_unknown_operation_is_an_error_of_the_last_handler() -> None:
    printed, errors = failing('%end = corert.executeop.seq(%cpu, %ch0) "tf.invalidop"()')
    assert printed[1:] == ["'f' returned <<error: tf.invalidop was not supported by NullOpHandler>>"]
    assert errors == ["4: tf.invalidop was not supported by NullOpHandler"]


def test_an_error_that_nobody_uses_is_told_and_nothing_more() -> None:
    text = dense("%a", "[1]", "[1 : i32]") + f"%b = {BROKEN}%n = tfrt.constant.i32 3\n"
    assert failing(text, "i32", "%n") == (["--- Running 'f'", "'f' returned 3"], [f"5: {MESSAGE}"])


def test_shape_errors_are_found_before_the_data_is_there() -> None:
    text = dense("%a", "[2]", "[1 : i32]") + dense("%b", "[3]", "[1 : i32]")
    text += '%c = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    text += '%d = corert.executeop(%cpu) "tfrt_test.add"(%c, %b) : 1\n' + f"%end = {shown('%d', '%ch0')}"
    message = "arguments of tfrt_test.add must have same shape, not tensor<2xi32> and tensor<3xi32>"
    assert failing(text) == (["--- Running 'f'", f"'f' returned <<error: {message}>>"], [f"7: {message}"])


def test_each_operation_says_what_is_wrong_with_its_arguments() -> None:
    ops = {'"tfrt_test.add"(%a, %c)': "incompatible dtypes for tfrt_test.add: tensor<2xi32> and tensor<2xf32>",
           '"tfrt_test.add"(%a)': "tfrt_test.add: takes 2 arguments, found 1",
           '"tfrt_test.argmax"(%a) {axis = 1 : i32}': "tfrt_test.argmax: axis 1 is outside rank 1",
           '"tfrt_test.argmax"(%a)': "tfrt_test.argmax: missing 'axis' attribute",
           '"tfrt_test.argmax"(%a) {axis = 0}': "tfrt_test.argmax: attribute 'axis' is i64, not i32",
           '"tfrt_test.cast"(%a) {type = "f7"}': "tfrt_test.cast: there is no type f7",
           '"tfrt_test.matmul"(%a, %a)': "arguments of tfrt_test.matmul are matrices, not tensor<2xi32> and tensor<2xi32>",
           '"tfrt_test.matmul"(%m, %m)':
               "tfrt_test.matmul arguments have incompatible shapes: tensor<1x2xi32> and tensor<1x2xi32>",
           '"tfrt_test.create_dense_tensor"() {shape = [2], values = [1, 2, 3]}':
               "tfrt_test.create_dense_tensor: 3 values for shape = [2]",
           '"tfrt_test.create_dense_tensor"() {shape = [2], values = ["a"]}':
               "tfrt_test.create_dense_tensor: a tensor is made of numbers, not of array of string",
           '"tfrt_test.create_dense_tensor"() {shape = [-2], values = [1]}':
               "tfrt_test.create_dense_tensor: the attribute shape has extents that are not negative, not [-2]"}
    make = dense("%a", "[2]", "[1 : i32]") + dense("%c", "[2]", "[1.0 : f32]") + dense("%m", "[1, 2]", "[1 : i32]")
    for operation, message in ops.items():
        printed, errors = failing(f"{make} %r = corert.executeop(%cpu) {operation} : 1", "!corert.tensorhandle", "%r")
        assert printed[1:] == [f"'f' returned <<error: {message}>>"]
        assert errors == [f"7: {message}"]


def test_a_side_effect_needs_a_chain() -> None:
    text = dense("%a", "[1]", "[1 : i32]")
    text += 'corert.executeop(%cpu) "tfrt_test.print"(%a) : 0\n %n = tfrt.constant.i32 1'
    assert failing(text, "i32", "%n") == (["--- Running 'f'", "'f' returned 1"],
                                          ["5: tfrt_test.print has a side effect and needs a chain"])


def test_a_number_is_wanted_and_the_tensor_has_more() -> None:
    text = dense("%a", "[2]", "[1 : i32]") + "%n = corert.tensorhandle_to_int32 %a"
    message = "expected one element of type i32, found a tensor of int32 with shape = [2]"
    assert failing(text, "i32", "%n") == (["--- Running 'f'", f"'f' returned <<error: {message}>>"], [f"5: {message}"])


# Cancellation

CANCEL = '"tfrt_test.cancel"(%ch0) : (!tfrt.chain) -> (i32, !tfrt.chain)\n'


def test_cancelling_makes_pending_operations_errors() -> None:
    text = dense("%a", "[1]", "[1 : i32]") + '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    text += '%c = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%b) : 1\n'
    text += '%t = "corert.tensorhandle_to_ht"(%c, %ch0) : (!corert.tensorhandle, !tfrt.chain) -> !t.tensor\n'
    assert failing(f"{text} %x, %ch1 = {CANCEL}", "!t.tensor, !corert.tensorhandle, !corert.tensorhandle", "%t, %b, %a") == (
        ["--- Running 'f'", "'f' returned <<error: Cancelled>>,<<error: Cancelled>>,!corert.tensorhandle value"], [])


def test_cancelling_stops_the_kernels_that_have_not_run() -> None:
    text = f'%x, %ch1 = {CANCEL} %ch2 = "tfrt_test.print_hello"(%ch1) : (!tfrt.chain) -> !tfrt.chain\n'
    assert failing(text + dense("%a", "[1]", "[1 : i32]"), "!tfrt.chain, i32, !corert.tensorhandle", "%ch2, %x, %a") == (
        ["--- Running 'f'", "'f' returned <<error: Cancelled>>,0,<<error: Cancelled>>"], [])


def test_the_next_function_runs_again_after_a_cancellation() -> None:
    add = '%a = tfrt.constant.i32 2\n %b = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32\n'
    text = f"func.func @f() -> i32 {{{CPU}{add} %x, %c = {CANCEL} tfrt.return %b : i32 }}\n"
    text += f"func.func @g() -> (i32, !tfrt.chain) {{{CPU}{add}{dense('%t', '[1]', '[1 : i32]')} %c = {shown('%t', '%ch0')}\n"
    assert run(text + "tfrt.return %b, %c : i32, !tfrt.chain }")[0] == [
        "--- Running 'f'", "'f' returned <<error: Cancelled>>", "--- Running 'g'",
        "DenseHostTensor dtype = i32, shape = [1], values = [1]", "'g' returned 4,!tfrt.chain value"]


def test_cancelling_at_every_place_of_a_program_ends_it() -> None:
    parts = [dense("%a", "[1]", "[1 : i32]"), '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n',
             '%c = corert.executeop(%cpu) "tfrt_test.add"(%b, %a) : 1\n', f"%d = {shown('%c', '%ch0')}\n",
             '%e = corert.executeop.seq(%cpu, %d) "tfrt_test.print"(%c) : 0\n']
    for place in range(len(parts) + 1):
        text = "".join([*parts[:place], f"%x, %y = {CANCEL}", *parts[place:]])
        printed, errors = failing(text, "!tfrt.chain", "%e")
        assert printed == ["--- Running 'f'", "'f' returned <<error: Cancelled>>"] and not errors
