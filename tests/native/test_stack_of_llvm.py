"""Frames that are read from machine code, held against what LLVM says of the same functions (its warning of large frames, with
a limit of 0), for models on all kinds of processors. And LLVM's own code without a bound: it is refused."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import tosaic
from tosaic.lowering.machine_code.codegen import assembly, object_file
from tosaic.lowering.machine_code.own_sections import in_own_sections
from tosaic.lowering.machine_code.stack.bound import StackUse
from tosaic.lowering.machine_code.stack.instruction import UnknownStack
from tosaic.lowering.native.c_object.data_symbols import ObjectConstants
from tosaic.lowering.native.c_object.interface import CInterface
from tosaic.lowering.native.c_object.object_module import object_text
from tosaic.lowering.target.presets import target

from ..covering import covering

DATA = Path(__file__).parents[1] / "data"
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m4+nofp", "cortex-m7", "cortex-m33", "cortex-m55", "riscv32", "rv32imac", "rv64gc",
           "rv64gcv", "spacemit-k1", "aarch64", "x86-64", "x86-64-v3", "x86-64-v4")
MODELS = ("counter.mlir", "corpus/v_lstm.mlir", "corpus/f_conv_bn_relu_pool_int8.mlir",
          "corpus/f_mobilenet_block_int8.mlir", "corpus/f_shape_ops.mlir", "corpus/f_attention_block_int8.mlir")
WARNING = re.compile(r"stack frame size \((\d+)\) exceeds limit \(0\) in function '([^']*)'")
WARNED = ' "warn-stack-size"="0"'


def said_by_llvm(capfd: pytest.CaptureFixture[str]) -> dict[str, int]:
    """The frame of each function that has one."""
    return {name: int(nbytes) for nbytes, name in WARNING.findall(capfd.readouterr().err)}


def pushed_for_calls(text: str) -> dict[str, int]:
    """Bytes that functions of x86 assembly push before a call at most, aligned: LLVM does not count those that are arguments
    which do not fit the registers. The pushes that a function begins with save registers."""
    most, name, now, is_begin = dict[str, int](), "", 0, False
    for line in text.splitlines():
        if label := re.match(r"\"?(?!\.L)([\w.]+)\"?:", line):
            name, now, is_begin = label[1], 0, True
        elif re.match(r"\tpush", line):
            now += 8 * (not is_begin)
        elif re.match(r"\t[a-z]", line):
            is_begin = False
            if re.match(r"\tcall", line):
                most[name], now = max(most.get(name, 0), -(-now // 16) * 16), 0
    return most


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "machine"), covering(3, MODELS, TARGETS))
def test_a_frame_is_what_llvm_says_it_is(name: str, machine: str, capfd: pytest.CaptureFixture[str]) -> None:
    there = target(machine)
    entries = [e.lower(tosaic.CompileOptions(there)) for e in tosaic.load(DATA / name)]
    interface = CInterface("model", [(e.program, e.plan) for e in entries], there)
    with ObjectConstants("model", there) as constants:
        text = object_text(interface, constants, 1)
        assert "attributes #0 = {" in text and "attributes #1" not in text
        capfd.readouterr()
        code = object_file(text.replace("attributes #0 = {", f"attributes #0 = {{{WARNED}"), there)
    use, said = StackUse(code, there), said_by_llvm(capfd)
    own, unknown = dict[str, int](), set[str]()
    for function, section in use.functions.items():
        try:
            own[section] = use.frame(function).nbytes - use.family.return_address
        except UnknownStack:
            unknown.add(section)
    pushed = pushed_for_calls(assembly(text, there)) if there.architecture == "x86" else {}
    frames = {use.functions[function]: (nbytes, pushed.get(function, 0)) for function, nbytes in said.items()}
    assert frames
    for section, nbytes in own.items():
        frame, arguments = frames.get(section, (0, 0))
        assert 0 <= nbytes - frame <= arguments
    is_any_length = there.has_vector_length and not there.vector_register_bits
    assert not unknown or is_any_length, "only where vectors are as long as a run finds them"


TAKES = """
define ptr @keep(ptr %x) noinline {
  ret ptr %x
}
define void @once(i32 %n) {
  %p = alloca i8, i32 %n
  %m = call ptr @keep(ptr %p)
  store i8 1, ptr %m
  ret void
}
define void @again(i32 %n) {
  br label %body
body:
  %i = phi i32 [0, %0], [%j, %body]
  %p = alloca i8, i32 %i
  %m = call ptr @keep(ptr %p)
  store volatile i8 1, ptr %m
  %j = add i32 %i, 1
  %more = icmp ult i32 %j, %n
  br i1 %more, label %body, label %done
done:
  ret void
}
define i32 @deeper(i32 %n) {
  %end = icmp eq i32 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i32 %n, 1
  %x = call i32 @deeper(i32 %m)
  %y = mul i32 %x, %n
  %z = add i32 %y, %m
  ret i32 %z
done:
  ret i32 1
}
define void @last(ptr %f) {
  tail call void %f(ptr %f)
  ret void
}
define i32 @many(i32 %n) {
  switch i32 %n, label %z [i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e i32 5, label %f]
a: call void @last(ptr @many)
  ret i32 5
b: call void @last(ptr @once)
  ret i32 9
c: call void @last(ptr @last)
  ret i32 2
d: call void @last(ptr @keep)
  ret i32 7
e: call void @last(ptr null)
  ret i32 1
f: ret i32 77
z: ret i32 0
}
"""


@pytest.mark.parametrize("machine", TARGETS)
def test_what_only_a_run_knows_has_no_bound(machine: str) -> None:
    there = target(machine)
    use = StackUse(object_file(in_own_sections(f'target triple = "{there.triple}"\n{TAKES}'), there), there)
    for name in ("once", "again"):
        with pytest.raises(UnknownStack, match=f"only a run knows how large the frame of {name} is"):
            use.bound(name)
    with pytest.raises(UnknownStack, match="deeper calls itself"):
        use.bound("deeper")
    assert use.frame("last").calls_given and not use.frame("keep").calls_given
    with pytest.raises(UnknownStack):  # it has the address of one that has none
        use.bound("many")
    assert not use.frame("many").calls_given
