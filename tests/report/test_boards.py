"""Boards: each is judged with code for its own processor, held against what the system's own tools say of that object; what
boards share makes no difference."""
from __future__ import annotations

import itertools
import json
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.stages import Lowered
from tosaic.jit.tools.report import Report, report, saved
from tosaic.jit.tools.report.judge_boards import C_ONLY, WITHOUT_CODE, judge_boards, lowering_key
from tosaic.jit.tools.report.page import page
from tosaic.lowering.target.boards import BOARDS, BY_ANY_NAME, Board, boards_named
from tosaic.lowering.target.machines import MACHINES
from tosaic.lowering.target.presets import target

from .subjects import DATA, by_rows

SIZES = {"thumb": "arm-none-eabi-size", "riscv": "riscv64-unknown-elf-size"}
MACHINE_NAMES = tuple(dict.fromkeys(b.machine for b in BOARDS))
SMALL = ("corpus/v_lstm", "corpus/f_mlp_int8", "corpus/f_mobilenet_block_int8")


def on_host(model: str) -> Lowered:
    """A model as it is lowered without a word about machines, whose boards are then other ones."""
    return tosaic.load(model if "\n" in model else DATA / f"{model}.mlir").entry(None).lower()


def measured(found: Lowered, folder: pathlib.Path) -> tuple[int, int]:
    """Bytes of flash and of the object's own RAM, as the system's tools count them."""
    artifact = found.save(folder)
    tool = next(tool for prefix, tool in SIZES.items() if found.target.triple.startswith(prefix))
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    answer = subprocess.run([tool, str(artifact.object)], capture_output=True, text=True, check=True)
    text, data, zero = map(int, answer.stdout.splitlines()[1].split()[:3])
    return text + data, data + zero


def test_every_board_has_a_machine_memory_and_a_source() -> None:
    assert len({b.name for b in BOARDS}) == len(BOARDS) >= 10
    assert all(b.machine in MACHINES and b.ram and b.flash and b.source for b in BOARDS)
    assert list(BOARDS) == sorted(BOARDS, key=lambda b: b.ram)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", SMALL)
def test_a_board_is_judged_with_the_object_of_its_own_processor(model: str, tmp_path: pathlib.Path) -> None:
    traced = on_host(model).traced
    judged = {b.core: b for b in judge_boards(on_host(model))}
    assert judged.keys() == set(MACHINE_NAMES)
    flashes = set()
    for name, board in judged.items():
        machine = MACHINES[name].target
        if not machine.has_object_code:
            continue
        own = traced.lower(tosaic.CompileOptions(machine))
        flash, variables = measured(own, tmp_path / name)
        stack = own.save(tmp_path / name).stack
        assert stack is not None and not board.note
        lines = {line.memory: line.nbytes for line in board.memories}
        io = sum(b.nbytes for b in (*own.program.inputs, *own.program.outputs))
        assert lines == {"flash": flash, "RAM": own.plan.size_bytes + variables + io + stack.whole.nbytes,
                         "stack": stack.whole.nbytes}
        flashes.add(flash)
    assert len(flashes) > 3  # processors differ in their code


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", ["corpus/v_lstm", "corpus/f_conv_bn_relu_pool_int8", "corpus/f_attention_block",
                                   by_rows(40, 3)])
def test_machines_that_lowering_does_not_tell_apart_have_the_same_loops(model: str) -> None:
    traced = on_host(model).traced
    texts: dict[Any, str] = {}
    for name in MACHINE_NAMES:
        machine = MACHINES[name].target
        found = traced.lower(tosaic.CompileOptions(machine))
        text = found.show("loops", whole=True) + found.show("plan")
        assert texts.setdefault(lowering_key(machine), text) == text, name
    assert len(texts) < len(MACHINE_NAMES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", ["corpus/v_lstm", "corpus/f_mobilenet_block_int8"])
def test_what_a_board_judges_does_not_depend_on_the_machine_of_the_report(model: str) -> None:
    traced = on_host(model).traced
    answers = [judge_boards(traced.lower(tosaic.CompileOptions(target(name)))) for name in ("host", "cortex-m0", "esp32-c3")]
    assert answers[0] == answers[1] == answers[2]


def test_pools_schedules_and_threads_of_another_machine_are_not_the_boards() -> None:
    found = on_host("corpus/f_attention_block")
    pools = tosaic.Memory(pools=(tosaic.Pool("tiny", 2000), tosaic.Pool("rest")), workspace_io=False)
    options = tosaic.CompileOptions(memory=pools, threads=2, schedule=found.show("schedule"))
    assert judge_boards(found.traced.lower(options), BOARDS[:3]) == judge_boards(found, BOARDS[:3])


def test_no_code_is_compiled_where_memory_is_over_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def noted(lowered: Any) -> Any:
        compiled.append(lowered.target.cpu)
        return None

    monkeypatch.setattr("tosaic.jit.tools.report.judge_boards.object_size", noted)
    tiny, large = Board("tiny", "t", "cortex-m4", 64, 64, "-"), Board("large", "l", "cortex-m33", 1 << 20, 1 << 20, "-")
    first, _ = judge_boards(on_host("corpus/f_mobilenet_block"), (tiny, large))
    assert compiled == ["cortex-m33"] and first.note == WITHOUT_CODE and not first.fits
    assert "flash over by" in first.verdict and "RAM over by" in first.verdict


def test_the_source_for_a_processor_without_a_back_end_counts_its_constants() -> None:
    (board,) = judge_boards(on_host("corpus/v_lstm"), boards_named("ESP32-S3"))
    flash, ram = board.memories
    assert board.note == C_ONLY and board.fits and [n.what for n in flash.counted if n.nbytes] == ["constants"]
    assert ram.memory == "RAM" and ram.nbytes > 0


def test_a_program_that_a_board_cannot_have_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(lowered: Any) -> Any:
        raise tosaic.Problem("too strange")

    monkeypatch.setattr("tosaic.jit.tools.report.judge_boards.object_size", refused)
    model = on_host("corpus/v_lstm")
    found = report(model, boards=judge_boards(model, BOARDS[:1]))
    (board,) = found.boards
    assert not board.fits and board.verdict == "does not compile" and board.note == "too strange"
    assert "too strange" in page(found, "m") and "too strange" in str(found)


@pytest.mark.parametrize(("text", "names"), [("all", [b.name for b in BOARDS]), ("pico,RP2040", ["Pico"]),
                                             ("STM32F746NG, nrf52 dk", ["32F746G-Discovery", "nRF52 DK"]),
                                             ("cortex-m4", ["nRF52 DK", "Nucleo-L476RG", "nRF52840 DK"]),
                                             ("esp32-c3,rp2350", ["ESP32-C3-DevKitM-1", "Pico 2"])])
def test_boards_are_named_by_their_own_names_their_chips_or_machines(text: str, names: list[str]) -> None:
    assert [b.name for b in boards_named(text)] == names


def test_an_unknown_board_is_a_problem_that_lists_those_there_are() -> None:
    with pytest.raises(tosaic.Problem, match="there is no board Pico 9") as caught:
        boards_named("Pico,Pico 9")
    assert caught.value.kind == "option" and "nRF52840 DK" in str(caught.value.help)


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.name)
def test_a_board_and_its_chip_are_names_of_a_target(board: Board) -> None:
    machine = MACHINES[board.machine].target
    assert target(board.name) == target(board.chip.lower()) == tosaic.CompileOptions(target=board.name).target == machine


@pytest.mark.parametrize("name", [name for name in BY_ANY_NAME if MACHINES[BY_ANY_NAME[name].name].boards])
def test_every_name_of_a_target_names_boards_or_says_that_none_is_known(name: str) -> None:
    try:
        chosen = boards_named(name)
    except tosaic.Problem as problem:
        assert f"the memory of no board with {name} is known" in str(problem)
    else:
        assert {MACHINES[b.machine] for b in chosen} == {BY_ANY_NAME[name]}


def test_text_json_and_page_say_the_same_numbers() -> None:
    model = on_host("corpus/v_lstm")
    found = report(model, boards=judge_boards(model))
    text, html, facts = str(found), page(found, "lstm"), found.as_dict()["boards"]
    for board, fact in itertools.zip_longest(found.boards, facts):
        assert fact["name"] == board.name and fact["fits"] is board.fits and fact["source"]
        for line, memory in itertools.zip_longest(board.memories, fact["memories"]):
            assert memory["nbytes"] == line.nbytes and memory["over"] == line.over
            assert f"{line.nbytes:,} of {line.limit:,}" in html
            assert any(f"{line.nbytes:,}" in row and f"{line.limit:,}" in row for row in text.splitlines() if board.name in row)
    assert found.seconds["boards"] > 0
    again: Report = saved.read(json.dumps(found.as_dict()).encode(), "saved")
    assert again.boards == found.boards and page(again, "lstm") == html


@pytest.mark.parametrize(("boards", "code"), [("Teensy 4.0", 0), ("micro:bit V1", 1), ("micro:bit V1,Pico 2", 0)])
def test_the_exit_code_says_whether_it_fits_any_of_the_boards(boards: str, code: int, tmp_path: pathlib.Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.mlir"
    path.write_text(by_rows(100, 3).replace("1x100x16x8", "1x100x64x8"))  # its memory is beyond 16 KiB, and within 520
    assert main(["report", str(path), "--boards", boards]) == code
    out = capsys.readouterr().out
    assert all(name in out for name in boards.split(",")) and ("does not fit: " in out) == ("micro" in boards)


def test_a_saved_report_has_the_boards_that_were_judged(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = str(DATA / "corpus" / "v_lstm.mlir"), tmp_path / "saved.json"
    assert main(["report", model, "--boards", "Pico,Pico 2", "--json"]) == 0
    path.write_text(capsys.readouterr().out)
    assert main(["report", str(path), "--boards", "Pico"]) == 0
    out = capsys.readouterr().out
    assert "Pico" in out and "Pico 2" not in out
    assert main(["report", str(path), "--boards", "nRF52840"]) == 2
    assert "give the model" in capsys.readouterr().err
