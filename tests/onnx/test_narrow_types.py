"""Floats of 8 bits or fewer and integers of 4 and 2: all codes, every rounding, constants, moves, scales; against ml_dtypes,
the specification's tables, and ONNX Runtime."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tosaic

pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import TensorProto, helper, numpy_helper
from tosaic.lowering.dialects.onnx.element_types import BY_NUMBER
from tosaic.lowering.dialects.onnx.interpret import interpret
from tosaic.lowering.graph.types import Array
from tosaic.lowering.onnx.tensors import nbytes

from .models import runtime_results

FLOATS = {"float8_e4m3fnuz": 18, "float8_e5m2fnuz": 20, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "float6_e2m3fn": 27,
          "float6_e3m2fn": 28}
INTEGERS = {"uint4": 21, "int4": 22, "uint2": 25, "int2": 26}
SIGNED = [name for name in FLOATS if name != "float8_e8m0fnu"]
OPSET = 25


def model(nodes: list[Any], inputs: dict[str, tuple[int, Any]], outputs: dict[str, int], constants: Any = (), opset: int = OPSET
          ) -> Any:
    infos = [helper.make_tensor_value_info(name, number, shape) for name, (number, shape) in inputs.items()]
    results = [helper.make_tensor_value_info(name, number, None) for name, number in outputs.items()]
    graph = helper.make_graph(nodes, "narrow", infos, results, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def both(proto: Any, *arrays: Any) -> list[Array]:
    """Of both engines, which must be equal bit by bit."""
    found = tosaic.from_onnx(proto)
    compiled, [interpreted] = found(*arrays), interpret(found.module, "main", list(arrays))
    assert compiled.dtype == interpreted.dtype and compiled.shape == interpreted.shape
    assert is_same(compiled, interpreted), (compiled[compiled != interpreted], interpreted[compiled != interpreted])
    return [compiled, interpreted]


def is_same(a: Array, b: Array) -> bool:
    """Bit by bit, but that any NaN is one."""
    wide = a.dtype.kind not in "biu"
    nan = (np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))) if wide else False
    return bool((nan | (a.view(f"u{a.dtype.itemsize}") == b.view(f"u{b.dtype.itemsize}"))).all())


def cast_model(source: int, target: int, count: int, **attributes: Any) -> Any:
    return model([helper.make_node("Cast", ["x"], ["y"], to=target, **attributes)], {"x": (source, [count])}, {"y": target})


def numbers(dtype: str) -> Array:
    """All numbers of a narrow type, what lies between and beside them, and a random choice of all float32."""
    codes = np.arange(1 << (4 if "4_" in dtype else 6 if "6_" in dtype else 8)).astype(np.uint8).view(dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        real = np.unique(codes[np.isfinite(codes)])
        middle = (real[1:] + real[:-1]) / 2
        points = np.concatenate([real, middle, real * 2, middle * 1.25]).astype(np.float32)
        near = [np.nextafter(points, np.float32(t)) for t in (-np.inf, np.inf)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 20_000, np.uint32).view(np.float32)
    return np.concatenate([points, *near, random, np.float32([0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45])])


# ---- casts -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", SIGNED)
def test_floats_round_to_the_nearest_as_ml_dtypes_has_them(dtype: str, saturate: int) -> None:
    x, most = numbers(dtype), float(ml_dtypes.finfo(dtype).max)
    with np.errstate(all="ignore"):
        right = (np.clip(x, -most, most) if saturate else x).astype(dtype)
    for found in both(cast_model(1, FLOATS[dtype], len(x), saturate=saturate), x):
        assert found.dtype == right.dtype and is_same(found, right)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", ["float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2fnuz", "int32",
                                    "bool"])
def test_every_code_is_the_number_that_ml_dtypes_says(dtype: str, target: str) -> None:
    x = np.arange(1 << (4 if "4_" in dtype else 6 if "6_" in dtype else 8)).astype(np.uint8).view(dtype)
    number = next(n for n, e in BY_NUMBER.items() if e.storage == target and e.bits in (1, 8, 16, 32, 64))
    wide = x.astype(np.float32)
    if target == "int32":  # a NaN, and what no integer is, may be any
        x = x[np.abs(wide) < 2**31]
        wide = x.astype(np.float32)
    if target.startswith("float8"):
        most = float(ml_dtypes.finfo(target).max)
        wide = np.clip(wide, -most, most)
    with np.errstate(all="ignore"):
        right = wide != 0 if target == "bool" else wide.astype(target)
    for found in both(cast_model(FLOATS[dtype], number, len(x)), x):
        assert found.dtype == right.dtype and (is_same(found, right) if target != "bool" else (found == right).all())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float64", "int32", "int8", "bool", "uint8"])
@pytest.mark.parametrize("dtype", SIGNED)
def test_other_types_become_narrow_floats(dtype: str, source: str) -> None:
    random = np.random.default_rng(1)
    x = (random.normal(size=500) * 2.0 ** random.integers(-12, 10, 500)).astype(source)
    number = next(n for n, e in BY_NUMBER.items() if e.storage == source and e.bits in (1, 8, 16, 32, 64))
    most = float(ml_dtypes.finfo(dtype).max)
    right = np.clip(x.astype(np.float32), -most, most).astype(dtype)
    for found in both(cast_model(number, FLOATS[dtype], len(x)), x):
        assert is_same(found, right)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_as_onnx_runtime_has_them(saturate: int, mode: str) -> None:
    x = np.abs(numbers("float8_e8m0fnu"))
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=24, saturate=saturate, round_mode=mode),
             helper.make_node("Cast", ["y"], ["z"], to=1)]
    proto = model(nodes, {"x": (1, [len(x)])}, {"z": 1})
    right = runtime_results(proto, [x])[0]
    for found in both(proto, x):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two_of_usual_numbers_are_as_the_package_onnx_has_them(mode: str) -> None:
    """Zero, infinities and what is no normal float32 it has otherwise than the specification's table."""
    x = numbers("float8_e8m0fnu")
    x = x[(np.abs(x) >= 2.0**-126) & (np.abs(x) <= 2.0**127)]
    right = numpy_helper.to_float8e8m0(x, True, mode)
    for found in both(cast_model(1, 24, len(x), round_mode=mode), x):
        assert is_same(found, right)


def test_powers_of_two_are_those_of_the_specification() -> None:
    special = np.float32([0, np.nan, np.inf, 1.5 * 2.0**127, 2.0**-130, 1.5])
    for saturate, mode, right in ((1, "up", [0, 255, 254, 254, 0, 128]), (0, "nearest", [255, 255, 255, 255, 255, 128])):
        for found in both(cast_model(1, 24, len(special), saturate=saturate, round_mode=mode), special):
            assert found.view(np.uint8).tolist() == right


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_onnx_runtime_rounds_alike(dtype: str, saturate: int) -> None:
    x = numbers(dtype)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=FLOATS[dtype], saturate=saturate),
             helper.make_node("Cast", ["y"], ["z"], to=1)]
    proto = model(nodes, {"x": (1, [len(x)])}, {"z": 1})
    right = runtime_results(proto, [x])[0]
    for found in both(proto, x):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_few_bits_drop_the_others(dtype: str) -> None:
    x = np.arange(-300, 300)
    info = ml_dtypes.iinfo(dtype)

    def held(n: int) -> int:
        low = n % (1 << info.bits)
        return low - (1 << info.bits) if low > int(info.max) else low
    for found in both(cast_model(7, INTEGERS[dtype], len(x)), x):
        assert found.tolist() == [held(n) for n in x.tolist()]
    floats = x.astype(np.float32) * np.float32(0.75)
    for found in both(cast_model(1, INTEGERS[dtype], len(x)), floats):
        assert found.tolist() == [held(int(v)) for v in floats.tolist()]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_few_bits_are_taken_as_ml_dtypes_and_as_bytes(dtype: str) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(dtype) if dtype != "int2" else np.array([-2, -1, 0, 1, -2]).astype(dtype)
    proto = cast_model(INTEGERS[dtype], 1, len(x))
    stored = x.astype("int8" if dtype.startswith("int") else "uint8")
    for given in (x, stored):
        for found in both(proto, given):
            assert found.tolist() == stored.tolist()


@pytest.mark.parametrize("dtype", [*FLOATS, "float8_e4m3fn", "float8_e5m2"])
def test_bytes_are_taken_for_narrow_floats(dtype: str) -> None:
    x = np.array([0.5, 2, 4, 1]).astype(dtype)
    number = next(n for n, e in BY_NUMBER.items() if e.storage == dtype)
    found = tosaic.from_onnx(cast_model(number, 1, 4))
    assert found(x).tolist() == found(x.view(np.uint8)).tolist() == [0.5, 2, 4, 1]


# ---- constants -------------------------------------------------------------------------------------------------------
CONSTANTS = [(dtype, count, is_raw) for i, dtype in enumerate((*FLOATS, *INTEGERS))
             for j, count in enumerate((1, 3, 4, 5, 8, 13)) for is_raw in (False, True) if (i + j + is_raw) % 2 == 0]
"""Half of all, among them every number of elements of every type."""


@pytest.mark.parametrize(("dtype", "count", "is_raw"), CONSTANTS)
def test_constants_are_what_the_package_onnx_writes(dtype: str, count: int, is_raw: bool) -> None:
    number = (FLOATS | INTEGERS)[dtype]
    bits = next(e.bits for n, e in BY_NUMBER.items() if n == number)
    codes = np.random.default_rng(count).integers(0, 1 << bits, count).astype(np.uint8)
    signed = codes - ((codes >> (bits - 1)).astype(np.int8) << bits) if dtype.startswith("int") else codes
    x = codes.view(dtype) if dtype in FLOATS else signed.astype(dtype)
    if is_raw:
        stream = (codes[:, None] >> np.arange(bits)[None] & 1).reshape(-1)
        raw = np.packbits(stream, bitorder="little").tobytes()
        assert len(raw) == nbytes(BY_NUMBER[number], count)
        tensor = TensorProto(name="c", data_type=number, dims=[count], raw_data=raw)
    else:
        tensor = helper.make_tensor("c", number, [count], x.astype(np.float32).tolist() if dtype != "float8_e8m0fnu" else x)
    proto = model([helper.make_node("Cast", ["c"], ["y"], to=1)], {}, {"y": 1}, [tensor])
    for found in both(proto):
        np.testing.assert_array_equal(found, x.astype(np.float32))


# ---- moves -----------------------------------------------------------------------------------------------------------
MOVES: dict[str, tuple[list[tuple[str, list[str], dict[str, Any]]], dict[str, list[int]], Any]] = {
    "Identity": ([("Identity", ["x"], {})], {}, lambda x: x),
    "Transpose": ([("Transpose", ["x"], {"perm": [2, 0, 1]})], {}, lambda x: x.transpose(2, 0, 1)),
    "Reshape": ([("Reshape", ["x", "s"], {})], {"s": [4, -1]}, lambda x: x.reshape(4, -1)),
    "Squeeze": ([("Unsqueeze", ["x", "s"], {}), ("Flatten", ["t0"], {})], {"s": [1]}, lambda x: x.reshape(2, -1)),
    "Slice": ([("Slice", ["x", "a", "b", "c", "d"], {})], {"a": [1], "b": [-9], "c": [2], "d": [-1]}, lambda x: x[:, :, 1::-1]),
    "Concat": ([("Concat", ["x", "x"], {"axis": 1})], {}, lambda x: np.concatenate([x, x], 1)),
    "Gather": ([("Gather", ["x", "s"], {"axis": 1})], {"s": [2, 0, 0]}, lambda x: x[:, [2, 0, 0]]),
    "Expand": ([("Expand", ["x", "s"], {})], {"s": [2, 2, 3, 4]}, lambda x: np.broadcast_to(x, (2, 2, 3, 4))),
    "Tile": ([("Tile", ["x", "s"], {})], {"s": [1, 2, 2]}, lambda x: np.tile(x, (1, 2, 2))),
    "Pad": ([("Pad", ["x", "s"], {})], {"s": [0, 1, 0, 0, 0, 2]}, lambda x: np.pad(x, ((0, 0), (1, 0), (0, 2))))}


MOVED = [(dtype, move) for i, dtype in enumerate((*FLOATS, *INTEGERS)) for j, move in enumerate(MOVES) if (i + j) % 2 == 0]
"""Half of all, in turn from one type to the next."""


@pytest.mark.parametrize(("dtype", "move"), MOVED)
def test_elements_are_moved(dtype: str, move: str) -> None:
    steps, constants, right = MOVES[move]
    number = (FLOATS | INTEGERS)[dtype]
    bits = BY_NUMBER[number].bits
    codes = np.random.default_rng(7).integers(0, 1 << bits, (2, 3, 4)).astype(np.uint8)
    x = codes.view(dtype) if dtype in FLOATS else (codes & 1).astype(np.int8 if dtype[0] == "i" else np.uint8)
    names = [f"t{i}" for i in range(len(steps) - 1)] + ["y"]
    nodes = [helper.make_node(op, inputs, [name], **own) for (op, inputs, own), name in zip(steps, names)]
    bound = [helper.make_tensor(k, TensorProto.INT64, [len(v)], v) for k, v in constants.items()]
    for found in both(model(nodes, {"x": (number, [2, 3, 4])}, {"y": number}, bound), x):
        assert found.dtype == x.dtype and is_same(found, np.ascontiguousarray(right(x)))


def test_a_loop_and_a_branch_carry_them() -> None:
    turn = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c1"]), helper.make_node("Transpose", ["s"], ["s1"], perm=[1, 0])], "turn",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []),
         helper.make_tensor_value_info("s", 18, [3, 3])],
        [helper.make_tensor_value_info("c1", 9, []), helper.make_tensor_value_info("s1", 18, [3, 3])])
    branches = {f"{name}_branch": helper.make_graph([helper.make_node(op, ["y"], [f"z_{name}"], **own)], name, [], [
        helper.make_tensor_value_info(f"z_{name}", 18, [3, 3])])
        for name, op, own in (("then", "Transpose", {"perm": [1, 0]}), ("else", "Identity", {}))}
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=turn), helper.make_node("If", ["b"], ["z"], **branches)]
    proto = model(nodes, {"x": (18, [3, 3]), "n": (7, []), "b": (9, [])}, {"z": 18})
    x = np.arange(9).astype(np.uint8).view("float8_e4m3fnuz").reshape(3, 3)
    for n, b in ((1, True), (1, False), (2, False)):
        for found in both(proto, x, np.array(n), np.array(b)):
            assert is_same(found, np.ascontiguousarray(x.T if (n + b) % 2 else x))


# ---- scales ----------------------------------------------------------------------------------------------------------
QUANTISED = [(dtype, is_power) for i, dtype in enumerate((*SIGNED, *INTEGERS)) for is_power in (False, True)
             if (i + is_power) % 3 != 2]
"""Two thirds of all, among them every type."""


@pytest.mark.parametrize(("dtype", "is_power"), QUANTISED)
def test_numbers_are_quantised_and_come_back(dtype: str, is_power: bool) -> None:
    """By block of four along the last axis, with scales in float32 or powers of two."""
    number = (FLOATS | INTEGERS)[dtype]
    random = np.random.default_rng(3)
    x = random.normal(size=(3, 8)).astype(np.float32) * 3
    scales = 2.0 ** random.integers(-3, 3, (3, 2)) if is_power else random.uniform(0.2, 2, (3, 2))
    scale = scales.astype("float8_e8m0fnu" if is_power else np.float32)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], axis=1, block_size=4, output_dtype=number),
             helper.make_node("DequantizeLinear", ["q", "s"], ["y"], axis=1, block_size=4, output_dtype=1)]
    proto = model(nodes, {"x": (1, [3, 8]), "s": (24 if is_power else 1, [3, 2])}, {"y": 1}, opset=25)
    wide = np.repeat(scale.astype(np.float32), 4, 1)
    if dtype in FLOATS:
        most = float(ml_dtypes.finfo(dtype).max)
        steps = np.clip(x / wide, -most, most).astype(dtype).astype(np.float32)
    else:
        info = ml_dtypes.iinfo(dtype)
        steps = np.clip(np.rint(x / wide), int(info.min), int(info.max))
    for found in both(proto, x, scale):
        np.testing.assert_allclose(found, steps * wide, 1e-6)


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "int2", "uint2", "float8_e4m3fnuz"])
def test_weights_of_few_bits_are_multiplied(dtype: str) -> None:
    number = (FLOATS | INTEGERS)[dtype]
    random = np.random.default_rng(5)
    w = random.integers(0, 2, (8, 6)).astype(np.float32)
    weights = helper.make_tensor("w", number, [8, 6], w.reshape(-1).tolist())
    scale = helper.make_tensor("s", 1, [6], random.uniform(0.5, 1, 6).tolist())
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["v"], axis=1), helper.make_node("MatMul", ["x", "v"], ["y"])]
    x = random.normal(size=(4, 8)).astype(np.float32)
    found = tosaic.from_onnx(model(nodes, {"x": (1, [4, 8])}, {"y": 1}, [weights, scale]))
    right = x @ (w * np.array(scale.float_data, np.float32))
    np.testing.assert_allclose(found(x), right, 1e-5, 1e-5)
    np.testing.assert_allclose(interpret(found.module, "main", [x])[0], right, 1e-5, 1e-5)


def test_a_round_mode_that_is_none_is_refused() -> None:
    with pytest.raises(tosaic.Problem, match="round_mode sideways is not known"):
        tosaic.from_onnx(cast_model(1, 24, 3, round_mode="sideways"))(np.zeros(3, np.float32))
