"""`tosaic cache | targets`: the cache and the machines that tosaic knows."""
from __future__ import annotations

import argparse

from .answer import YES, Answer


def cache(options: argparse.Namespace) -> Answer:
    """Return the contents of the cache of machine code; with --clear, those before it was cleared."""
    from ..cache.folder import folder
    where = folder()
    if where is None:
        return Answer(YES, "the cache is off", {"folder": None, "entries": 0, "bytes": 0})
    found = where.clear() if options.clear else where.usage()
    files = f"{found.entries} file{'s' * (found.entries != 1)}, {found.nbytes:,} bytes"
    text = f"{where.path}: removed {files}" if options.clear else f"{where.path}: {files} of at most {where.limit:,}"
    return Answer(YES, text, {"folder": where.path, "entries": found.entries, "bytes": found.nbytes, "limit": where.limit})


def targets(options: argparse.Namespace) -> Answer:
    """Return the machines of the tables, one on each line."""
    from .list_targets import list_targets
    return Answer(YES, *list_targets())
