"""Division of 64-bit integers for 32-bit processors, in LLVM IR: bit by bit, as an instruction would be a library call.
"""
from __future__ import annotations

UNSIGNED = """define internal i64 @tosaic.udiv64(i64 %x, i64 %y) noinline #0 {
entry:
 br label %bit
bit:
 %i = phi i64 [63, %entry], [%next, %bit]
 %rest = phi i64 [0, %entry], [%kept, %bit]
 %quotient = phi i64 [0, %entry], [%longer, %bit]
 %over = icmp slt i64 %rest, 0
 %twice = shl i64 %rest, 1
 %shifted = lshr i64 %x, %i
 %digit = and i64 %shifted, 1
 %now = or i64 %twice, %digit
 %fits = icmp uge i64 %now, %y
 %take = or i1 %over, %fits
 %less = sub i64 %now, %y
 %kept = select i1 %take, i64 %less, i64 %now
 %double = shl i64 %quotient, 1
 %one = zext i1 %take to i64
 %longer = or i64 %double, %one
 %next = sub i64 %i, 1
 %more = icmp sge i64 %next, 0
 br i1 %more, label %bit, label %done
done:
 ret i64 %longer
}"""

SIGNED = """define internal i64 @tosaic.sdiv64(i64 %x, i64 %y) noinline #0 {
 %x.negative = icmp slt i64 %x, 0
 %y.negative = icmp slt i64 %y, 0
 %x.minus = sub i64 0, %x
 %y.minus = sub i64 0, %y
 %x.size = select i1 %x.negative, i64 %x.minus, i64 %x
 %y.size = select i1 %y.negative, i64 %y.minus, i64 %y
 %size = call i64 @tosaic.udiv64(i64 %x.size, i64 %y.size)
 %minus = sub i64 0, %size
 %differ = xor i1 %x.negative, %y.negative
 %result = select i1 %differ, i64 %minus, i64 %size
 ret i64 %result
}"""

LONG_DIVISION = {"tosaic.udiv64": UNSIGNED, "tosaic.sdiv64": SIGNED}
"""By name; the divisor must not be 0."""
