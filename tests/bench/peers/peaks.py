"""Kernels that do nothing but use one unit of the machine, as LLVM IR: f32 multiply-adds, int8 dot products (AMX tiles, else
VNNI), copies. What they reach is what the share of the peak is a share of."""
from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

CHAINS = 24
"""Independent accumulators: more than latency times issue width asks for, and they leave registers over."""

ALIGNMENT = 64

COPIED = 4 * 1000 * 4096
"""Bytes of each side of a copy: far beyond L2, as the cases that are compared with it."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """`void run(ptr source, ptr target, i64 iterations)`; `work` is operations or bytes of one iteration. `source` and
    `target` have at least `bytes` bytes each, at multiples of ALIGNMENT."""
    unit: str
    ir: str
    work: int
    iterations: int
    bytes: int = 4096


def counted(unit: str, declarations: str, type: str, step: Callable[[str], str], work: int, iterations: int) -> Kernel:
    """A loop around CHAINS accumulators; `step` is the right side that makes an accumulator's next value."""
    names = [str(i) for i in range(CHAINS)]
    phis = "\n".join(f"  %p{n} = phi {type} [ zeroinitializer, %entry ], [ %q{n}, %loop ]" for n in names)
    steps = "\n".join(f"  %q{n} = {step(f'%p{n}')}" for n in names)
    stores = "\n".join(f"  %s{n} = getelementptr {type}, ptr %target, i64 {n}\n"
                       f"  store {type} %q{n}, ptr %s{n}, align {ALIGNMENT}" for n in names)
    return Kernel(unit, f"""{declarations}
define void @run(ptr %source, ptr %target, i64 %iterations) #0 {{
entry:
  %x = load {type}, ptr %source, align {ALIGNMENT}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %iterations
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}""", work * CHAINS, iterations)


def multiply_add(lanes: int) -> Kernel:
    type, name = f"<{lanes} x float>", f"@llvm.fma.v{lanes}f32"
    return counted(f"f32 multiply-add, {lanes} lanes", f"declare {type} {name}({type}, {type}, {type})", type,
                   lambda p: f"call {type} {name}({type} {p}, {type} %x, {type} %x)", 2 * lanes, 8_000_000 // lanes)


def dot4(lanes: int, name: str) -> Kernel:
    type = f"<{lanes} x i32>"
    return counted(f"int8 VNNI, {lanes} lanes", f"declare {type} @{name}({type}, {type}, {type})", type,
                   lambda p: f"call {type} @{name}({type} {p}, {type} %x, {type} %x)", 8 * lanes, 8_000_000 // lanes)


def tiles() -> Kernel:
    """Four accumulator tiles of 16 by 16, two tiles a side, which stay in their registers."""
    config = ", ".join(f"i8 {v}" for v in (1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8))
    products = "\n".join(f"  call void @llvm.x86.tdpbssd(i8 {c}, i8 {4 + c // 2}, i8 {6 + c % 2})" for c in range(4))
    zeros = "\n".join(f"  call void @llvm.x86.tilezero(i8 {t})" for t in range(8))
    return Kernel("int8 AMX", f"""@config = internal constant [64 x i8] [{config}], align 64
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tdpbssd(i8 immarg, i8 immarg, i8 immarg)
declare void @llvm.x86.tilerelease()
define void @run(ptr %source, ptr %target, i64 %iterations) #0 {{
entry:
  call void @llvm.x86.ldtilecfg(ptr @config)
{zeros}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{products}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %iterations
  br i1 %more, label %loop, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}""", 4 * 2 * 16 * 16 * 64, 150_000)


def copy(lanes: int, is_streaming: bool) -> Kernel:
    """`iterations` vectors of `lanes` f32 from one side to the other, four at a time."""
    type, hint = f"<{lanes} x float>", ", !nontemporal !0" if is_streaming else ""
    moves = "\n".join(f"  %a{n} = getelementptr {type}, ptr %source, i64 %i{n}\n"
                      f"  %v{n} = load {type}, ptr %a{n}, align {4 * lanes}\n"
                      f"  %b{n} = getelementptr {type}, ptr %target, i64 %i{n}\n"
                      f"  store {type} %v{n}, ptr %b{n}, align {4 * lanes}{hint}" for n in range(4))
    places = "\n".join(f"  %i{n} = add i64 %i, {n}" for n in range(4))
    name = "copy" + (", streaming stores" if is_streaming else "")
    return Kernel(name, f"""define void @run(ptr %source, ptr %target, i64 %iterations) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{places}
{moves}
  %j = add i64 %i, 4
  %more = icmp ult i64 %j, %iterations
  br i1 %more, label %loop, label %done
done:
  ret void
}}
!0 = !{{i32 1}}""", 2 * 4 * lanes, COPIED // (4 * lanes), COPIED)


def lanes_of(features: Set[str]) -> int:
    """f32 values in the machine's widest vector."""
    return 16 if "avx512f" in features else 8 if "avx2" in features else 4


def kernels(bound: str, features: Set[str]) -> list[Kernel]:
    """The kernels that might reach the peak of a bound, the machine's features given."""
    lanes = lanes_of(features)
    match bound:
        case "f32":
            return [multiply_add(lanes)]
        case "copy":
            return [copy(lanes, False), copy(lanes, True)]
        case _:
            return [*([tiles()] if "amx-int8" in features else []),
                    *([dot4(16, "llvm.x86.avx512.vpdpbusd.512")] if "avx512vnni" in features else
                      [dot4(8, "llvm.x86.avx512.vpdpbusd.256")] if "avxvnni" in features else [])]
