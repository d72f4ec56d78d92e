"""Frames that are read from machine code, held against what gcc says of its own (-fstack-usage): other code than LLVM's, in all
optimisations, with frames of all sizes. And code without a bound: it is refused."""
from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tosaic.lowering.machine_code.stack.bound import FAMILIES, StackUse
from tosaic.lowering.machine_code.stack.frames import Code, frame_of
from tosaic.lowering.machine_code.stack.instruction import UnknownStack
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

SOURCE = """
int other(int *p, int n);
double real(double x, double y, double *z);
int leaf(int x) { return x * 3 + 1; }
int one(int x) { int a[10]; a[3] = x; return other(a, 10) + a[5]; }
int page(int x) { int a[1250]; a[3] = x; return other(a, 1250) + a[900]; }
int large(int x) { int a[20000]; a[3] = x; return other(a, 20000) + a[9000]; }
int early(int *p, int n) {
    int a[40];
    if (!p) return -1;
    if (n > 40) return -2;
    a[n - 1] = 3;
    return other(a, n) + other(p, n);
}
int many(int a, int b, int c, int d, int e, int f, int g, int h) {
    int t[6] = {a, b, c, d, e, f};
    return other(t, g) + h + other(&a, h) * d * e;
}
int passes(int *p) { return many(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]) + other(p, 7); }
int tail(int *p) { return other(p + 1, 4); }
int choose(int *p, int n) {
    int a[4];
    switch (n) {
    case 0: return other(p, 1) + 1;
    case 1: return other(a, 5) * 3;
    case 2: return other(p + 2, 7) - 4;
    case 3: a[1] = 5; return other(a, 2);
    case 4: return other(p, 9) ^ 77;
    case 5: return other(p + 1, 1) + other(a, 2);
    case 6: return p[3] / 3;
    case 7: other(p, 4); return 9;
    default: return other(p + n, n);
    }
}
double floats(double *p, int n) {
    double s = 0, t[5];
    for (int i = 0; i < n; ++i) s = real(s, p[i], t) + t[i % 5] * p[n - i];
    return s;
}
int sums(const signed char *p, const signed char *q, int n) {
    int s[16] = {0};
    for (int i = 0; i < n; ++i) for (int j = 0; j < 16; ++j) s[j] += p[i] * q[i * 16 + j];
    return other(s, 16);
}
int loop(int *p, int n) {
    while (n-- > 0) {
        int a[3] = {p[n], n, 7};
        if (other(a, 3) > p[n]) return other(a, 2) + n;
    }
    return 0;
}
int given(int (*f)(int *), int n) { int a[4] = {n}; return f(a) + f(a + 1) + n; }
int dynamic(int n) { int a[n]; a[0] = n; return other(a, n) + a[n - 1]; }
int rounded(int n) { __attribute__((aligned(64))) int a[16]; a[n] = n; return other(a, n) + a[0]; }
"""
COMPILERS: Mapping[str, tuple[str, ...]] = {
    "cortex-m0": ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"),
    "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"),
    "cortex-m55": ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    "rv32imac": ("riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-mno-relax"),
    "rv32im": ("riscv64-unknown-elf-gcc", "-march=rv32im", "-mabi=ilp32", "-mno-relax"),
    "rv64gc": ("riscv64-unknown-elf-gcc", "-march=rv64gc", "-mabi=lp64d", "-mno-relax"),
    "rv64gc, relaxed": ("riscv64-unknown-elf-gcc", "-march=rv64gc", "-mabi=lp64d"),
    "aarch64": ("aarch64-linux-gnu-gcc",), "x86-64": ("gcc", "-fcf-protection=none"),
    "x86-64-v4": ("gcc", "-march=x86-64-v4")}
OPTIONS = ("-O0", "-O1", "-Os", "-O2", "-O3 -funroll-loops", "-O2 -fno-omit-frame-pointer")
THESE = pytest.mark.parametrize("machine", [pytest.param(m, marks=pytest.mark.skipif(
    shutil.which(c[0]) is None, reason=f"not installed: {c[0]}")) for m, c in COMPILERS.items()])


def there(machine: str) -> Target:
    """The processor of a compiler."""
    name = machine.split(",")[0]
    return target("rv32imac" if name == "rv32im" else name)


@functools.cache
def compiled(machine: str, options: str) -> tuple[StackUse, dict[str, tuple[int, str]]]:
    """The object as it is read, and (bytes, "static" or "dynamic") of each function by gcc."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "f.c").write_text(SOURCE)
        command = [*COMPILERS[machine], *options.split(), "-ffunction-sections", "-fstack-usage", "-c", "f.c", "-o", "f.o"]
        subprocess.run(command, cwd=folder, check=True)
        lines = [line.split() for line in (folder / "f.su").read_text().splitlines()]
        said = {line[0].split(":")[-1]: (int(line[1]), line[2]) for line in lines}
        return StackUse((folder / "f.o").read_bytes(), there(machine)), said


REFUSED = {("cortex-m0", "-Os"): {"choose"}}
"""Jumps by functions of gcc's library, with a table behind the call, which LLVM does not make."""


@pytest.mark.sampled(2)
@THESE
@pytest.mark.parametrize("options", OPTIONS)
def test_a_frame_is_what_gcc_says_it_is(machine: str, options: str) -> None:
    use, said = compiled(machine, options)
    bounded = {name: nbytes for name, (nbytes, kind) in said.items() if kind != "dynamic"}
    expected = {name: nbytes for name, nbytes in bounded.items() if name not in REFUSED.get((machine, options), ())}
    assert {name: use.frame(name).nbytes for name in expected} == expected and len(expected) >= 13


@THESE
@pytest.mark.parametrize("options", OPTIONS)
def test_what_nobody_can_know_has_no_bound(machine: str, options: str) -> None:
    use, said = compiled(machine, options)
    assert said["dynamic"][1] == "dynamic"
    with pytest.raises(UnknownStack, match="only a run knows how large the frame of dynamic is"):
        use.frame("dynamic")
    with pytest.raises(UnknownStack, match="nobody knows how much stack other takes"):
        use.bound("one")
    assert use.frame("given").calls_given and not use.frame("one").calls_given


def code(text: str) -> Code:
    """Thumb's halves as a function."""
    return Code("f", b"".join(int(word, 16).to_bytes(2, "little") for word in text.split()), (), {})


@pytest.mark.parametrize(("text", "reason"), [
    ("b510 4770", "returns at 0x2 with another stack"), ("b100 b510 bd10", "paths with different stacks meet"),
    ("b510 e7ff", "goes on at 0x4, where no code is"), ("4770 b510 bd10", "moves the stack at 0x2, where nothing goes"),
    ("4495 4770", "only a run knows")])
def test_code_that_keeps_no_stack_is_refused(text: str, reason: str) -> None:
    """A push without a pop; one that a branch leaves out; a jump to nowhere; code that nobody reaches; add sp, r2."""
    with pytest.raises(UnknownStack, match=reason):
        frame_of(FAMILIES["arm", False], code(text))


RECURSIVE = "int f(int x, int y) { return x < 2 ? y : f(x - 1, y) * f(x - 2, y) + 1; }"


@THESE
@pytest.mark.parametrize("options", OPTIONS[:3])
def test_recursion_has_no_bound(tmp_path: Path, machine: str, options: str) -> None:
    (tmp_path / "f.c").write_text(RECURSIVE)
    command = [*COMPILERS[machine], *options.split(), "-ffunction-sections", "-c", "f.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(UnknownStack, match="f calls itself"):
        StackUse((tmp_path / "f.o").read_bytes(), there(machine)).bound("f")


def test_functions_of_one_section_have_no_bound(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    (tmp_path / "f.c").write_text("int f(int x) { return x; } int g(int x) { return x + 1; }")
    subprocess.run(["gcc", "-O1", "-c", "f.c"], cwd=tmp_path, check=True)
    with pytest.raises(UnknownStack, match="g has no section of its own"):
        StackUse((tmp_path / "f.o").read_bytes(), target("x86-64")).bound("f")
