"""The models of a firmware: read, compiled to C source, and the two files that list them for samples/firmware/wake_words.

A model is a streaming one of microWakeWord: three rows of 40 features in, a probability as a byte out; its .json names the
cutoff and the window of its detector.
"""
from __future__ import annotations

import io
import json
import math
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import tosaic
from tosaic.jit.command_line.cli import main as command

FEATURES, ROWS = 40, 3
FEATURE_UNIT = 10 / 256  # of the front end's integers, in the floats that models are trained with
SCALE_BITS = 21          # of the product that quantises a feature: 1023 x 0.39 x 2^21 < 2^32


@dataclass(frozen=True)
class Model:
    """`name` in C, the `word` for people; `least_sum` of the bytes of a `window` is the least whose mean is above `cutoff`."""
    name: str
    word: str
    config: Path
    path: Path
    cutoff: float
    window: int
    scale: float
    zero_point: int
    output_scale: float

    @property
    def least_sum(self) -> int:
        return math.floor(Fraction(str(self.cutoff)) * self.window / Fraction(self.output_scale)) + 1


def read(config: Path) -> Model:
    """The model of a .json and of the .tflite that it names."""
    data = json.loads(config.read_text(encoding="utf-8"))
    path = config.parent / data["model"]
    entry = tosaic.load(path).main
    (features,), (probability,) = entry.inputs, entry.outputs
    if features.shape != (1, ROWS, FEATURES) or probability.zero_point != 0:
        raise SystemExit(f"{config}: a step of it is not {ROWS} rows of features to a byte whose 0 is 0")
    return Model(re.sub(r"\W", "_", config.stem), data["wake_word"], config, path, data["micro"]["probability_cutoff"],
                 data["micro"]["sliding_window_size"], features.scale, features.zero_point, probability.scale)


def write_sources(models: list[Model], sources: Path, headers: Path, target: str) -> None:
    """C source and header of every model, and the files that list them."""
    if len({(model.scale, model.zero_point) for model in models}) != 1:
        raise SystemExit("models whose features are quantised differently do not share a component")
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
    scale = round(FEATURE_UNIT / models[0].scale * 2 ** SCALE_BITS)
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

/* A feature times the scale, shifted by the bits, plus the zero point, is what the models take. */
#define WAKE_WORDS_SCALE {scale}u
#define WAKE_WORDS_SCALE_BITS {SCALE_BITS}
#define WAKE_WORDS_ZERO_POINT ({models[0].zero_point})

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
    rows = "\n".join(f'    {{"{model.word}", {model.least_sum}, {model.window}, init_{model.name}, run_{model.name}}},'
                     f" /* mean above {model.cutoff} */" for model in models)
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
             "scale": model.output_scale} for index, model in enumerate(models)]
