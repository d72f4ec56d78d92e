"""Loads and stores of vectors in LLVM IR, some of whose lanes are left out.

Masked accesses on x86 are written in pieces of one machine vector. LLVM would split a wider one itself, and then may read
the lanes of a half whose mask is false throughout.
"""
from __future__ import annotations

from collections.abc import Iterator

from ....runtime.records import dataclass
from ...machine_code.llvm_writer import Writer
from ...target.target import Target
from . import x86
from .llvm_text import BITS, spelled, subvector, suffix


@dataclass(slots=True)
class MemoryAccesses:
    """Accesses to elements that lie in memory as LLVM's `scalar`, aligned as one element. Only the first `active` lanes,
    and of those the ones where `mask` is true (an operand, or empty), are read or written; the others are 0."""
    writer: Writer
    target: Target
    streams: bool = False
    """True if the function writes past the caches."""

    # ---- pieces ------------------------------------------------------------------------------------------------------
    def pieces(self, lanes: int, active: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """First lane, lanes and active lanes of each machine vector; `nbytes` are those of one lane in it."""
        step = max(16, self.target.vector_bytes) // nbytes if self.target.has_vector_width else lanes
        for first in range(0, lanes, step):
            count = min(step, lanes - first)
            yield first, count, min(max(active - first, 0), count)

    def joined(self, scalar: str, pieces: list[tuple[int, int, str]]) -> str:
        """Pieces one after the other: first lane, lanes and value of each."""
        (_, count, total), *rest = pieces
        for first, more, value in rest:
            if more < count:  # a shuffle takes two vectors of one type
                value = self.widened(scalar, more, count, value)
            t, wide = spelled(scalar, count), max(first, count)
            if wide > count:
                value = self.widened(scalar, count, wide, value)
                t = spelled(scalar, wide)
            numbers = ", ".join([f"i32 {i}" for i in (*range(first), *range(wide, wide + more))])
            total = self.writer.put(f"shufflevector {t} {total}, {t} {value}, <{first + more} x i32> <{numbers}>")
        return total

    def widened(self, scalar: str, count: int, wide: int, value: str) -> str:
        if count == 1:
            return self.writer.put(f"insertelement {spelled(scalar, wide)} poison, {scalar} {value}, i32 0")
        t = spelled(scalar, count)
        numbers = ", ".join([f"i32 {i}" if i < count else "i32 poison" for i in range(wide)])
        return self.writer.put(f"shufflevector {t} {value}, {t} poison, <{wide} x i32> <{numbers}>")

    def moved(self, scalar: str, pointer: str, by: int) -> str:
        return self.writer.put(f"getelementptr {scalar}, ptr {pointer}, i64 {by}") if by else pointer

    def mask(self, lanes: int, active: int, mask: str) -> str:
        """The lanes to access, as an operand; empty where it is all of them."""
        if active == lanes:
            return mask
        first = f"<{', '.join(['i1 true' if i < active else 'i1 false' for i in range(lanes)])}>"
        return self.writer.put(f"and <{lanes} x i1> {mask}, {first}") if mask else first

    # ---- accesses ----------------------------------------------------------------------------------------------------
    def load(self, scalar: str, lanes: int, pointer: str, active: int, mask: str) -> str:
        """The loaded vector."""
        if active == lanes and not mask:
            return self.load_piece(scalar, lanes, pointer, active, mask)
        pieces = []
        for first, count, on in self.pieces(lanes, active, nbytes(scalar)):
            value = "zeroinitializer"
            if on:
                some = subvector(self.writer, "i1", lanes, mask, first, count)
                value = self.load_piece(scalar, count, self.moved(scalar, pointer, first), on, some)
            pieces.append((first, count, value))
        return self.joined(scalar, pieces)

    def load_piece(self, scalar: str, lanes: int, pointer: str, active: int, mask: str) -> str:
        t, align = spelled(scalar, lanes), nbytes(scalar)
        if self.target.has_vector_length and active < lanes and not mask:
            return self.load_first(scalar, lanes, pointer, active)
        mask = self.mask(lanes, active, mask)
        if not mask:
            return self.writer.put(f"load {t}, ptr {pointer}, align {align}")
        if lanes == 1:
            return self.load_where(scalar, pointer, mask)
        return self.writer.intrinsic(f"llvm.masked.load.{suffix(scalar, lanes)}.p0", t, [
            (f"ptr align {align}", pointer), (f"<{lanes} x i1>", mask), (t, "zeroinitializer")])

    def load_first(self, scalar: str, lanes: int, pointer: str, active: int) -> str:
        """The first lanes by their number; the others are 0."""
        t, every, count = spelled(scalar, lanes), (f"<{lanes} x i1>", "splat (i1 true)"), ("i32", f"{active}")
        found = self.writer.intrinsic(f"llvm.vp.load.{suffix(scalar, lanes)}.p0", t, [
            (f"ptr align {nbytes(scalar)}", pointer), every, count])
        return self.writer.intrinsic(f"llvm.vp.merge.{suffix(scalar, lanes)}", t, [
            every, (t, found), (t, "zeroinitializer"), count])

    def load_where(self, scalar: str, pointer: str, condition: str) -> str:
        """A scalar that is read only where the condition is true."""
        w = self.writer
        then, end = w.blocks("then", "end")
        w.branch(condition, then, end("0.0" if scalar in ("float", "double") else "0"))
        w.enter(then)
        w.jump(end(w.put(f"load {scalar}, ptr {pointer}, align {nbytes(scalar)}")))
        value, = w.enter(end, scalar)
        return value.name

    def gather(self, scalar: str, lanes: int, base: str, indices: tuple[str, str], active: int, mask: str) -> str:
        """base[indices[lane]]; indices are LLVM's type of one and the vector of them. Pieces are a machine vector of
        elements or of indices, whichever are wider; or one lane each, where vectors hold no indices."""
        if self.target.widest_element < nbytes("i64"):
            return self.gather_each(scalar, lanes, base, indices, active, mask)
        pieces, (index, all_indices) = [], indices
        for first, count, on in self.pieces(lanes, active, max(nbytes(index), nbytes(scalar))):
            value = "zeroinitializer"
            if on:
                where = index, subvector(self.writer, index, lanes, all_indices, first, count)
                some = subvector(self.writer, "i1", lanes, mask, first, count)
                value = self.gather_piece(scalar, count, base, where, on, some)
            pieces.append((first, count, value))
        return self.joined(scalar, pieces)

    def gather_each(self, scalar: str, lanes: int, base: str, indices: tuple[str, str], active: int, mask: str) -> str:
        """Lane by lane. LLVM's pass for such gathers (Helium's) fails where indices are constants."""
        index, where = indices
        total, t = "zeroinitializer" if active < lanes else "poison", spelled(scalar, lanes)
        for lane in range(active):
            place = subvector(self.writer, index, lanes, where, lane, 1)
            pointer = self.writer.put(f"getelementptr {scalar}, ptr {base}, {index} {place}")
            value = self.load_piece(scalar, 1, pointer, 1, subvector(self.writer, "i1", lanes, mask, lane, 1))
            total = value if lanes == 1 else self.writer.put(f"insertelement {t} {total}, {scalar} {value}, i32 {lane}")
        return total

    def gather_piece(self, scalar: str, lanes: int, base: str, indices: tuple[str, str], active: int, mask: str) -> str:
        index, where = indices
        pointers = self.writer.put(f"getelementptr {scalar}, ptr {base}, {spelled(index, lanes)} {where}")
        if lanes == 1:
            return self.load_piece(scalar, 1, pointers, 1, mask)
        t, mask = spelled(scalar, lanes), self.mask(lanes, active, mask) or "splat (i1 true)"
        return self.writer.intrinsic(f"llvm.masked.gather.{suffix(scalar, lanes)}.v{lanes}p0", t, [
            (f"<{lanes} x ptr> align {nbytes(scalar)}", pointers), (f"<{lanes} x i1>", mask), (t, "zeroinitializer")])

    def store(self, scalar: str, lanes: int, pointer: str, value: str, active: int) -> None:
        if active == lanes:
            self.store_piece(scalar, lanes, pointer, value, active)
            return
        for first, count, on in self.pieces(lanes, active, nbytes(scalar)):
            if on:
                some = subvector(self.writer, scalar, lanes, value, first, count)
                self.store_piece(scalar, count, self.moved(scalar, pointer, first), some, on)

    def store_piece(self, scalar: str, lanes: int, pointer: str, value: str, active: int) -> None:
        t, align = spelled(scalar, lanes), nbytes(scalar)
        if active == lanes:
            self.writer.do(f"store {t} {value}, ptr {pointer}, align {align}")
        elif active == 1:  # LLVM would store one truncated lane as wide as it was before
            one = subvector(self.writer, scalar, lanes, value, 0, 1)
            self.writer.do(f"store {scalar} {one}, ptr {pointer}, align {align}")
        elif self.target.has_vector_length:
            self.writer.intrinsic(f"llvm.vp.store.{suffix(scalar, lanes)}.p0", "void", [
                (t, value), (f"ptr align {align}", pointer), (f"<{lanes} x i1>", "splat (i1 true)"), ("i32", f"{active}")])
        else:
            self.writer.intrinsic(f"llvm.masked.store.{suffix(scalar, lanes)}.p0", "void", [
                (t, value), (f"ptr align {align}", pointer), (f"<{lanes} x i1>", self.mask(lanes, active, ""))])

    def prefetch(self, pointer: str, near: bool, writes: bool) -> None:
        """Bring a line into the second-level cache, or the first, to be read, or as this core's own; LLVM leaves it out where a
        machine cannot."""
        locality = "3" if near else "2"
        self.writer.intrinsic("llvm.prefetch.p0", "void", [
            ("ptr", pointer), ("i32", f"{writes:d}"), ("i32", locality), ("i32", "1")])

    def can_stream(self, scalar: str, lanes: int) -> bool:
        size = lanes * nbytes(scalar)
        return self.target.streams and size in (16, 32, 64) and size <= self.target.vector_bytes

    def stream(self, scalar: str, lanes: int, pointer: str, value: str) -> None:
        """Past the caches where the address is a multiple of the vector's size, as the instruction needs."""
        w, t, size = self.writer, spelled(scalar, lanes), lanes * nbytes(scalar)
        low = w.put(f"and i64 {w.put(f'ptrtoint ptr {pointer} to i64')}, {size - 1}")
        plain, past, stored = w.blocks("plain", "past", "stored")
        w.branch(w.put(f"icmp ne i64 {low}, 0"), plain, past, likely=False)
        for block, how in ((plain, f"{nbytes(scalar)}"), (past, f"{size}, !nontemporal !{{i32 1}}")):
            w.enter(block)
            w.do(f"store {t} {value}, ptr {pointer}, align {how}")
            w.jump(stored)
        w.enter(stored)
        self.streams = True

    def finish(self) -> None:
        """At the end of the function."""
        if self.streams:
            x86.finish_streaming(self.writer)


def nbytes(scalar: str) -> int:
    """Bytes of an element in memory."""
    return BITS[scalar] // 8
