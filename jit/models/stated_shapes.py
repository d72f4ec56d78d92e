"""One-line notes about shapes that were taken from a file: to the logger `tosaic`, and to callers."""
from __future__ import annotations

from .entry import Entry
from .model import Model


def stated_note(entry: Entry) -> str | None:
    """Return a line about the shapes that were taken from the file; None if there are none."""
    stated = entry.stated_shapes
    if not stated:
        return None
    taken = ", ".join(f"{name} as {'x'.join(map(str, shape))}" for name, shape in stated.items())
    return f"{entry.name}: the batch that the file leaves open is taken as it states it: {taken}; shapes=, --shape for another"


def say_what_is_stated(model: Model) -> Model:
    """Log that line for each entry, and return the model unchanged."""
    notes = [note for entry in model if (note := stated_note(entry))]
    if notes:
        import logging
        for note in notes:
            logging.getLogger("tosaic").info(note)
    return model
