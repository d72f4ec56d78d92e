"""What a negative test of the suite is about: for each rule that one breaks, how tosaic's message may begin to say so.

The rule is in a test's name (`add_ERRORIF_RankMismatch_...`). An error alone is not enough to pass: a graph that is refused
for a rank when its padding is wrong would pass for the wrong reason, so `judge.py` asks this table. A rule that is not here
fails its tests.
"""
from __future__ import annotations

import re

RULE = re.compile(r"_ERRORIF_([A-Za-z0-9]+)")

DECLARED = r"(the result|result \d+) of tosa\.\w+ is .*, but .* is declared"
"""The type rule gives another result than the file has."""

# Some graphs break a second rule by what they break the first with: a result without elements, or without whole blocks.

LEVEL = r"has rank \d+, level 8K allows"
SCALES = r"the scale of the input is .*, but .* has scales of"
YIELDED = r"number \d+ of what the (body|region for (true|false)) yields is"
ARGUMENT = r"number \d+ of the arguments of the (body|condition's region|region for (true|false)) is"

RULES = {
    "ArgmaxOutputRankMismatch": DECLARED,
    "ArgmaxOutputShapeMismatch": DECLARED,
    "AssertShapesNotEqual": r"must be equal(, or 1,)? in each extent",
    "AxisLargerRank": r"axis \d+ is outside the \d+ axes",
    "AxisSmallerZero": r"axis -\d+ is outside the \d+ axes",
    "BatchMismatch": DECLARED,
    "BorderLargerEqualMax": r"the border of the (rows|columns), \d+, is outside",
    "BorderSmallerMin": r"the border of the (rows|columns), -\d+, is outside",
    "BroadcastShapesMismatch": r"do not broadcast: \d+ and \d+",
    "ChannelMismatch": DECLARED,
    "ConcatInputDimMismatch": r"they may differ along axis \d+ only",
    "ConcatInputRankMismatch": r"the rank of operand \d+, .*, is not that of",
    "ConcatNoInputList": r"a concat needs at least one operand|at least one shape is needed",
    "ConcatShapeSumMismatch": DECLARED,
    "ConcatShapeRankZeroInput": r"a shape without extents cannot be part of another",
    "CondGraphOutputNotMatchingBool": r"what the condition's region yields must be a tensor of i1",
    "CondGraphOutputShapeNotSizeOne": r"what the condition's region yields must have one element",
    "CondIfCondNotMatchingBool": r"the condition must be a tensor of i1",
    "CondIfCondShapeNotSizeOne": r"the condition must have one element",
    "CondIfInputListElseGraphMismatch": ARGUMENT,
    "CondIfInputListThenGraphMismatch": ARGUMENT,
    "CondIfOutputListElseGraphMismatch": YIELDED,
    "CondIfOutputListThenGraphMismatch": YIELDED,
    "ConvBiasShapeMismatch": r"the bias has \d+ numbers, for \d+ output channels",
    "ConvOutputShapeMismatch": rf"{DECLARED}|out_pad .* leaves nothing of the output",
    "ConvOutputShapeNonInteger": r"the stride \d+ does not divide",
    "DilationSmallerOne": r"dilation must not be below 1",
    "DimensionMismatch": DECLARED,
    "FFTInputShapeMismatch": r"the real part is .*, the imaginary part",
    "FFTOutputShapeMismatch": DECLARED,
    "IndexOutsideBounds": r"is no order of the \d+ axes",
    "IndexUsedTwice": r"is no order of the \d+ axes",
    "InputDimensionMismatch": SCALES,
    "InputListBodyGraphInputMismatch": ARGUMENT,
    "InputListBodyGraphOutputMismatch": YIELDED,
    "InputListCondGraphMismatch": ARGUMENT,
    "InputListOutputListMismatch": DECLARED,
    "InputRank1WrongRank": r"the shift must have one element",
    "InputShapeRankMismatch": r"the shapes have \d+ and \d+ extents, not as many as each other",
    "InputSizeStartLengthMismatch": r"the (start|size) has \d+ numbers, \d+ are needed",
    "InputZeroPointNotZero": r"the zero point of the (input|first operand|second operand) must be 0|input\d?_zp must be 0",
    "KernelNotPowerOfTwo": r"must be a power of two",
    "KernelSmallerOne": r"kernel must not be below 1",
    "MatmulTBlockScaledBroadcastShapeMismatch": r"the batch of .* is neither 1 nor that of",
    "MaxDimExceeded": r"there may be \d+",
    "MaxSmallerMin": r"min_val .* is above max_val",
    "OffsetLargerEqualMax": r"the offset of the (rows|columns), \d+, is outside",
    "OffsetSmallerMin": r"the offset of the (rows|columns), -\d+, is outside",
    "OutputShapeRankMismatch": DECLARED,
    "OutputZeroPointNotZero": r"the zero point of the result must be 0|output_zp must be 0",
    "PadLargerEqualKernel": r"must be below the kernel|cuts off the whole kernel",
    "PadOutputShapeMismatch": DECLARED,
    "PadSmallerZero": r"pad(ding)? must not be (below 0|negative)",
    "PoolingOutputShapeMismatch": DECLARED,
    "PoolingOutputShapeNonInteger": r"the stride \d+ does not divide",
    "RankMismatch": rf"have ranks \d+ and \d+|{DECLARED}|{SCALES}",
    "RescaleI32InputOutputUnsigned": r"output_unsigned cannot be true",
    "RescaleI32InputUnsigned": r"input_unsigned cannot be true",
    "RescaleI32OutputInputUnsigned": r"input_unsigned cannot be true",
    "RescaleI32OutputUnsigned": r"output_unsigned cannot be true",
    "RescaleI48InputOutputUnsigned": r"output_unsigned cannot be true",
    "RescaleI48InputUnsigned": r"input_unsigned cannot be true",
    "RescaleInputUnsignedOutputUnsigned": r"input and output cannot both be unsigned",
    "RescalePerChannelRank0": r"per_channel needs a last axis",
    "ReshapeNewShapeOutputMismatch": rf"{DECLARED}|has \d+ elements, .* does not|the last extent of .* is no multiple of \d+",
    "ResizeOutputShapeMismatch": DECLARED,
    "ResizeOutputShapeNonInteger": r"is not a multiple of",
    "ScaleDLargerMax": r"the scale of the (rows|columns), .*, must be above 1/16",
    "ScaleNLargerMax": r"the scale of the (rows|columns), .*, must not have more than 2048 above",
    "ScaleNotTrue": r"DOUBLE_ROUND needs scale32",
    "ScaleSmallerEqualZero": r"the scale of the (rows|columns), .*, must be positive",
    "ScaleTrue": r"has no room for scale32",
    "ShapeOfAxisNotOne": DECLARED,
    "SizeOutputShapeMismatch": DECLARED,
    "SizeSmallerEqualZero": r"size must be positive",
    "StartSizeOutsideBounds": r"axis \d+ of .* has no \d+ elements from \d+ on|a shape of \d+ extents has no \d+ from \d+ on",
    "StartSmallerZero": r"start must not be negative",
    "StrideSmallerOne": r"stride must not be below 1",
    "TensorSizeInputOutputMismatch": DECLARED,
    "TileMultiplesOutputShapeMismatch": DECLARED,
    "TransposePermsOutputShapeMismatch": DECLARED,
    "U16InputZeroPointNotValid": r"input_zp must be 0 or 32768",
    "U16OutputZeroPointNotValid": r"output_zp must be 0 or 32768",
    "UnknownBlockSizeEnum": r"block_size of .* is \d+",
    "WeightZeroPointNotZero": r"the zero point of the weight must be 0",
    "WrongBlockSizeDimension": r"the last extent of .* is no multiple of 32",
    "WrongInputList": r"does not take \d+ operands|is 'eiDummyInput', which no tensor of the block is called|"
                      r"there is no tensor to bound|needs a shape as its last operand",
    "WrongInputShapeType": r"operand( \d+)? must be a shape",
    "WrongOutputList": r"which no tensor of the block is called|no operator produces|is produced by no operator",
    "WrongOutputShapeType": DECLARED,
    "WrongRank": rf"{LEVEL}|must have rank \d|a shape of 0 extents has no \d",
}
"""A regular expression for each rule, searched in the first line of the message."""


def rule_of(test: str) -> str | None:
    """The rule that a test of this name breaks; None: it is a positive one."""
    found = RULE.search(test)
    return found[1] if found else None


def is_about(rule: str, message: str) -> bool:
    """True if a message says what the rule is about."""
    pattern = RULES.get(rule)
    return pattern is not None and re.search(pattern, next(iter(message.splitlines()), "")) is not None
