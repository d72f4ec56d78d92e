"""The state of a model as bytes: saved, loaded, refused where it is damaged or another model's."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import Artifact

from .c_programs import build, languages, needs_gcc, run, undefined
from .test_state import COUNT, SHARED, counting

pytestmark = needs_gcc
DATA = Path(__file__).parents[1] / "data"

ROUND_TRIP = '#include <stdio.h>\n#include <string.h>\n#include "tosaic_demo.h"\n' + COUNT.replace("NAME", "demo") + r"""
int main(void) {
    unsigned char bytes[TOSAIC_DEMO_STATE_SIZE + 3];
    unsigned char *state = bytes + 1; /* at any alignment */
    printf("%lld ", count_demo());
    printf("%d ", (int)tosaic_demo_save_state(state, TOSAIC_DEMO_STATE_SIZE));
    printf("%lld ", count_demo());
    printf("%d ", (int)tosaic_demo_load_state(state, sizeof bytes - 1));
    printf("%lld ", count_demo());
    tosaic_demo_reset();
    printf("%lld ", count_demo());
    return tosaic_demo_load_state(state, TOSAIC_DEMO_STATE_SIZE) || count_demo() != 7;
}"""


@languages
def test_a_state_comes_back(tmp_path: Path, language: str) -> None:
    artifact = counting(tmp_path, "demo")
    assert run(build(tmp_path, ROUND_TRIP, [artifact], language)) == b"6 0 7 0 7 6 "
    assert undefined(artifact) <= {"memcpy", "memset", "memmove"}


DAMAGED = '#include <stdio.h>\n#include <string.h>\n#include "tosaic_demo.h"\n' + COUNT.replace("NAME", "demo") + r"""
int main(void) {
    unsigned char state[TOSAIC_DEMO_STATE_SIZE];
    size_t i, refused = 0;
    if (count_demo() != 6 || tosaic_demo_save_state(state, sizeof state) || count_demo() != 7) return 1;
    printf("%d ", (int)tosaic_demo_save_state(0, sizeof state));
    printf("%d ", (int)tosaic_demo_save_state(state, sizeof state - 1));
    printf("%d ", (int)tosaic_demo_load_state(0, sizeof state));
    printf("%d ", (int)tosaic_demo_load_state(state, sizeof state - 1));
    for (i = 0; i < sizeof state; ++i) {
        state[i] ^= 0x10;
        refused += tosaic_demo_load_state(state, sizeof state) == TOSAIC_ERROR_STATE;
        state[i] ^= 0x10;
    }
    printf("%d %d", refused == sizeof state, count_demo() == 8);
    return 0;
}"""


@languages
def test_damaged_states_are_refused_and_change_nothing(tmp_path: Path, language: str) -> None:
    assert run(build(tmp_path, DAMAGED, [counting(tmp_path, "demo")], language)) == b"-1 -4 -1 -4 1 1"


KEEP = r"""
#include <stdio.h>
#include "tosaic_NAME.h"
int main(void) {
    unsigned char state[TOSAIC_MACRO_STATE_SIZE];
    int32_t code;
    if (fread(state, 1, sizeof state, stdin) == sizeof state) {
        code = tosaic_NAME_load_state(state, sizeof state);
        if (code != TOSAIC_OK) return printf("%d", (int)code) < 0;
    }
    {
        int64_t result;
        struct tosaic_NAME_outputs outputs;
        outputs.result = &result;
        outputs.result_size = sizeof result;
        if (tosaic_NAME_run(&outputs, 0)) return 2;
    }
    if (tosaic_NAME_save_state(state, sizeof state)) return 3;
    fwrite(state, 1, sizeof state, stdout);
    return 0;
}"""


def kept(folder: Path, artifact: Artifact, state: bytes) -> bytes:
    """The state after one more run, in a process of its own."""
    folder.mkdir(exist_ok=True)
    name = artifact.object.stem
    return run(build(folder, KEEP.replace("NAME", name).replace("MACRO", name.upper()), [artifact]), state)


def test_a_state_goes_from_process_to_process_but_not_to_another_model(tmp_path: Path) -> None:
    artifact, renamed = counting(tmp_path, "demo"), counting(tmp_path, "renamed", variable="total")
    states = [kept(tmp_path / "a", artifact, b"")]
    for _ in range(3):
        states.append(kept(tmp_path / "a", artifact, states[-1]))
    assert [np.frombuffer(s[8:16], np.int64)[0] for s in states] == [6, 7, 8, 9] and all(s[16:] == b"\1" for s in states)
    assert kept(tmp_path / "b", renamed, states[0]) == b"-5"


def test_the_size_of_a_state_is_in_the_header(tmp_path: Path) -> None:
    artifact = tosaic.load(DATA / "corpus/v_lstm.mlir").main.lower().save(tmp_path, "lstm")
    assert f"#define TOSAIC_LSTM_STATE_SIZE {8 + artifact.variable_bytes + 2}" in artifact.header.read_text()


def test_a_model_without_state_has_no_such_functions(tmp_path: Path) -> None:
    artifact = tosaic.load(DATA / "corpus/f_cond.mlir").main.lower().save(tmp_path, "model")
    assert "_state" not in artifact.header.read_text() and b"_state" not in artifact.object.read_bytes()


def test_a_variable_of_another_type_elsewhere_is_not_saved(tmp_path: Path) -> None:
    """The linker takes the symbols of one of the two objects, and the other one notices."""
    source = r"""
#include <stdio.h>
#include "tosaic_up.h"
extern int32_t other(void);
int main(void) {
    unsigned char state[TOSAIC_UP_STATE_SIZE];
    printf("%d %d", (int)tosaic_up_save_state(state, sizeof state), (int)other());
    return 0;
}"""
    other = r"""
#include "tosaic_down.h"
extern int32_t other(void);
int32_t other(void) {
    unsigned char state[TOSAIC_DOWN_STATE_SIZE];
    return tosaic_down_save_state(state, sizeof state);
}"""
    artifacts = [counting(tmp_path, "up", form=SHARED), counting(tmp_path, "down", dtype="int32", form=SHARED)]
    (tmp_path / "other.c").write_text(other)
    assert run(build(tmp_path, source, artifacts, flags=[str(tmp_path / "other.c")])) == b"0 -3"


@pytest.mark.parametrize("steps", [1, 3])
def test_the_state_of_a_model_goes_on_where_it_was_saved(tmp_path: Path, steps: int) -> None:
    """Run, save, run on, load, run on: the second part gives the same outputs twice."""
    tosaic.load(DATA / "corpus/v_lstm.mlir").main.lower().save(tmp_path, "lstm")
    source = r"""
#include <stdio.h>
#include <string.h>
#include "tosaic_lstm.h"
static TOSAIC_ALIGNED(TOSAIC_LSTM_WORKSPACE_ALIGNMENT) unsigned char memory[TOSAIC_LSTM_WORKSPACE_SIZE];
static float x[6] = {1, 2, 3, 4, 5, 6}, y[8], first[8];
static int step(int count) {
    const struct tosaic_lstm_inputs inputs = {x, sizeof x};
    const struct tosaic_lstm_outputs outputs = {y, sizeof y};
    const struct tosaic_lstm_workspace_pools pools = {memory, sizeof memory};
    while (count--) if (tosaic_lstm_run(&inputs, &outputs, &pools)) return 1;
    return 0;
}
int main(void) {
    unsigned char state[TOSAIC_LSTM_STATE_SIZE];
    if (step(2) || tosaic_lstm_save_state(state, sizeof state) || step(STEPS)) return 1;
    memcpy(first, y, sizeof y);
    if (step(1) || !memcmp(first, y, sizeof y)) return 2;
    if (tosaic_lstm_load_state(state, sizeof state) || step(STEPS)) return 3;
    return memcmp(first, y, sizeof y) ? 4 : 0;
}"""
    artifact = Artifact(tmp_path / "lstm.o", tmp_path / "tosaic_lstm.h", (), 0, 0)
    run(build(tmp_path, source.replace("STEPS", str(steps)), [artifact]))
