"""`tosaic map`: a model over many inputs, on the processes of this machine or on a Dask cluster."""
from __future__ import annotations

import argparse

from ..many.map_inputs import map_inputs
from ..many.scheduler import workers_for
from .answer import NO, YES, Answer
from .model_options import model_of, shapes_of
from .progress import Progress


def map(options: argparse.Namespace) -> Answer:
    """Run an entry over all inputs; exit code 1 if one has failed."""
    with Progress("reading") as progress:
        model = model_of(options, progress)
        entry = model.entry(options.entry)
        entry = entry.specialize(shapes_of(options)) if options.shape else entry
        progress.update(f"compiling {entry.name}")
        with workers_for(options.scheduler, options.workers) as workers:
            found = map_inputs(model, entry, options.inputs, options.output, workers,
                               lambda done, of: progress.update(f"{entry.name}: items", done, of))
    return Answer(NO if found.errors else YES, str(found), found.as_json())
