"""Wake-word models side by side in one program, on a hundred steps of real sound: each instance hears what it would hear alone.
As objects on this machine and on an emulated Cortex-M4; as C source on this machine under sanitizers, and on an emulated Xtensa
core."""
from __future__ import annotations

import functools
import importlib.resources
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import Artifact
from tosaic.jit.models.model import Model
from tosaic.lowering.graph.types import Array
from tosaic.runtime.variables import Context

from ..c_source.boards import LIBGCC, LX106
from .c_programs import sections, writable
from .machines import HOST, MACHINES, Machine, needs

pytest.importorskip("pymicro_wakeword")
pytest.importorskip("pymicro_features")
pytest.importorskip("tosa_converter_for_tflite")

SOUNDS = Path(__file__).parents[2] / "samples" / "sounds"
STEPS = 100
SCALE, ZERO_POINT, CHUNK = 0.10196078568696976, -128, 320


@dataclass(frozen=True)
class Way:
    """A machine, and what it is given: objects, or C source that it compiles with these flags."""
    machine: Machine
    emit: str = "object"
    flags: tuple[str, ...] = ()
    libraries: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.machine.name} {self.emit}"


WAYS = [*(Way(m) for m in MACHINES if m.name in ("host", "cortex-m4")),
        Way(HOST, "c", ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")), Way(LX106, "c", (), (LIBGCC,))]


def ways(*names: str) -> pytest.MarkDecorator:
    """Those of the ways with these names; each is in two tests at least."""
    return pytest.mark.parametrize("way", [pytest.param(w, marks=needs(w.machine), id=w.name) for w in WAYS if w.name in names])


def model(name: str) -> Model:
    return tosaic.load((importlib.resources.files("pymicro_wakeword") / "models" / f"{name}.tflite").read_bytes())


@functools.cache
def heard(name: str) -> Array:
    """The inputs of the steps of a sound: int8[100, 1, 3, 40], with silence before and behind the words."""
    from pymicro_features import MicroFrontend
    with wave.open(str(SOUNDS / f"{name}.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    frontend, rows = MicroFrontend(), []
    data = np.concatenate([np.zeros(16000, np.int16), samples, np.zeros(48000, np.int16)]).tobytes()
    while len(rows) < 3 * STEPS:
        output = frontend.process_samples(data[:CHUNK])
        data = data[2 * output.samples_read:]
        rows += [output.features] * bool(output.features)
    quantised = np.clip(np.round(np.array(rows) / SCALE) + ZERO_POINT, -128, 127)
    return quantised.astype(np.int8).reshape(STEPS, 1, 3, 40)


def answers(steps: Sequence[tuple[tosaic.Compiled, Array]]) -> str:
    """What Python gets, call by call."""
    return "".join(f"{np.asarray(call(x)).tobytes().hex()}\n" for call, x in steps)


@functools.cache
def alone(name: str, sound: str, late: int = 0) -> list[str]:
    """What a model hears of a sound that comes so many steps late."""
    call = model(name).main.compile(context=Context(name))
    return answers([(call, x) for x in np.roll(heard(sound), late, axis=0)]).splitlines()


def woken(lines: Sequence[str]) -> bool:
    """True if the model is sure that it has heard its word."""
    return max(int(line, 16) for line in lines) > 230


FRAME = """#include "console.h"
static void hex(unsigned value) {
    char text[4] = {0};
    text[0] = "0123456789abcdef"[value / 16];
    text[1] = "0123456789abcdef"[value % 16];
    text[2] = '\\n';
    console_write(text);
}
"""

STEP = """
#include "tosaic_NAME.h"
static int step_NAME(STATE_PARAMETERconst int8_t *x) {
    static TOSAIC_ALIGNED(TOSAIC_UPPER_WORKSPACE_ALIGNMENT) unsigned char memory[TOSAIC_UPPER_WORKSPACE_SIZE];
    uint8_t y;
    const struct tosaic_NAME_inputs inputs = {x, TOSAIC_UPPER_INPUT_INPUT_AUDIO_SIZE};
    const struct tosaic_NAME_outputs outputs = {&y, sizeof y};
    const struct tosaic_NAME_workspace_pools pools = {memory, sizeof memory};
    const int32_t code = tosaic_NAME_run(STATE_ARGUMENT&inputs, &outputs, &pools);
    if (code == TOSAIC_OK) hex(y);
    return (int)code;
}
"""


def step(name: str, parameter: str = "", argument: str = "") -> str:
    text = STEP.replace("STATE_PARAMETER", parameter).replace("STATE_ARGUMENT", argument)
    return text.replace("UPPER", name.upper()).replace("NAME", name)


def heard_by(way: Way, folder: Path, artifacts: Sequence[Artifact], functions: str, body: str,
             *sounds: Array) -> list[str]:
    """The lines of a program that makes `body` of each step's inputs, x0 and so on."""
    arrays = "".join(f"static const int8_t sound{i}[{s.size}] = {{{', '.join(map(str, s.ravel().tolist()))}}};\n"
                     for i, s in enumerate(sounds))
    inputs = "".join(f"        const int8_t *x{i} = sound{i} + 120 * i;\n" for i in range(len(sounds)))
    loop = f"    for (i = 0; i < {STEPS}; ++i) {{\n{inputs}        if ({body}) return 1;\n    }}\n"
    main = f"int main(void) {{\n    int i;\n{loop}    return 0;\n}}\n"
    (folder / "main.c").write_text(FRAME + functions + arrays + main)
    sources = [folder / "main.c", *(a.object for a in artifacts), *way.libraries]
    return way.machine.run(way.machine.build(folder, sources, way.flags)).splitlines()


def saved(way: Way, folder: Path, name: str, of: str, **how: str) -> Artifact:
    target = tosaic.target("any" if way.machine is HOST and way.emit == "c" else way.machine.target)
    return model(of).save(folder, name, tosaic.CompileOptions(target), emit=way.emit, **how)


@pytest.mark.sampled(4)
@ways("host object", "cortex-m4 object", "lx106 c")
def test_two_instances_of_one_model_and_another_model_hear_for_themselves(way: Way, tmp_path: Path) -> None:
    artifacts = [saved(way, tmp_path, name, of) for name, of in (("first", "okay_nabu"), ("second", "okay_nabu"),
                                                                       ("alexa", "alexa"))]
    assert way.emit == "c" or all(s.nbytes == 0 for a in artifacts for s in sections(a.object) if s.is_initialised)
    nabu, other = heard("okay_nabu"), heard("alexa")
    lines = heard_by(way, tmp_path, artifacts, "".join(map(step, ("first", "second", "alexa"))),
                     "step_first(x0) || step_second(x1) || step_alexa(x1)", nabu, other)
    expected = alone("okay_nabu", "okay_nabu"), alone("okay_nabu", "alexa"), alone("alexa", "alexa")
    assert lines == [line for step in zip(*expected) for line in step]
    assert [woken(one) for one in expected] == [True, False, True]


@pytest.mark.sampled(4)
@ways("host c", "cortex-m4 object")
def test_instances_in_one_namespace_hear_as_one(way: Way, tmp_path: Path) -> None:
    """As two programs in one context of Python do; another model stands beside them. Steps go to one and the other in turn."""
    artifacts = [saved(way, tmp_path, "first", "okay_nabu", namespace="ear"),
                 saved(way, tmp_path, "second", "okay_nabu", namespace="ear"), saved(way, tmp_path, "alexa", "alexa")]
    nabu, other = heard("okay_nabu"), heard("alexa")
    lines = heard_by(way, tmp_path, artifacts, "".join(map(step, ("first", "second", "alexa"))),
                     "(i % 3 ? step_first(x0) : step_second(x0)) || step_alexa(x1)", nabu, other)
    context = Context("ear")
    both = [model("okay_nabu").main.compile(context=context) for _ in range(2)]
    shared = answers([(both[i % 3 == 0], x) for i, x in enumerate(nabu)]).splitlines()
    assert lines[::2] == shared == alone("okay_nabu", "okay_nabu") and lines[1::2] == alone("alexa", "alexa")
    assert woken(shared)


@pytest.mark.sampled(2)
@ways("host object", "cortex-m4 object", "host c", "lx106 c")
def test_three_instances_of_one_object_hear_for_themselves(way: Way, tmp_path: Path) -> None:
    artifact = saved(way, tmp_path, "ear", "okay_nabu", state="caller")
    assert way.emit == "c" or writable(artifact.object) == []
    nabu, other = heard("okay_nabu"), heard("alexa")
    late = np.roll(nabu, 7, axis=0)
    functions = step("ear", "struct tosaic_ear_state *state, ", "state, ") + "static struct tosaic_ear_state states[3];\n"
    lines = heard_by(way, tmp_path, [artifact], functions,
                     "step_ear(states, x0) || step_ear(states + 1, x1) || step_ear(states + 2, x2)", nabu, other, late)
    expected = [alone("okay_nabu", "okay_nabu"), alone("okay_nabu", "alexa"), alone("okay_nabu", "okay_nabu", late=7)]
    assert lines == [line for step in zip(*expected) for line in step]
    assert [woken(one) for one in expected] == [True, False, True]
