"""`tosaic cache | targets`: what tosaic itself holds."""
from __future__ import annotations

import argparse

from .answer import YES, Answer


def cache(options: argparse.Namespace) -> Answer:
    """What the cache of machine code holds; with --clear, what it held."""
    from ..cache.folder import folder
    where = folder()
    if where is None:
        return Answer(YES, "the cache is off", {"folder": None, "entries": 0, "bytes": 0})
    found = where.clear() if options.clear else where.usage()
    files = f"{found.entries} file{'s' * (found.entries != 1)}, {found.nbytes:,} bytes"
    text = f"{where.path}: removed {files}" if options.clear else f"{where.path}: {files} of at most {where.limit:,}"
    return Answer(YES, text, {"folder": where.path, "entries": found.entries, "bytes": found.nbytes, "limit": where.limit})


def targets(options: argparse.Namespace) -> Answer:
    """The machines of the tables, a line each."""
    from .list_targets import list_targets
    return Answer(YES, *list_targets())
