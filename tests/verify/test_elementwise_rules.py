"""Every rule of the elementwise operators, comparisons, activations and reductions of TOSA 1.0, broken."""
from __future__ import annotations

import pytest

from .graphs import assert_refused, changed
from .legal import ALL, BIT_PAIRS, BOOL_PAIRS, COMPARISONS, FLOAT_UNARIES, I32_PAIRS

PAIRS = (*I32_PAIRS, *BIT_PAIRS, *BOOL_PAIRS, *COMPARISONS, "arithmetic_right_shift", "pow", "mul")
UNARIES = (*FLOAT_UNARIES, "abs", "bitwise_not", "clz", "logical_not", "clamp", "negate", "table")
REDUCTIONS = ("reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_product", "reduce_sum")
NAN_MODES = ("argmax", "max_pool2d", "clamp", "reduce_max", "reduce_min")

RULES = [
    *((name, " 2x1x", " 3x1x", "do not broadcast: 2 and 3") for name in PAIRS),
    *((name, " 2x1x", " 1x2x1x", "have ranks 2 and 3") for name in PAIRS),
    *((name, "-> 2x3x", "-> 2x4x", "but tensor<2x4x") for name in PAIRS),
    *((name, "-> 2x3x", "-> 2x1x", "but tensor<2x1x") for name in (*PAIRS, "select")),
    *((name, "-> 2x3x", "-> 2x4x", "but tensor<2x4x") for name in (*UNARIES, "cast", "rescale", "identity", "const")),
    *((name, "-> 2x3x", "-> 6x", "but tensor<6x") for name in (*UNARIES, "cast", "rescale", "identity", "const")),
    *((name, "axis = 1", "axis = 3", "axis 3 is outside the 3 axes") for name in REDUCTIONS),
    *((name, "axis = 1", "axis = -1", "axis -1 is outside the 3 axes") for name in REDUCTIONS),
    *((name, "-> 4x1x2x", "-> 4x3x2x", "but tensor<4x3x2x") for name in REDUCTIONS),
    *((name, "-> 4x1x2x", "-> 4x2x", "but tensor<4x2x") for name in REDUCTIONS),
    ("add", " 2x1xi32", "", "does not take 1 operands"),
    ("add", " 2x1xi32", " 2x1xi32 2x1xi32", "does not take 3 operands"),
    ("add", " 2x1xi32", " 2x1xf32", "takes operands of one type, not i32 and f32"),
    ("add", "-> 2x3xi32", "->", "has 1 results, 0 are declared"),
    ("add", "-> 2x3xi32", "-> 2x3xi32 2x3xi32", "has 1 results, 2 are declared"),
    ("add", "-> 2x3xi32", "-> 2x3xf32", "but tensor<2x3xf32> is declared"),
    ("add", " 2x1xi32", " [2,1]", "an operand must be a tensor, not !tosa.shape<2>"),
    ("mul", "1xi8=63", "1xi8=64", "must be in 0..63, it is 64"),
    ("mul", "1xi8=63", "1xi8=-1", "must be in 0..63, it is -1"),
    ("mul", "1xi8=63", "1xi32=1", "the shift must be i8"),
    ("mul", "1xi8=63", "i8=1", "the shift must have one element"),
    ("mul", "1xi8=63", "2xi8=1", "the shift must have one element"),
    ("mul", "1xi8=63", "", "does not take 2 operands"),
    ("mul i8", "1xi8=0", "1xi8=1", "the shift of products of i8 must be in 0..0, it is 1"),
    ("negate i16", "1xi16=0 1xi16=0", "1xi16=5 1xi16=0", "input1_zp must be 0 for i16"),
    ("negate i16", "1xi16=0 1xi16=0", "1xi16=0 1xi16=5", "output_zp must be 0 for i16"),
    ("negate", "1xi8=-3", "1xi16=-3", "output_zp must be i8"),
    ("negate", "1xi8=3 1xi8=-3", "1xi8=3", "does not take 2 operands"),
    ("clamp", "min_val = -1 : i8", "min_val = 2 : i8", "min_val 2 is above max_val 1"),
    ("clamp f32", "min_val = -1.0 : f32", "min_val = 0x7FC00000 : f32", "must be numbers"),
    ("clamp f32", "max_val = 1.0 : f32", "max_val = 0x7FC00000 : f32", "must be numbers"),
    ("clamp f32", "max_val = 1.0 : f32", "max_val = -1.5 : f32", "min_val -1.0 is above max_val -1.5"),
    ("table i8", "256xi8", "256xi16", "holds i8, not i16"),
    ("select", "1x3xi1", "1x3xi8", "the condition must be i1"),
    ("select", "1x3xi1", "1x2xi1", "do not broadcast: 2 and 3"),
    ("select", "1x3xi1", "3xi1", "have ranks 1 and 2"),
    ("select", "2x1xi8", "2x1xi16", "takes operands of one type, not i8 and i16"),
    ("select", "2x1xi8", "3x1xi8", "do not broadcast: 2 and 3"),
    ("select", "1x3xi1", "", "does not take 2 operands"),
]


@pytest.mark.parametrize(("name", "old", "new", "words"), RULES)
def test_a_broken_rule_of_an_elementwise_operator_is_named(name: str, old: str, new: str, words: str) -> None:
    assert_refused(changed(ALL[name], old, new), words)


@pytest.mark.parametrize(("count", "element"), [(255, "i8"), (257, "i8"), (513, "i8"), (512, "i16"), (256, "i16")])
def test_a_table_of_another_length_is_refused(count: int, element: str) -> None:
    entries = 256 if element == "i8" else 513
    result = "i8" if element == "i8" else "i32"
    assert_refused(f"table 2x3x{element} {count}x{element}=0 -> 2x3x{result}", f"has {entries} entries, not {count}")


@pytest.mark.parametrize("name", NAN_MODES)
def test_a_nan_mode_that_is_none_is_refused(name: str) -> None:
    line = ALL[name].replace("<PROPAGATE>", "<UNKNOWN>").replace("<IGNORE>", "<UNKNOWN>")
    assert_refused(line, "must be PROPAGATE or IGNORE")
