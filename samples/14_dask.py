"""Sample 14: a model on the blocks of a Dask array, in processes that each have the code from the cache.

    pip install "tosaic[dask]"
    python samples/14_dask.py
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import tosaic
from distributed import Client, LocalCluster

IMAGES, BLOCK = 64, 16


def classified(block: Any, model: Any) -> Any:
    """The classes of a block's images, one call for each."""
    return np.concatenate([model(image[np.newaxis]) for image in block])


def main() -> None:
    model = tosaic.load(Path(__file__).parent / "models" / "classifier.mlir")
    images = np.random.default_rng(0).integers(-128, 128, (IMAGES, 32, 32, 3), np.int8)
    expected = classified(images, model)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        blocks = dask.array.from_array(images, chunks=(BLOCK, 32, 32, 3))
        classes = blocks.map_blocks(classified, model, dtype=expected.dtype, drop_axis=(1, 2, 3), new_axis=1,
                                    chunks=(blocks.chunks[0], expected.shape[1:]))
        found = classes.compute()
    print(f"{len(found)} images in {classes.numblocks[0]} blocks, equal to calls in this process: "
          f"{np.array_equal(found, expected)}")


if __name__ == "__main__":
    main()
