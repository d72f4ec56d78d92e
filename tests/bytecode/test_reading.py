"""MLIR bytecode as the TFLite converter writes it: the same graph as its text, and `Unreadable` for anything else."""
from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tosaic
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.jit.models.tflite import from_tflite
from tosaic.lowering.bytecode import attributes
from tosaic.lowering.bytecode.reader import read_module
from tosaic.lowering.bytecode.sections import Cursor, Unreadable
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.operator import UnknownOp
from tosaic.lowering.graph.types import I1, TensorType
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module as read_text

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
UNKNOWN = {"f_cond": "tf.If", "f_while_in_cond": "tf.If", "f_lstm_keras": "tfl.slice"}
"""Graphs in which the converter leaves an operator that is not TOSA's."""
REFUSED = ("f_strided_slice", "v_assign_in_cond", "v_counter_three_functions")
"""Graphs that it cannot convert as a whole."""
NAMES = sorted(p.stem for p in CORPUS.glob("*.tflite") if p.stem not in REFUSED)


def bytecode(name: str) -> bytes:
    pytest.importorskip("tosa_converter_for_tflite")
    with from_tflite.converted([(CORPUS / f"{name}.tflite").read_bytes()], name, "Bytecode", 60) as result:
        return result.read_bytes()


@pytest.fixture(scope="module")
def lstm() -> bytes:
    return bytecode("v_lstm")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in UNKNOWN])
def test_bytecode_and_text_are_the_same_graph(name: str) -> None:
    module = read_module(memoryview(bytecode(name)), name)
    text = read_text(from_tflite.mlir_of_tflite((CORPUS / f"{name}.tflite").read_bytes(), name), name)
    assert print_module(module, elide=None) == print_module(text, elide=None)


@pytest.mark.parametrize("name", [n for n in NAMES if n in UNKNOWN])
def test_an_operator_that_is_not_known_is_left_to_the_text(name: str) -> None:
    with pytest.raises(Unreadable, match=UNKNOWN[name]):
        read_module(memoryview(bytecode(name)), name)
    text = from_tflite.mlir_of_tflite((CORPUS / f"{name}.tflite").read_bytes(), name)
    assert UNKNOWN[name] in {o.op.spelling for f in read_text(text, name).functions for o in f.body.walk()
                             if isinstance(o.op, UnknownOp)}


def test_constants_are_views_of_the_bytes_if_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "SMALL", 100)
    data = np.frombuffer(bytecode("f_attention_block"), np.uint8)
    module = read_module(memoryview(data))  # type: ignore[arg-type]
    constants = [v.constant for f in module.functions for o in f.body.walk() for v in o.results if v.constant is not None]
    large = [c for c in constants if c.nbytes >= 100]
    assert large and all(np.shares_memory(c, data) and not c.flags.writeable for c in large)
    assert not any(np.shares_memory(c, data) for c in constants if c.nbytes < 100)


def test_operations_say_where_they_are(lstm: bytes) -> None:
    module = read_module(memoryview(lstm), "m.tflite")
    first = module.functions[0].body.operations[0]
    assert str(first.position) == f"m.tflite: function main, operation 0 {first.op.name}"


def test_bytes_that_are_cut_off_or_changed_are_unreadable_or_another_graph(lstm: bytes) -> None:
    for end in range(0, len(lstm), 97):
        with pytest.raises(Unreadable):
            read_module(memoryview(lstm[:end]))
    rng = np.random.default_rng(3)
    for at in [*range(64), *rng.integers(0, len(lstm), 300).tolist()]:
        changed = bytearray(lstm)
        changed[at] ^= int(rng.integers(1, 256))
        with suppress(Unreadable, tosaic.Problem):
            assert isinstance(read_module(memoryview(bytes(changed))), Module)


# ---- numbers ---------------------------------------------------------------------------------------------------------
def encoded(value: int) -> bytes:
    """A number in as few bytes as it takes: the zeros below the lowest set bit count those behind the first."""
    for count in range(1, 9):
        if value < 1 << (7 * count):
            return (((value << 1) | 1) << (count - 1)).to_bytes(count, "little")
    return b"\0" + value.to_bytes(8, "little")


@settings(derandomize=True, max_examples=200)
@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 300)))
def test_numbers_of_every_length(values: list[int]) -> None:
    cursor = Cursor(memoryview(b"".join(map(encoded, values))))
    assert [cursor.number() for _ in values] == values and cursor.is_at_end


@pytest.mark.parametrize(("value", "meant"), [(0, 0), (1, -1), (2, 1), (3, -2), (127, -64), ((1 << 64) - 1, -(1 << 63))])
def test_signs_are_the_lowest_bit(value: int, meant: int) -> None:
    assert Cursor(memoryview(encoded(value))).signed() == meant


@pytest.mark.parametrize("size", [1, 3, 8, 9, 144])
def test_booleans_are_a_byte_each_or_eight_to_a_byte(size: int) -> None:
    """Older versions of MLIR pack them; both sizes are read, and one byte for all that are alike."""
    mask, type = np.arange(size) % 3 == 0, TensorType((size,), I1)
    for raw in (mask.astype(np.uint8).tobytes(), np.packbits(mask, bitorder="little").tobytes()):
        if len(raw) > 1 or size == 1 or raw not in (b"\0", b"\xFF"):
            assert attributes.elements(memoryview(raw), type).tolist() == mask.tolist()
    assert attributes.elements(memoryview(b"\xFF"), type).all()
    assert not attributes.elements(memoryview(b"\0"), type).any()
    with pytest.raises(Unreadable, match="another size"):
        attributes.elements(memoryview(bytes(size + 1)), type)
