"""Sample 15: a model on the batches of a Ray data set, in actors that each have the code from the cache.

    pip install "tosaic[ray]"
    python samples/15_ray.py
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import ray
import tosaic

IMAGES, BATCH = 64, 16


class Classifier:
    """An actor: it receives the model once, and is called with a batch of images at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"classes": np.concatenate([self.model(image[np.newaxis]) for image in batch["image"]])}


def main() -> None:
    model = tosaic.load(Path(__file__).parent / "models" / "classifier.mlir")
    images = np.random.default_rng(0).integers(-128, 128, (IMAGES, 32, 32, 3), np.int8)
    expected = np.concatenate([model(image[np.newaxis]) for image in images])
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    rows = ray.data.from_items([{"number": number, "image": image} for number, image in enumerate(images)])
    results = rows.map_batches(Classifier, fn_constructor_args=(model,), batch_size=BATCH, concurrency=2)
    found = sorted(results.take_all(), key=lambda row: row["number"])
    equal = np.array_equal([row["classes"] for row in found], expected)
    ray.shutdown()
    print(f"{len(found)} images in batches of {BATCH}, equal to calls in this process: {equal}")


if __name__ == "__main__":
    main()
