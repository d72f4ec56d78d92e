"""Runs functions of the loop IR as native code, over arrays with a margin that nothing may touch; interprets them."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
import numpy as np
import pytest
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.machine_code.llvm_writer import quoted
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from .machines import missing, used, with_dot_products

Array = np.ndarray[Any, Any]
MARGIN = 256
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


def named(name: str) -> tuple[Target, Target | None]:
    """A target, and the machine that its code runs on where it is another: "32 bits" is emitted as for a processor with
    32-bit registers, and runs here. "AVX-VNNI" has products of bytes without 512-bit vectors."""
    if name == "AVX-VNNI":
        return with_dot_products(target("x86-64-v3")), None
    if name != "32 bits":
        return target(name), None
    plain = target("x86-64")
    return replace(plain, triple="i686-unknown-linux-gnu"), plain


def module_text(functions: Sequence[Function], target: Target, on: Target | None = None) -> str:
    """A module with an external entry for each function; `on` is the machine, where it is another than emitted for."""
    emitted = emit_functions(functions, target)
    lines = [f'target triple = "{(on or target).triple}"', *emitted.declarations, *emitted.definitions,
             *emitted.attributes]
    for f, name in zip(functions, emitted.names):
        params = [f"ptr %p{i}" for i in range(len(f.params) + len(f.scratch))]
        params += ["i64 %low", "i64 %high"] if f.rows else []
        lines += [f"define void @{quoted('run_' + f.name)}({', '.join(params)}) #0 {{",
                  f" call void @{quoted(name)}({', '.join(params)})", " ret void", "}"]
    return "\n".join(lines)


def parsed(text: str) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text)
    module.verify()
    return module


def machine(target: Target, model: str) -> llvm.TargetMachine:
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel=model)


def object_file(functions: Sequence[Function], target: Target) -> bytes:
    return machine(target, "default").emit_object(parsed(module_text(functions, target)))


class Native:
    """Functions as code of this process."""

    def __init__(self, functions: Sequence[Function], target: Target, on: Target | None = None) -> None:
        target = used(functions, target)
        if lacking := missing(on or target):
            pytest.skip(f"this machine has no {', '.join(lacking)}, which the code for {target.cpu} uses")
        text = module_text(functions, target, on)
        self.engine = llvm.create_mcjit_compiler(parsed(text), machine(on or target, "jitdefault"))
        self.engine.finalize_object()

    def __enter__(self) -> Native:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.engine.close()

    def run(self, f: Function, data: dict[Buffer, Array], rows: tuple[int, int] | None = None,
            shift: int = 0) -> dict[Buffer, Array]:
        """What the parameters hold afterwards; their memory starts `shift` elements behind a multiple of 64."""
        room = {b: margins(b, data.get(b), shift) for b in (*f.params, *f.scratch)}
        code = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(room), *[ctypes.c_int64] * (2 if rows else 0))
        code(self.engine.get_function_address(f"run_{f.name}"))(
            *[inner.ctypes.data for _, inner in room.values()], *(rows or ()))
        for b, (raw, inner) in room.items():
            start = inner.ctypes.data - raw.ctypes.data
            before, after = raw[:start], raw[start + inner.nbytes:]
            assert (before == 0x5B).all() and (after == 0x5B).all(), f"{f.name} writes outside {b!r}"
        return {b: inner.copy() for b, (_, inner) in room.items()}


def margins(b: Buffer, data: Array | None, shift: int) -> tuple[Array, Array]:
    """Bytes with the buffer's memory inside, at a multiple of 64 plus `shift` elements."""
    nbytes, extra = b.nbytes, shift * (b.nbytes // max(b.size, 1))
    whole = np.full(nbytes + extra + 2 * MARGIN + 64, 0x5B, np.uint8)
    whole = whole[-whole.ctypes.data % 64:]
    start = MARGIN + extra
    raw = whole[:start + nbytes + MARGIN]
    inner = raw[start:start + nbytes].view(b.dtype)
    inner.view(np.uint8)[:] = 0xA5 if b.dtype != "bool" else 1
    if data is not None:
        inner[:] = np.asarray(data).reshape(-1)
    return raw, inner


def interpreted(f: Function, data: dict[Buffer, Array], rows: tuple[int, int] | None = None) -> LoopMemory:
    """The memory after the interpreter has run the function."""
    memory = LoopMemory()
    for b, x in data.items():
        memory.add(b, x)
    run_function(f, memory, rows)
    return memory


def in_one_step(f: Function, wide: Function, data: dict[Buffer, Array]) -> LoopMemory:
    """What the interpreter says of a function that is elementwise, by the same one with longer vectors: it takes one step where
    `f` may take hundreds."""
    memory, result = interpreted(wide, {w: data[b] for b, w in zip(f.params, wide.params) if b in data}), LoopMemory()
    for b, w in zip(f.params, wide.params):
        result.arrays[b], result.written[b] = memory.arrays[w], memory.written[w]
    return result


def differences(native: dict[Buffer, Array], memory: LoopMemory) -> list[str]:
    """Elements that the interpreter has written and native code made otherwise; any NaN is as good as another."""
    found = []
    for b, ours in native.items():
        want, written = memory.arrays[b], memory.written[b]
        size = ours.dtype.itemsize
        equal = ours.view(f"u{size}") == want.view(f"u{size}")
        if ours.dtype.kind not in "iub":
            equal |= (ours != ours) & (want != want)
        for i in np.flatnonzero(written & ~equal)[:3]:
            found.append(f"{b.name}[{i}] is {ours[i]}, not {want[i]}")
    return found
