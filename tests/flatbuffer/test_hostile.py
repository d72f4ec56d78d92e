"""Bytes that mean harm: every one of them ends in a module or in a Problem, and soon."""
from __future__ import annotations

import pathlib
import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.flatbuffer.bounds_checked import Binary
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module as read_text
from tosaic.runtime.errors import Problem

from .files import ADD, file, graph, operator, problem, region, tensor
from .test_round_trip import CONTROL_FLOW, MODULES

DATA = pathlib.Path(__file__).parent / "data"
SEEDS = [write_module(read_text(CONTROL_FLOW)), write_module(read_text(MODULES["variables"])),
         write_module(read_text(MODULES["bounds"])), (DATA / "written_by_tosa_opt.tosa").read_bytes()]


def attempt(data: bytes) -> Module | None:
    """The module, which is written again too, or None for a Problem. Any other exception is a fault of ours."""
    try:
        module = read_module(data)
        verify(module)
    except Problem as found:
        assert str(found)
        return None
    assert write_module(read_module(write_module(module))) == write_module(module)
    return module


def test_every_truncation_is_a_problem_or_a_module() -> None:
    data = SEEDS[1]
    found = [attempt(data[:length]) is not None for length in range(len(data))]
    assert not any(found[:len(data) - 8])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_wrong_bytes_everywhere_are_a_problem_or_a_module(seed: int) -> None:
    data = SEEDS[seed][:1200]
    rest, generator = SEEDS[seed][1200:], random.Random(seed)
    for place in range(8 + seed % 2, len(data), 2):
        wrong = bytearray(data)
        wrong[place] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, wrong[place] ^ 1 << generator.randrange(8)))
        attempt(bytes(wrong) + rest)


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_random_changes_are_a_problem_or_a_module(seed: int) -> None:
    generator = random.Random(100 + seed)
    for _ in range(400):
        data = bytearray(SEEDS[seed])
        for _ in range(generator.choice((1, 1, 2, 8))):
            place = generator.randrange(8, len(data) - 4)
            match generator.randrange(4):
                case 0:
                    data[place] = generator.randrange(256)
                case 1:
                    number = generator.choice((0, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data), generator.randrange(2000)))
                    data[place & ~3:(place & ~3) + 4] = struct.pack("<I", number)
                case 2:
                    other, length = generator.randrange(8, len(data)), generator.randrange(1, 40)
                    data[place:place + length] = data[other:other + length]
                case _:
                    del data[place:place + generator.randrange(1, 16)]
        attempt(bytes(data))


@pytest.mark.parametrize("size", [0, 1, 4, 7, 8, 9, 12, 16, 64])
@pytest.mark.parametrize("fill_byte", [0, 1, 4, 0x7F, 0xFF])
def test_headers_of_nonsense_are_problems(size: int, fill_byte: int) -> None:
    assert attempt((bytes([fill_byte]) * 4 + b"TOSA" + bytes([fill_byte]) * size)[:size + 8]) is None


def test_a_table_that_refers_to_itself_ends() -> None:
    """The regions of the root are many times the root, whose regions are ..."""
    count = 1000
    vtable = struct.pack("<4H", 8, 12, 4, 8)
    root = 16
    body = struct.pack("<iII", root - 8, 4, 4)  # the version is the list's length word; the list comes behind
    offsets = b"".join(struct.pack("<I", (root - (root + 16 + 4 * i)) & 0xFFFFFFFF) for i in range(count))
    data = struct.pack("<I", root) + b"TOSA" + vtable + body + struct.pack("<I", count) + offsets
    assert attempt(data) is None


def test_parts_that_overlap_are_problems() -> None:
    """A list of lists of lists that are all the same bytes would be of cubic size."""
    numbers = np.arange(2000, dtype="<u4")
    binary = Binary(numbers.tobytes())
    binary.spend(0, 4000, "a list")
    binary.spend(0, 4000, "the same list")
    binary.spend(4, 4000, "a list inside of it")
    with pytest.raises(Problem, match="a list at byte 8 overlaps other parts"):
        binary.spend(8, 4000, "a list")


def test_more_tables_than_fit_are_a_problem() -> None:
    data = struct.pack("<I", 16) + b"TOSA" + struct.pack("<2H", 4, 4) + bytes(4) + struct.pack("<i", 8) + bytes(60)
    binary = Binary(data)
    with pytest.raises(Problem, match="more tables than its 80 bytes can hold"):
        for _ in range(100):
            binary.table(0)


def test_regions_that_name_each_other_do_not_multiply() -> None:
    """Six levels of forty operators, each of which names the next region twice: 80^6 blocks if all were made."""
    def level(number: int) -> object:
        operators = [operator("COND_IF", "c", f"y{i}", then_graph=f"r{number + 1}", else_graph=f"r{number + 1}")
                     for i in range(40)]
        return region(f"r{number}", "c" if number == 0 else "", "", tensor("c", (), "i1", data=b"\1"), *operators,
                      *(tensor(f"y{i}", (), "i1") for i in range(40)),
                      *(() if number == 0 else (operator("CONST", "", "c"),)))

    found = problem(file(*(level(n) for n in range(6)), region("r6", "", "")))  # type: ignore[arg-type]
    assert found.kind == "level" and found.message == "too many operators share their regions"


def test_constants_that_share_their_bytes_are_unpacked_once() -> None:
    """Five thousand constants of 100,000 numbers of 4 bits are 500 MB if each is unpacked."""
    data = np.arange(50_000, dtype=np.uint32).astype(np.uint8).tobytes()
    parts = [p for i in range(5_000) for p in (tensor(f"k{i}", (100_000,), "i4", data), operator("CONST", "", f"k{i}"))]
    content = graph("", "k0", *parts)
    assert len(content) < 3_000_000
    module = read_module(content)
    constants = {id(o.results[0].constant.base) for o in module.functions[0].body.operations  # type: ignore[union-attr]
                 if o.results[0].constant is not None}
    assert len(constants) == 1


def test_a_large_graph_in_the_wrong_order_is_read() -> None:
    """10,000 operators, listed from the last to the first."""
    count = 10_000
    parts = [tensor(f"t{i}") for i in range(count + 1)]
    operators = [operator("ABS", f"t{i}", f"t{i + 1}") for i in reversed(range(count))]
    data = graph("t0", f"t{count}", *parts, *operators)
    module = read_module(data)
    assert len(module.functions[0].body.operations) == count


def test_a_name_that_is_no_text_is_a_problem() -> None:
    data = graph("aaaa b", "c", replace(ADD[0], name="aaaa"), *ADD[1:3], operator("ADD", "aaaa b", "c"))
    found = problem(data.replace(b"aaaa", b"a\xff\xffa"))
    assert found.kind == "syntax" and "is not UTF-8" in found.message
