"""The engine of sample 12's firmware beside the rules of ESPHome's micro_wake_word: bytes of features, cutoffs, quiet rows, and
words that count only with a voice. Models are tables of probabilities here; nothing is compiled but the engine."""
from __future__ import annotations

import importlib
import importlib.util
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "samples" / "firmware" / "wake_words"
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STEPS = 2000

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("pymicro_wakeword") is None, reason="the extra `samples` is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="not installed: cc")]


@dataclass(frozen=True)
class Table:
    """What the rules know of a model."""
    cutoff: float
    window: int
    is_voice: bool = False

    @property
    def cutoff_byte(self) -> int:
        return int(self.cutoff * 255)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The sample's Python of ESPHome's rules."""
    monkeypatch.syspath_prepend(str(ROOT / "samples"))
    return importlib.import_module("firmware.micro_wake_word")


MODELS_HEADER = """
#include <stdint.h>
#define TOSAIC_OK 0
#define TOSAIC_ALIGNED(bytes)
#define WAKE_WORDS_COUNT {count}
#define WAKE_WORDS_ROWS 3
#define WAKE_WORDS_FEATURES 40
#define WAKE_WORDS_LONGEST_WINDOW {longest}
struct wake_words_states {{ int nothing; }};
union wake_words_workspace {{ int nothing; }};
"""

PROGRAM = """
#include <stdio.h>
#include "wake_words.h"
static unsigned bytes[WAKE_WORDS_COUNT];
static int32_t init(struct wake_words *words) {{ (void)words; return TOSAIC_OK; }}
{runs}
const struct wake_word_model wake_word_models[WAKE_WORDS_COUNT] = {{{rows}}};
static struct wake_words words;

int main(void) {{
    static const uint16_t features[WAKE_WORDS_FEATURES];
    uint32_t heard;
    int row = 0, model;
    wake_words_init(&words);
    {before}
    while (1) {{
        for (model = 0; model < WAKE_WORDS_COUNT; ++model)
            if (scanf("%u", &bytes[model]) != 1) return 0;
        for (int i = 0; i < WAKE_WORDS_ROWS; ++i, ++row) {{
            if (wake_words_feed(&words, features, &heard) != TOSAIC_OK) return 1;
            if (heard | words.blocked) printf("%d %u %u\\n", row, (unsigned)heard, (unsigned)words.blocked);
        }}
    }}
}}
"""
RUN = """static int32_t run_{i}(struct wake_words *words, uint8_t *byte) {{
    (void)words;
    *byte = (uint8_t)bytes[{i}];
    return TOSAIC_OK;
}}
"""


def build(folder: Path, tables: list[Table], before: str = "") -> Path:
    """The engine with these models, as a program that reads their bytes and prints rows with the words heard and blocked."""
    header = MODELS_HEADER.format(count=len(tables), longest=max(table.window for table in tables))
    (folder / "wake_word_models.h").write_text(header)
    rows = ", ".join(f'{{"{i}", {table.cutoff_byte}, {table.window}, {int(table.is_voice)}, init, run_{i}}}'
                     for i, table in enumerate(tables))
    runs = "".join(RUN.format(i=i) for i in range(len(tables)))
    (folder / "main.c").write_text(PROGRAM.format(runs=runs, rows=rows, before=before))
    command = ["cc", *FLAGS, f"-I{folder}", f"-I{ENGINE}", str(folder / "main.c"), str(ENGINE / "wake_words.c"), "-o",
               str(folder / "program")]
    subprocess.run(command, check=True)
    return folder / "program"


def heard(program: Path, probabilities: np.ndarray) -> list[tuple[int, ...]]:
    text = "\n".join(" ".join(map(str, row)) for row in probabilities.tolist())
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def expected(rules: Any, tables: list[Table], probabilities: np.ndarray) -> list[tuple[int, ...]]:
    return [(event.row, event.heard, event.blocked) for event in rules.events(tables, probabilities)]


def spoken(chance: random.Random, cutoff: int) -> list[int]:
    """Bytes in phases: silence, a word, and what is about as likely as the cutoff."""
    found: list[int] = []
    while len(found) < STEPS:
        low, high = chance.choice([(0, cutoff // 2), (cutoff, 255), (max(cutoff - 3, 0), min(cutoff + 3, 255)), (0, 255)])
        found += [chance.randint(min(low, high), max(low, high)) for _ in range(chance.choice([1, 2, 5, 12, 50]))]
    return found[:STEPS]


def test_every_feature_becomes_the_byte_of_esphome(rules: Any, tmp_path: Path) -> None:
    loop = "for (uint32_t i = 0; i < 65536; ++i) printf(\"%d 0 0\\n\", wake_words_quantize((uint16_t)i));"
    found = [byte for byte, *_ in heard(build(tmp_path, [Table(0.5, 5)], loop), np.zeros((0, 1), int))]
    bytes_of_esphome = [max(-128, min(127, (feature * 256 + 666 // 2) // 666 - 128)) for feature in range(65536)]
    assert found == bytes_of_esphome == rules.quantized(np.arange(65536, dtype=np.uint16)).tolist()
    assert sum(found[feature] != max(-128, min(127, round(feature / 25.6 / 0.10196078568696976 - 128)))
               for feature in range(671)) == 282, "of okay_nabu's own scale"


def test_every_percentage_is_a_cutoff_as_esphome_rounds_it(rules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "samples"))
    models = importlib.import_module("firmware.models")
    for percent in range(101):
        model = models.Model("word", "Word", Path("word.json"), Path("word.tflite"), percent / 100, 5)
        assert model.cutoff_byte == int(percent / 100 * 255)
        assert f'{{"Word", {int(percent / 100 * 255)}, 5, 0, init_word, run_word}}' in models.source_text([model])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("window", [1, 5])
def test_a_word_is_heard_from_one_above_every_cutoff(tmp_path: Path, window: int, more: int) -> None:
    """After silence, the sum of a window is the cutoff's, or one more. A program has 25 percentages."""
    for first in range(1, 101, 25):
        tables = [Table(percent / 100, window) for percent in range(first, first + 25)]
        bytes_of_word = np.array([[table.cutoff_byte] * window for table in tables]).T
        bytes_of_word[0] = np.minimum(bytes_of_word[0] + more, 255)
        found = heard(build(tmp_path, tables), np.concatenate([np.zeros((40, 25), int), bytes_of_word]))
        bits = sum(more << i for i, table in enumerate(tables) if table.cutoff_byte < 255)
        assert found == ([(3 * (40 + window) - 1, bits, 0)] if bits else [])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(12))
def test_words_and_voices_are_heard_in_the_rows_of_esphome(rules: Any, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tables = [Table(chance.randint(0, 100) / 100, chance.choice([1, 2, 3, 5, 10])) for _ in range(chance.choice([1, 2, 4]))]
    if seed % 3:
        tables.insert(chance.randint(0, len(tables)), Table(chance.randint(5, 95) / 100, chance.choice([1, 5, 30]), True))
    probabilities = np.array([spoken(chance, table.cutoff_byte) for table in tables]).T
    events = expected(rules, tables, probabilities)
    assert heard(build(tmp_path, tables), probabilities) == events
    assert len(events) > 3 and (seed % 3 == 0 or any(blocked for *_, blocked in events))


def test_quiet_ends_between_steps_as_in_esphome(rules: Any, tmp_path: Path) -> None:
    """89 rows pass in silence, none in the word, then one in each row whose last byte is below the cutoff: 108 is the
    hundredth."""
    table = Table(0.5, 5)
    probabilities = np.array([0] * 29 + [255] * 3 + [126] * 6)[:, None]
    found = heard(build(tmp_path, [table]), probabilities)
    assert found == expected(rules, [table], probabilities) == [(108, 1, 0)]


WORD, VOICE = Table(0.9, 1), Table(0.5, 5, True)


def test_a_blocked_word_is_heard_as_soon_as_a_voice_is(rules: Any, tmp_path: Path) -> None:
    words, voices = [0] * 40 + [255] * 8, [0] * 44 + [255] * 4
    probabilities = np.array([words, voices]).T
    above = 44 + 127 * 5 // 255  # the step whose sum of bytes passes 127 x 5
    found = heard(build(tmp_path, [WORD, VOICE]), probabilities)
    assert found == [*((3 * step + 2, 0, 1) for step in range(40, above)), (3 * above + 2, 1, 0)]
    assert found == expected(rules, [WORD, VOICE], probabilities)


def test_a_voice_that_is_not_enabled_blocks_nothing(tmp_path: Path) -> None:
    probabilities = np.array([[0] * 40 + [255] * 8, [0] * 48]).T
    program = build(tmp_path, [WORD, VOICE], "wake_words_enable(&words, 1, 0);")
    assert heard(program, probabilities) == [(3 * 40 + 2, 1, 0)]
