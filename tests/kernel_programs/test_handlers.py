"""Op handlers of a program: registered and found in the order of their chains, logging, the end of a chain of handlers."""
from __future__ import annotations

from tosaic import CoreRuntime, OpHandler
from tosaic.jit.op_by_op.programs.running import run_program

from .programs import dense, run, shown

NULL = '%null = "corert.create_null_op_handler"() : () -> !corert.ophandler\n'
MAKE_CPU = '%own = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler\n'
LOGGING = ('%log = "corert.create_logging_op_handler"(%own) {0}: (!corert.ophandler) -> !corert.ophandler\n'
           '%ch1 = corert.register_op_handler %log "log"\n %cpu = corert.get_op_handler %ch1 "log"\n')

ORDER = f"""
func.func @register(%c: !tfrt.chain) -> !tfrt.chain {{
  {NULL}
  %d = corert.register_op_handler %null "mine"
  tfrt.return %d : !tfrt.chain
}}
func.func @find(%c: !tfrt.chain) -> !tfrt.chain {{
  %h = corert.get_op_handler %c "mine"
  %d = tfrt.new.chain
  tfrt.return %d : !tfrt.chain
}}
func.func @f() -> (!tfrt.chain, !corert.ophandler) {{
  %c = tfrt.new.chain
  %lost = corert.get_op_handler %c "mine"
  %d = tfrt.call @find(%c) : (!tfrt.chain) -> !tfrt.chain
  %e = tfrt.call @register(%d) : (!tfrt.chain) -> !tfrt.chain
  %g = tfrt.call @find(%e) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %g, %lost : !tfrt.chain, !corert.ophandler
}}
"""


def test_a_handler_is_found_after_its_registration_and_not_before() -> None:
    printed, errors = run(ORDER)
    assert printed == ["--- Not running 'register' because it has arguments.",
                       "--- Not running 'find' because it has arguments.",
                       "--- Running 'f'", "'f' returned !tfrt.chain value,<<error: op_handler not found: mine>>"]
    assert errors == ["15: op_handler not found: mine", "9: op_handler not found: mine"]


def test_a_handler_stays_registered_for_the_functions_that_follow() -> None:
    text = f'func.func @a() {{ {NULL} {MAKE_CPU} corert.register_op_handler %own "cpu" tfrt.return }}\n'
    text += 'func.func @b() -> !tfrt.chain { %c = tfrt.new.chain %cpu = corert.get_op_handler %c "cpu" '
    text += dense("%a", "[1]", "[1 : i32]")
    printed, errors = run(f"{text} %end = {shown('%a', '%c')} tfrt.return %end : !tfrt.chain }}")
    assert printed[2] == "DenseHostTensor dtype = i32, shape = [1], values = [1]" and not errors


def test_the_null_handler_supports_nothing() -> None:
    text = f"func.func @f() -> !corert.tensorhandle {{ {NULL}"
    text += ' %a = corert.executeop(%null) "tosa.add"() : 1 tfrt.return %a : !corert.tensorhandle }'
    assert run(text)[0][-1] == "'f' returned <<error: tosa.add was not supported by NullOpHandler>>"


def logged(attributes: str, text: str) -> list[str]:
    return run(f"func.func @f() -> !tfrt.chain {{ {NULL} {MAKE_CPU} {LOGGING.replace('{0}', attributes)} {text} "
               "tfrt.return %end : !tfrt.chain }")[0][1:-1]


def test_the_logging_handler_tells_what_is_called_with_what() -> None:
    text = dense("%a", "[5]", "[1 : i32, 2 : i32, 3 : i32, 4 : i32, 5 : i32]")
    text += '%b = corert.executeop(%cpu) "tfrt_test.odd_collector"(%a) : 1\n' + f"%end = {shown('%b', '%ch1')}"
    made = "DenseHostTensor dtype = i32, shape = [5], values = [1, 2, 3, 4, 5]"
    odd = "DenseHostTensor dtype = i32, shape = [3], values = [1, 3, 5]"
    head = "[0] dispatch 'tfrt_test.create_dense_tensor' 0 argument(s), 1 result(s), OpAttrs contains 2 entries:"
    given = ["  'shape' type=I64 value=[5]", "  'values' type=I32 value=[1, 2, 3, 4, 5]"]
    then = "[1] dispatch 'tfrt_test.odd_collector' 1 argument(s), 1 result(s), no attributes"
    inputs = ["Inputs for [1]: 'tfrt_test.odd_collector':", f"  Input for [1] tensor 0: {made}"]
    assert logged("", text) == [head, *given, then, *inputs, odd]
    assert logged("{sync_log_results = true} ", text) == [
        head, *given, "Outputs for [0]: 'tfrt_test.create_dense_tensor':", f"  Output for [0] tensor 0: {made}",
        then, *inputs, "Outputs for [1]: 'tfrt_test.odd_collector':", f"  Output for [1] tensor 0: {odd}", odd]


def test_the_logging_handler_waits_for_asynchronous_results_if_it_is_told_to() -> None:
    text = dense("%a", "[1]", "[1 : i32]") + '%b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1\n'
    text += '%c = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%b) : 1\n' + f"%end = {shown('%c', '%ch1')}"
    one = "DenseHostTensor dtype = i32, shape = [1], values = [1]"
    printed = logged("{sync_log_results = 1 : i1} ", text)
    assert f"  Output for [1] tensor 0: {one}" in printed and f"  Output for [2] tensor 0: {one}" in printed


def test_the_logging_handler_prints_strings_and_scalars() -> None:
    text = '%s = corert.const_string_tensor {shape = [1], value = ["x"]}\n'
    text += '%t = corert.executeop(%cpu) "tfrt_test.create_from_scalar"() {shape = [2], value = 1 : i32} : 1\n'
    text += '%end = corert.executeop.seq(%cpu, %ch1) "tfrt_test.print"(%s, %t) : 0'
    assert logged("", text)[-5:] == [
        "Inputs for [1]: 'tfrt_test.print':", '  Input for [1] tensor 0: StringHostTensor shape = [1], values = ["x"]',
                                     "  Input for [1] tensor 1: ScalarHostTensor dtype = i32, shape = [2], value = 1",
                                     'StringHostTensor shape = [1], values = ["x"]',
                                     "ScalarHostTensor dtype = i32, shape = [2], value = 1"]


def test_a_program_runs_on_the_handlers_of_a_given_runtime() -> None:
    class Recording(OpHandler):
        def execute(self, invocation: object) -> bool:
            seen.append(invocation.op_name)  # type: ignore[attr-defined]
            return False

    seen: list[str] = []
    runtime = CoreRuntime()
    runtime.register_op_handler("mine", Recording(runtime.get_op_handler("cpu")))
    text = 'func.func @f() { %c = tfrt.new.chain %cpu = corert.get_op_handler %c "mine"'
    run_program(f"{text} {dense('%a', '[1]', '[1 : i32]')} tfrt.return }}", write=lambda line: None, runtime=runtime)
    assert seen == ["tfrt_test.create_dense_tensor"]
    assert runtime.get_op_handler("mine").fallback is runtime.get_op_handler("cpu") and runtime.diagnostic is None
