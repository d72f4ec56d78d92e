"""All planted faults, and the table that `python tests/crosscheck/planted` prints."""
from __future__ import annotations

from collections.abc import Sequence

from .executor import FAULTS as EXECUTOR
from .fault import Fault
from .importers import FAULTS as IMPORTERS
from .legalizations import FAULTS as LEGALIZATIONS

FAULTS: tuple[Fault, ...] = (*LEGALIZATIONS, *EXECUTOR, *IMPORTERS)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each fault whose place holds one of the arguments; 1 where one was missed or another was seen."""
    chosen = [f for f in FAULTS if not arguments or any(a in f"{f.where} {f.name}" for a in arguments)]
    missed = alarms = 0
    for fault in chosen:
        verdict, alarm = fault.verdict(), fault.alarm()
        missed, alarms = missed + (verdict is not None), alarms + (alarm is not None)
        print(f"{fault.where:16}{fault.name:52}{verdict or 'found'}{'' if alarm is None else '; false alarm: ' + alarm}",
              flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults found and named, {alarms} false alarms")
    return int(missed > 0 or alarms > 0)
