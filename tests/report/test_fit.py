"""Does it fit: every need counted once, names of memories, the verdict at the last byte, wrong limits."""
from __future__ import annotations

import dataclasses

import pytest
import tosaic
from tosaic.jit.tools.report import Report, report
from tosaic.jit.tools.report.figures import BufferLine, ObjectSize
from tosaic.jit.tools.report.fit import fit, fit_board, parse_limits
from tosaic.lowering.memory.buffers import PoolInfo
from tosaic.lowering.memory.planner import Memory

from .subjects import buffer, in_pools, lowered, made

STATE = BufferLine("state", "int8", (40,), 40)


@pytest.fixture
def facts() -> Report:
    """100 bytes of workspace, 41 of state, 30 + 200 + 7 + 41 of flash."""
    return dataclasses.replace(made(buffer("a", 100, 0, (0, 1))), variables=(STATE,), constants=35,
                               object=ObjectSize(200, 30, 7, 41, 0))


def test_needs_are_those_of_ram_and_flash(facts: Report) -> None:
    ram, flash = fit(facts, parse_limits("sram:1K,flash:1M")).lines
    assert (ram.nbytes, ram.limit, ram.over, ram.memory) == (141, 1024, 0, "RAM")
    assert (flash.nbytes, flash.limit, flash.memory) == (278, 1 << 20, "flash")
    assert {n.what: n.nbytes for n in flash.counted} == {"constants": 30, "code": 200, "tables": 7, "initial values": 41}


def test_it_fits_to_the_last_byte(facts: Report) -> None:
    assert fit(facts, parse_limits("ram:141,rom:278")).fits
    over = fit(facts, parse_limits("ram:140,rom:278"))
    assert not over.fits and [x.over for x in over.lines] == [1, 0] and "over by 1 bytes" in str(over)


@pytest.mark.parametrize(("text", "memories"), [
    ("dtcm:1K,rom:1K", ["RAM", "flash"]), ("flash:1K,SRAM1:1K", ["flash", "RAM"]), ("left:1K,right:1K", ["RAM", "flash"]),
    ("workspace:1K", ["RAM"]), (" a : 1k , b : 2MiB ", ["RAM", "flash"])])
def test_a_name_or_its_place_says_which_memory(facts: Report, text: str, memories: list[str]) -> None:
    assert [x.memory for x in fit(facts, parse_limits(text)).lines] == memories


def test_what_nobody_asked_about_is_said(facts: Report) -> None:
    text = str(fit(facts, parse_limits("ram:1K")))
    assert "flash was not asked about: 278 bytes" in text
    unmeasured = dataclasses.replace(facts, object=None)
    assert "not counted: code, which was not measured" in str(fit(unmeasured, parse_limits("ram:1K")))


def test_pools_of_the_plan_are_matched_by_name_and_the_rest_counts_once() -> None:
    pools = Memory(pools=(PoolInfo("dtcm", 3000), PoolInfo("sram", 1 << 16)), workspace_io=True)
    found = report(in_pools(lowered("corpus/f_attention_block"), pools))
    sizes = {p.name: p.nbytes for p in found.pools}
    both = fit(found, parse_limits("sram:64K,dtcm:3000"))
    assert {x.name: x.nbytes for x in both.lines} == sizes
    one = fit(found, parse_limits("sram:64K"))
    assert one.lines[0].nbytes == found.arena and {n.what for n in one.lines[0].counted} == {"pool sram", "dtcm"}
    assert "inputs and outputs lie in the workspace, and count there" in str(one)


def test_the_stack_of_a_call_counts_where_one_ram_is_named(facts: Report) -> None:
    assert facts.object is not None
    known = dataclasses.replace(facts, object=dataclasses.replace(facts.object, stack=300))
    assert fit(known, parse_limits("ram:441,flash:1K")).lines[0].nbytes == 441
    assert "not counted: the stack of interrupts," in str(fit(known, parse_limits("ram:1K")))
    several = fit(known, parse_limits("sram1:1K,sram2:1K"))
    assert sum(x.nbytes for x in several.lines) == 141 and "not counted: the stack, " in str(several)


def test_constants_in_pools_are_flash_and_count_once() -> None:
    options = Memory(constant_pools=(PoolInfo("flash"),))
    found = report(in_pools(lowered("corpus/f_mobilenet_block"), options), code=True)
    ram, line = fit(found, parse_limits("ram:64K,flash:1M")).lines
    pool = next(p for p in found.pools if p.name == "flash")
    assert found.object is not None and found.object.constants == 0 and pool.nbytes >= found.constants > 0
    assert line.memory == "flash" and line.nbytes == pool.nbytes + found.object.text + found.object.tables
    assert ram.nbytes == found.arena + (found.object.stack or 0) + sum(b.nbytes for b in (*found.inputs, *found.outputs))


@pytest.mark.parametrize(("text", "words"), [
    ("", "nothing is no memory and size"), ("sram", "sram is no memory and size"), ("sram:big", "sram:big is no memory"),
    ("sram:-1", "is no memory"), ("sram:1K,sram:2K", "names sram twice"), ("sram:1.5K", "is no memory"),
    ("a:1K,b:1K,c:1K", "does not know what c is for"), ("sram:١K", "is no memory")])
def test_wrong_limits_are_problems_with_help(facts: Report, text: str, words: str) -> None:
    with pytest.raises(tosaic.Problem, match=words) as caught:
        fit(facts, parse_limits(text))
    assert caught.value.help and caught.value.kind == "option"


def test_a_board_counts_everything_whatever_pools_are_called(facts: Report) -> None:
    renamed = dataclasses.replace(facts, pools=(dataclasses.replace(facts.pools[0], name="flash"),))
    for found in (facts, renamed):
        flash, ram = fit_board(found, 1 << 10, 1 << 10)
        assert (flash.nbytes, ram.nbytes) == (278, 141)


@pytest.mark.parametrize(("ram", "over", "left"), [(441, 0, 300), (440, 1, 299), (141, 300, 0), (100, 341, 0)])
def test_the_stack_of_a_board_is_what_all_else_leaves_of_its_ram(facts: Report, ram: int, over: int, left: int) -> None:
    assert facts.object is not None
    known = dataclasses.replace(facts, object=dataclasses.replace(facts.object, stack=300))
    _, whole, stack = fit_board(known, ram, 1 << 10)
    assert (whole.nbytes, whole.over, stack.nbytes, stack.limit) == (441, over, 300, left)


@pytest.mark.parametrize("model", ["f_mobilenet_block", "v_lstm", "f_attention_block", "f_mlp_int8"])
@pytest.mark.parametrize("workspace_io", [False, True])
def test_the_caller_inputs_and_outputs_count_once(model: str, workspace_io: bool) -> None:
    """The RAM that a run touches: arena, variables, inputs and outputs; the last byte decides, on boards as well."""
    found = report(in_pools(lowered(f"corpus/{model}"), Memory(workspace_io=workspace_io)))
    io = 0 if workspace_io else sum(b.nbytes for b in (*found.inputs, *found.outputs))
    rest = found.arena + found.state + found.undo
    assert io or workspace_io
    for needed, elsewhere in ((rest + io, False), (rest, True)):
        for name in ("ram", found.workspace_pools[0].name):
            assert fit(found, parse_limits(f"{name}:{needed}"), elsewhere).fits
            assert not fit(found, parse_limits(f"{name}:{needed - 1}"), elsewhere).fits
        (_, ram, *_) = fit_board(found, needed, 1 << 30, elsewhere)
        assert ram.nbytes == needed
    assert ("lie elsewhere" in str(fit(found, parse_limits("ram:1K"), io_elsewhere=True))) is not workspace_io


def test_inputs_and_outputs_alone_may_be_too_much() -> None:
    found = report(lowered("corpus/f_mlp_int8"))
    io = sum(b.nbytes for b in (*found.inputs, *found.outputs))
    over = fit(found, parse_limits(f"ram:{io - 1}"))
    assert not over.fits and {"inputs", "outputs"} <= {n.what for n in over.lines[0].counted}
