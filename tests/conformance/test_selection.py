"""The compact selection of conformance tests, on names alone: nothing of Arm's is needed."""
from __future__ import annotations

import random
import re
from pathlib import Path

from .selection import KINDS_FOR_CI, LARGE, LARGE_FOR_CI, MIXES, NEW_OPERATORS, Selection, elements, kind
from .suite import choose

SUITE = Selection("1.0")
FOR_CI = Selection("1.0", is_for_ci=True)
ADD = ["add_3x4_f32", "add_0_f32", "add_3x4_f32_fs", "add_3x4_f16", "add_9x9_i32", "add_ERRORIF_WrongRank_3x4_f32",
       "add_ERRORIF_WrongRank_5x4_f32"]


def test_of_tests_that_differ_in_shape_alone_one_is_taken() -> None:
    chosen = SUITE.choose("add", "tosa-pro-fp", ADD)
    assert sum(name in chosen for name in ("add_3x4_f32", "add_0_f32")) == 1
    assert {"add_3x4_f32_fs", "add_3x4_f16", "add_9x9_i32"} <= set(chosen)


def test_every_negative_test_is_taken() -> None:
    assert {name for name in ADD if "ERRORIF" in name} <= set(SUITE.choose("add", "tosa-pro-fp", ADD))


def test_a_small_shape_is_preferred_and_a_large_one_taken_where_there_is_no_other() -> None:
    large = [f"abs_{n}x300x300_f32" for n in range(2, 40)]
    assert SUITE.choose("abs", "tosa-pro-fp", [*large, "abs_7_f32"]) == ["abs_7_f32"]
    assert len(SUITE.choose("abs", "tosa-pro-fp", large)) == 1
    assert elements("abs_300x300_f32") > LARGE >= elements("abs_200x250_f32")


def test_the_order_of_the_names_does_not_matter() -> None:
    names = [f"sub_{n}x{m}_{t}" for n in range(9) for m in range(9) for t in ("i32", "f16", "bf16", "f32")]
    shuffled = random.Random(1).sample(names, len(names))
    assert SUITE.choose("sub", "tosa-pro-fp", names) == SUITE.choose("sub", "tosa-pro-fp", shuffled) != []


def test_types_data_sets_and_modes_tell_kinds_apart() -> None:
    convolution = "conv2d_3x3_1x9x8x7_i8xi4_acci32_st11_pad0000_dilat11_lclbnd0"
    names = [convolution, convolution + "_dyn", convolution.replace("i8xi4", "i8xi8"), convolution + "_s3", convolution + "_fs"]
    assert len({kind("conv2d", name) for name in names}) == len(names)
    assert kind("conv2d", convolution) == kind("conv2d", convolution.replace("3x3_1x9x8x7", "1x1_2x5x5x5"))
    mixed = "conv2d_1x1_15x15x30x32_f8e4m3xbs32-f8ue8m0-f8e5m2_accf32_outf16_st21_pad0011_dilat11_lclbnd1_s1"
    assert kind("conv2d", mixed) == ("f8e4m3xbs32-f8ue8m0-f8e5m2", "accf32", "outf16", "s1")
    rescale = "rescale_4x5_i8_outi16_sc1_rmS_pc0_iu0_ou0"
    others = (("sc1", "sc0"), ("rmS", "rmD"), ("pc0", "pc1"), ("iu0", "iu1"), ("i16", "i32"))
    changed = [rescale.replace(old, new) for old, new in others]
    assert len({kind("rescale", name) for name in (rescale, *changed)}) == 6


def test_mixes_of_block_scaled_types_are_thinned_to_their_share() -> None:
    names = [f"conv2d_1x1_1x2x2x{c}_i{c}" for c in range(2000)]
    kept = len(Selection("1.1").choose("conv2d", "tosa-ext-mx-int8", names)) / len(names)
    assert len(SUITE.choose("conv2d", "tosa-pro-fp", names)) == len(names)
    assert abs(kept - MIXES["conv2d"]) < 0.05


def test_the_selection_for_each_change_has_each_rule_once() -> None:
    chosen, every = FOR_CI.choose("add", "tosa-pro-fp", ADD), SUITE.choose("add", "tosa-pro-fp", ADD)
    assert set(chosen) < set(every) and len(chosen) == len(every) - 1
    names = [f"add_ERRORIF_{rule}_{n}x4_f32" for rule in ("WrongRank", "RankMismatch", "WrongInputList") for n in range(1, 9)]
    assert sorted(name.split("_")[2] for name in FOR_CI.choose("add", "tosa-pro-fp", names)) == [
        "RankMismatch", "WrongInputList", "WrongRank"]


def test_the_selection_for_each_change_has_each_type_and_each_word_and_a_share_of_the_rest() -> None:
    names = [f"resize_{n}x9_i{n % 9}_out{t}_mode{m}_s{d}"
             for n in range(90) for t in ("i8", "i16", "f16", "f32") for m in "NB" for d in range(6)]
    chosen, every = FOR_CI.choose("resize", "tosa-pro-fp", names), SUITE.choose("resize", "tosa-pro-fp", names)
    assert set(chosen) < set(every) and len(every) == 9 * 4 * 2 * 6
    words, found = ({word for name in names for word in kind("resize", name)} for names in (every, chosen))
    assert words == found
    types = {kind("resize", name)[:2] for name in every}
    assert {kind("resize", name)[:2] for name in chosen} == types
    assert abs(len(chosen) - len(types) - KINDS_FOR_CI * len(every)) < 0.05 * len(every)


def test_the_selection_for_each_change_has_a_large_test_for_its_types_alone() -> None:
    large = [f"conv2d_5x5_3x50x61x{n}_{t}x{t}_accf16_s{d}" for n in (40, 46) for t in ("f8e4m3", "f8e5m2") for d in range(6)]
    assert elements(large[0]) > LARGE > LARGE_FOR_CI
    chosen = FOR_CI.choose("conv2d", "tosa-ext-fp8e4m3", large)
    assert sorted(name.split("_")[3] for name in chosen) == ["f8e4m3xf8e4m3", "f8e5m2xf8e5m2"]
    small = [f"conv2d_5x5_1x5x6x4_f16xf16_accf16_s{d}" for d in range(6)]
    assert set(FOR_CI.choose("conv2d", "tosa-pro-fp", small + large)) == {*small, *chosen}


def test_the_selection_for_each_change_has_of_1_1_what_it_adds() -> None:
    draft = Selection("1.1", is_for_ci=True)
    assert draft.takes("dim", "tosa-pro-int") and draft.takes("add", "tosa-ext-int64")
    assert draft.takes("conv2d", "tosa-ext-mx-int8")
    assert not draft.takes("add", "tosa-pro-fp")
    names = [f"{{}}_3x3_{t}xi{n}" for n in range(9) for t in ("i8", "f16", "bf16", "f32", "i32", "i16", "b", "i64")]
    for operator in NEW_OPERATORS:
        assert draft.choose(operator, "tosa-pro-fp", [name.format(operator) for name in names])


def test_of_several_batches_of_a_folder_the_selection_for_each_change_has_each_rule_and_kind_once() -> None:
    folder = Path("operators", "ew_binary", "add")
    batches = [[f"add_{n}x4_f32", f"add_{n}x4_f16_fs", f"add_ERRORIF_WrongRank_{n}x5_f32"] for n in range(1, 5)]
    written = [folder / name for names in batches for name in FOR_CI.choose("add", "tosa-pro-fp", names)]
    assert len(written) == 12
    assert sorted(re.sub(r"\d+x\d", "", test.name) for test in choose(written, "1.0", "ci")) == [
        "add_ERRORIF_WrongRank__f32", "add__f16_fs", "add__f32"]
