"""Sample 17: what stands around a model, compiled with it into one function and one object.

The wake-word model `okay_nabu` takes int8 features and gives a probability as a byte. The function here takes the features
as floats, calls the model, keeps the last five probabilities in a variable, and says whether their mean is high:
quantization, model and decision are one graph, whose kernels are fused. It hears the word in the same steps as the same done
in NumPy, and is written as an object for a Cortex-M4.

    python samples/17_around_a_model.py [FOLDER]
"""
from __future__ import annotations

import importlib.resources
import pathlib
import runpy
import sys
import tempfile

import numpy as np
import tosaic
from tosaic import ops

HERE = pathlib.Path(__file__).parent
CUTOFF, STEPS = 0.9, 5  # the mean of so many probabilities is higher where the word was said

model = tosaic.load((importlib.resources.files("pymicro_wakeword") / "models" / "okay_nabu.tflite").read_bytes())
last = tosaic.Variable("last", np.zeros(STEPS, np.float32))


@tosaic.jit
def heard(features):
    """True if the word has been said, for the features of another 30 ms: float32[1, 3, 40]."""
    probability = model.main.on_floats(features)
    last.write(ops.concatenate([last.read()[1:], ops.reshape(probability, 1)]))
    return ops.mean(last.read()) > CUTOFF


def by_hand(steps: list[np.ndarray]) -> list[bool]:
    """The same, with arrays."""
    context, probabilities = tosaic.Context("by hand"), [np.float32(0)] * STEPS
    found = []
    for x in steps:
        probabilities = [*probabilities[1:], model.main.on_floats(x, context=context)[0, 0]]
        found.append(bool(np.mean(probabilities) > CUTOFF))
    return found


def main() -> None:
    sample_1 = runpy.run_path(str(HERE / "1_wake_word.py"))
    rows = sample_1["features"](sample_1["sound"](HERE / "sounds" / "okay_nabu.wav"))
    steps = [np.ascontiguousarray(rows[i:i + 3][None]) for i in range(0, len(rows) - 2, 3)]
    found = [bool(heard(x)) for x in steps]
    print(f"heard in step {found.index(True)} of {len(steps)}; the same by hand: {found == by_hand(steps)}")

    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    lowered = heard.trace(steps[0]).lower(tosaic.CompileOptions(target=tosaic.target("cortex-m4")))
    artifact = lowered.save(folder, "heard")
    kernels = len(lowered.kernels.kernels)
    print(f"for a Cortex-M4: {lowered.plan.size_bytes} bytes of memory beside the variables, {kernels} kernels")
    print(f"written: {artifact.object.name} and {artifact.header.name}")


if __name__ == "__main__":
    main()
