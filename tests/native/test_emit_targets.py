"""Object files for every target call nothing, whatever operations a function has; equal functions are one."""
from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator

import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import COMPARISONS, Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, Type
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.native.llvm.helper_functions import lacking
from tosaic.lowering.target.features import AVX512
from tosaic.lowering.target.presets import PRESETS, described, host, target
from tosaic.runtime.errors import Problem

from .harness import object_file
from .test_emit_conversions import HALVES, cast
from .test_emit_operations import EXTREMES, FLOATS, INTEGERS, OPERATIONS, elementwise, family

OBJECTS = list({(t.architecture, t.has_int64, lacking(t), t.vector_bytes, t.has_masked): name
                for name, t in PRESETS.items() if t.has_object_code}.values())
"""Of machines that have the same instructions, as far as the emitter looks at them, one."""
BUILT_IN = {"memcpy", "memset", "memmove"}


def undefined(elf: bytes) -> set[str]:
    """Symbols that an ELF object file needs."""
    wide = elf[4] == 2
    header = struct.unpack_from("<QQQIHHHHH" if wide else "<IIIIHHHHH", elf, 24)
    sections_at, entry, count = header[2], header[7], header[8]
    sections = [struct.unpack_from("<IIQQQQIIQQ" if wide else "<IIIIIIIIII", elf, sections_at + i * entry)
                for i in range(count)]
    found = set()
    for kind, offset, size, link in [(s[1], s[4], s[5], s[6]) for s in sections]:
        if kind != 2:
            continue
        step = 24 if wide else 16
        for at in range(offset + step, offset + size, step):
            if wide:
                name, _, _, section = struct.unpack_from("<IBBH", elf, at)
            else:
                name, _, _, _, _, section = struct.unpack_from("<IIIBBH", elf, at)
            if section == 0:
                start = sections[link][4] + name
                found.add(elf[start:elf.index(b"\0", start)].decode())
    return found


def every_operation(lanes: int, floats: tuple[str, ...]) -> Iterator[Function]:
    """Each operation over each dtype, casts between all of them, reductions, accesses of all kinds. Only `floats` have
    instructions: for others, whoever links provides the compiler's run-time library."""
    dtypes = [d for d in (*FLOATS, *INTEGERS, "bool") if d not in FLOATS or d in floats]
    halves = HALVES if "float32" in floats else ()
    for dtype in dtypes:
        for op, operands in OPERATIONS[family(dtype)].items():
            yield elementwise(op, dtype, operands, lanes, 4 * lanes)
        if dtype in FLOATS:
            yield elementwise("fma", dtype, 3, lanes, 4 * lanes)
    for source, result in itertools.permutations([*dtypes, *halves], 2):
        yield cast(source, result, 4 * lanes, lanes)
    for dtype in (*dtypes, *HALVES):
        yield accesses(dtype, lanes)


def accesses(dtype: str, lanes: int) -> Function:
    b, n = Builder(f"accesses_{dtype}"), 4 * lanes + 3
    x, y, m, i = (Buffer("x", dtype, (n,), "argument"), Buffer("y", dtype, (n,), "result"),
                  Buffer("m", "bool", (n,), "argument"), Axis("i", 4))

    def body() -> None:
        at = Affine.of(i) * lanes
        mask = b.load(m, at, lanes)
        v = b.op("select", mask, b.load(x, at, lanes, mask=mask), b.load(x, at + 1, lanes, max(1, lanes - 1)))
        w = b.gather(x, b.op("lanes", b.index(at), type=Type("int64", lanes)), mask=mask)
        b.store(y, at, b.op("select", b.op("any_false", mask, type=Type("bool")), v, w), streaming=True)
        b.store(y, at + 2, b.shuffle(v, w, tuple(range(lanes))), max(1, lanes - 1))

    b.loop(i, body)
    if dtype in (*FLOATS, *INTEGERS):
        for op in EXTREMES:
            b.store(y, Affine(), b.op(f"reduce_{op}", b.load(x, Affine(), lanes), type=Type(dtype)))
    return b.finish()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "lanes"), [(name, lanes) for name in ("host", *OBJECTS) for lanes in (1, 4)
                                             if lanes == 1 or target(name).vector_bytes > 1])
def test_an_object_file_calls_nothing(name: str, lanes: int) -> None:
    """With every operation of scalars, and with every third of vectors, by turns of the machines."""
    functions = list(every_operation(lanes, target(name).float_unit))
    if lanes > 1:
        functions = functions[("host", *OBJECTS).index(name) % 3::3]
    assert undefined(object_file(functions, target(name))) <= BUILT_IN


def test_the_test_sees_a_call() -> None:
    """On a processor without float64, its addition is a call."""
    f = elementwise("add", "float64", 2, 1, 4)
    assert undefined(object_file([f], target("thumbv7em")))


def test_equal_functions_share_one_definition() -> None:
    def double(name: str, dtype: str) -> Function:
        f = elementwise("add", dtype, 2, 4, 16)
        return Function(name, f.params, f.scratch, f.body, f.rows)

    emitted = emit_functions([double("a", "float32"), double("b", "int8"), double("c", "float32")], target("x86-64"))
    assert emitted.names == ["a", "b", "a"]
    assert sum(line.startswith("define") for line in emitted.definitions) == 2


def test_written_memory_is_noalias() -> None:
    f = elementwise("add", "float32", 2, 4, 16)
    first = emit_functions([f], target("x86-64")).definitions[0]
    assert first == "define internal void @add_float32(ptr %p0, ptr %p1, ptr noalias %p2) #0 {"


def test_names_that_llvm_would_not_read_are_quoted() -> None:
    f = elementwise("add", "float32", 2, 4, 16)
    odd = Function('a "b"\\ ü', f.params, f.scratch, f.body)
    assert '@"a \\22b\\22\\5C \\C3\\BC"(' in emit_functions([odd], target("x86-64")).definitions[0]


def test_vectors_follow_from_feature_bits_and_not_from_the_name() -> None:
    plain = described("x86_64-unknown-linux-gnu", "znver5", "+sse2,-avx2,-avx512f")
    assert (plain.vector_bytes, plain.vector_registers, plain.has_masked, plain.dot_product) == (16, 16, False, None)
    middle = described("x86_64-unknown-linux-gnu", "znver5", "+sse2,+avx2,+fma,-avx512f,+avxvnni")
    assert (middle.vector_bytes, middle.vector_registers, middle.has_masked, middle.dot_product) == (32, 16, False, "u8s8")
    wide = described("x86_64-unknown-linux-gnu", "generic", ",".join(f"+{f}" for f in [*AVX512, "avx2", "avx512vnni"]))
    assert (wide.vector_bytes, wide.vector_registers, wide.has_masked, wide.dot_product) == (64, 32, True, "u8s8")
    assert described("riscv64-unknown-linux-gnu", "generic-rv64", "").lanes(1) == 1


def test_products_of_bytes_of_arm_follow_from_feature_bits_too() -> None:
    both = described("aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod,+i8mm")
    assert (both.dot_product, both.has_byte_pairs, both.vector_registers) == ("s8s8", True, 32)
    plain = described("aarch64-unknown-linux-gnu", "neoverse-v1", "+neon,-dotprod")
    assert (plain.dot_product, plain.has_byte_pairs) == (None, False)
    assert described("arm64-apple-darwin", "apple-m1", "").dot_product == "s8s8"


def test_this_machine_has_a_target() -> None:
    assert target("host") == host() and host().vector_bytes >= 1


def test_an_unknown_target_is_a_problem() -> None:
    with pytest.raises(Problem, match="vax"):
        target("vax")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_say_their_lanes(name: str) -> None:
    t = target(name)
    assert t.lanes(4) == max(1, t.vector_bytes // 4) and t.lanes(8) >= 1


def test_comparisons_are_the_operations_with_another_result() -> None:
    assert {"lt", "le", "eq"} == COMPARISONS


# ---- other processors and features -------------------------------------------------------------------------------------
def test_features_decide_which_vectors_are_used() -> None:
    plain, wide = target("x86-64"), target("x86-64", "skylake-avx512", "+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl")
    assert (plain.vector_bytes, wide.vector_bytes, wide.cpu) == (16, 64, "skylake-avx512")
    assert target("x86-64-v4", features="-avx512f").vector_bytes == 32 and target("x86-64-v4", "generic").vector_bytes == 16
    assert target("x86-64-v4", features="+avx512vnni").dot_product and not target("x86-64-v4").dot_product




@pytest.mark.parametrize(("cpu", "features", "message"), [
    ("cortex-m99", "", "there is no processor 'cortex-m99', and LLVM knows none"),
    (None, "+dps", "LLVM knows no feature +dps for thumbv7em-none-eabi"),
    (None, "dsp", "feature 'dsp' is neither on nor off")])
def test_names_that_llvm_does_not_know_are_refused(cpu: str | None, features: str, message: str) -> None:
    with pytest.raises(Problem, match=re.escape(message)):
        target("thumbv7em", cpu, features)
