"""The models of a firmware: read, compiled to C source, and the two files that list them for samples/firmware/wake_words.

A model is a streaming one of microWakeWord: three rows of 40 features in, a probability as a byte out; its .json names the
cutoff and the window of its detector. The word "vad" in a .json marks a model of voice activity, as in ESPHome.
"""
from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tosaic
from tosaic.jit.command_line.cli import main as command

FEATURES, ROWS = 40, 3
VOICE = "vad"


@dataclass(frozen=True)
class Model:
    """`name` in C, the `word` for people; a detector compares the mean of `window` bytes with the `cutoff` in 255ths."""
    name: str
    word: str
    config: Path
    path: Path
    cutoff: float
    window: int

    @property
    def is_voice(self) -> bool:
        """True if the model hears voice, not a word."""
        return self.word == VOICE

    @property
    def cutoff_byte(self) -> int:
        """The cutoff as ESPHome rounds it."""
        return int(self.cutoff * 255)


def read(config: Path) -> Model:
    """The model of a .json and of the .tflite that it names."""
    data = json.loads(config.read_text(encoding="utf-8"))
    path = config.parent / data["model"]
    entry = tosaic.load(path).main
    (features,), (probability,) = entry.inputs, entry.outputs
    if (features.shape, features.dtype, probability.dtype) != ((1, ROWS, FEATURES), "int8", "uint8"):
        raise SystemExit(f"{config}: a step of it is not {ROWS} rows of features in int8 to a byte in uint8")
    return Model(re.sub(r"\W", "_", config.stem), data["wake_word"], config, path, data["micro"]["probability_cutoff"],
                 data["micro"]["sliding_window_size"])


def write_sources(models: list[Model], sources: Path, headers: Path, target: str) -> None:
    """C source and header of every model, and the files that list them."""
    for model in models:
        options = ["--name", model.name, "--emit", "c", "--state", "caller", "--target", target]
        with redirect_stdout(io.StringIO()):
            status = command(["compile", str(model.path), "-o", str(sources), *options])
        if status != 0:
            raise SystemExit(f"{model.name} was not compiled")
        header = f"tosaic_{model.name}.h"
        (sources / header).replace(headers / header)
    (headers / "wake_word_models.h").write_text(header_text(models))
    (sources / "wake_word_models.c").write_text(source_text(models))


def header_text(models: list[Model]) -> str:
    """How many models there are, and the memory that they need together."""
    includes = "\n".join(f'#include "tosaic_{model.name}.h"' for model in models)
    states = "\n".join(f"    struct tosaic_{model.name}_state {model.name};" for model in models)
    workspaces = "\n".join(f"    uint8_t {model.name}[TOSAIC_{model.name.upper()}_WORKSPACE_SIZE];" for model in models)
    alignment = max_of([f"TOSAIC_{model.name.upper()}_WORKSPACE_ALIGNMENT" for model in models])
    return f"""\
/* The models of this component. */
#ifndef WAKE_WORD_MODELS_H
#define WAKE_WORD_MODELS_H

{includes}

#define WAKE_WORDS_COUNT {len(models)}
#define WAKE_WORDS_ROWS {ROWS}
#define WAKE_WORDS_FEATURES {FEATURES}
#define WAKE_WORDS_LONGEST_WINDOW {max(model.window for model in models)}

struct wake_words_states {{
{states}
}};

/* The models take turns in one workspace: it is as large as the largest. */
union wake_words_workspace {{
{workspaces}
}};
#define WAKE_WORDS_WORKSPACE_ALIGNMENT {alignment}

#endif
"""


def max_of(macros: list[str]) -> str:
    """The largest of some macros, as a constant expression of C."""
    first, *rest = macros
    return f"({first} > {max_of(rest)} ? {first} : {max_of(rest)})" if rest else first


def source_text(models: list[Model]) -> str:
    """The table of models, with the calls that run them."""
    rows = "\n".join(f'    {{"{model.word}", {model.cutoff_byte}, {model.window}, {int(model.is_voice)}, init_{model.name}, '
                     f"run_{model.name}}}, /* mean above {model.cutoff} */" for model in models)
    calls = "\n".join(calls_text(model.name) for model in models)
    return f"""\
/* The models of this component, in the order of their bits. */
#include "wake_words.h"

{calls}
const struct wake_word_model wake_word_models[WAKE_WORDS_COUNT] = {{
{rows}
}};
"""


def calls_text(name: str) -> str:
    return f"""\
static int32_t init_{name}(struct wake_words *words) {{ return tosaic_{name}_init(&words->states.{name}); }}

static int32_t run_{name}(struct wake_words *words, uint8_t *probability) {{
    const struct tosaic_{name}_inputs inputs = {{words->input[0], sizeof words->input}};
    const struct tosaic_{name}_outputs outputs = {{probability, sizeof *probability}};
    const struct tosaic_{name}_workspace_pools pools = {{&words->workspace, sizeof words->workspace}};
    return tosaic_{name}_run(&words->states.{name}, &inputs, &outputs, &pools);
}}
"""


def description(models: list[Model]) -> list[dict[str, Any]]:
    """What the ESPHome component's Python knows of them."""
    return [{"name": model.name, "index": index, "word": model.word, "cutoff": model.cutoff, "window": model.window,
             "is_voice": model.is_voice} for index, model in enumerate(models)]
