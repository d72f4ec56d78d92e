"""Steps in parts, as a driver runs them: each part is some rows of its table, and the parts are given to the pool of threads
that the caller has put into the frame, or run one after the other where that is null. A pool is a structure: the function that
runs tasks, and what that takes first.
"""
from __future__ import annotations

from collections.abc import Sequence

from ...kernels.kernel import Compute, Parallel, walk
from ...loops.program import Program

PART = """define internal void @P.part(ptr %job, i64 %part) #0 {
 %frame = load ptr, ptr %job
 %first.at = getelementptr i64, ptr %job, i64 1
 %first = load i64, ptr %first.at
 %number = add i64 %first, %part
 %low.at = getelementptr i32, ptr @P.bounds, i64 %number
 %high.at = getelementptr i32, ptr %low.at, i64 1
 %low.row = load i32, ptr %low.at
 %high.row = load i32, ptr %high.at
 %low = zext i32 %low.row to i64
 %high = zext i32 %high.row to i64
 call void @P.walk(ptr %frame, i64 %low, i64 %high, i64 %part)
 ret void
}""".splitlines()
"""A part: rows of the table, from one bound to the next."""

FORK = """ %job = alloca [2 x i64]
 store ptr %frame, ptr %job
 %first.at = getelementptr i64, ptr %job, i64 1
 store i64 %first, ptr %first.at
 %none = icmp eq ptr %pool, null
 br i1 %none, label %serial, label %together
together:
 %parallel = load ptr, ptr %pool
 %context.at = getelementptr ptr, ptr %pool, i64 1
 %context = load ptr, ptr %context.at
 call void %parallel(ptr %context, ptr @P.part, ptr %job, i64 %parts)
 ret void
serial:
 br label %next
next:
 %part = phi i64 [0, %serial], [%following, %next]
 call void @P.part(ptr %job, i64 %part)
 %following = add i64 %part, 1
 %more = icmp ult i64 %following, %parts
 br i1 %more, label %next, label %done
done:
 ret void
}""".splitlines()
"""Gives the parts to the pool; `%pool` is loaded before."""


def most_parts(program: Program) -> int:
    """The most parts that a step is in, which a pool of threads may run."""
    return max((len(s.parts) if isinstance(s, Parallel) else s.parts for s in walk(program.steps)
                if isinstance(s, Parallel | Compute)), default=1)


def in_parts(program: Program) -> bool:
    """Whether steps of a program are in parts."""
    return most_parts(program) > 1


def parts_text(prefix: str, bounds: Sequence[int], loads: Sequence[str], pool: str) -> list[str]:
    """The functions that run parts: `@<prefix>.fork(frame, first, parts)` runs those between bounds from number `first` on.
    `loads` are the lines that load the pointer `pool` from the frame."""
    def named(text: Sequence[str]) -> list[str]:
        return [line.replace("@P.", f"@{prefix}.").replace("%pool", pool) for line in text]

    numbers = ", ".join(f"i32 {n}" for n in bounds)
    return [f"@{prefix}.bounds = internal unnamed_addr constant [{len(bounds)} x i32] [{numbers}]", *named(PART),
            f"define internal void @{prefix}.fork(ptr %frame, i64 %first, i64 %parts) #0 {{", *loads, *named(FORK)]
