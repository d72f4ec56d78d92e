"""What a run came to, for people (Arm's line of totals, a table of operators, the failures) and for programs (JSON)."""
from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from .judge import Record, Result
from .system import Engine

MESSAGE = 400
"""Characters of a failure's message that are printed."""


def operator_of(test: Path) -> str:
    """The operator that a test is for, from the name of its folder's folder: `conv2d_1x3` is for conv2d."""
    name = re.sub(r"_\d+(x\d+)+$|_mxfp$", "", test.parent.name)
    return "cond_if" if name.startswith("cond_if") else name


def totals(records: Iterable[Record], engine: Engine) -> str:
    """The line that Arm's runner prints for a system under test."""
    counts = Counter(r.result for r in records if r.engine == engine)
    return f"Totals (tosaic {engine}): " + ", ".join(f"{counts[result]} {result}" for result in Result)


def table(records: Sequence[Record]) -> str:
    """Tests, passed, failed and seconds of each operator on each engine."""
    rows: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        rows[operator_of(record.test), record.engine].append(record)
    lines = [f"{'operator':<26} {'engine':<12} {'tests':>6} {'passed':>6} {'failed':>6} {'compile s':>10} {'run s':>8}"]
    for (operator, engine), found in sorted(rows.items()):
        passed = sum(r.result.is_right for r in found)
        lines.append(f"{operator:<26} {engine:<12} {len(found):>6} {passed:>6} {len(found) - passed:>6} "
                     f"{sum(r.compile_seconds for r in found):>10.1f} {sum(r.run_seconds for r in found):>8.1f}")
    return "\n".join(lines)


def failures(records: Iterable[Record]) -> str:
    """One line for each test that did not come to what was expected."""
    lines = []
    for record in sorted(records, key=lambda r: (str(r.test), r.engine)):
        if not record.result.is_right:
            message = " ".join(record.message.split())
            shown = message if len(message) <= MESSAGE else f"{message[:MESSAGE // 2]} ... {message[-MESSAGE // 2:]}"
            lines.append(f"{record.result} {operator_of(record.test)}/{record.test.name} ({record.engine}): {shown}")
    return "\n".join(lines)


def as_json(record: Record) -> str:
    """A record for programs, on one line."""
    return json.dumps({"test": record.test.name, "folder": str(record.test), "operator": operator_of(record.test),
                       "engine": record.engine, "result": record.result, "message": record.message,
                       "compile_seconds": round(record.compile_seconds, 4), "run_seconds": round(record.run_seconds, 4),
                       "verify_seconds": round(record.verify_seconds, 4)})
