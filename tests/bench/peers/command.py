"""tosaic beside its peers in one run: time of a call, compile time, second start, memory, share of the machine's peak.

    python tests/bench/peers                                  all cases, on one thread and on two
    python tests/bench/peers --prepare                        only install the peers and make the models
    python tests/bench/peers --cases lstm encoder_128 --peers litert iree --threads 1
    python tests/bench/peers --quick                          three small cases, half a second each
    python tests/bench/peers --cases product --json now.json  cases whose names begin so
    python tests/bench/peers MODEL.tflite...                  other models instead; inputs are noise, open extents 1

The first run installs the peers, and TensorFlow for the models, into environments of their own in `~/.cache/tosaic/bench` or
`$TOSAIC_BENCH` (6 GB with the models). Times are of a call in batches of 10 ms that go round between the peers' processes;
`ratio` is a peer's least time over tosaic's, `paired` the median over the rounds of the same. `compile` is from load to the
first result with nothing kept, imports apart, on all processors; `start` the same in a second process, where a peer keeps
something. Peers that keep nothing have one figure; of those that keep code for any number of threads, a second row has the
second. Memory is the most that the process had, while loading and while running.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from tosaic import Problem

from . import models, table
from .cases import CASES, QUICK, Case
from .environment import REQUIREMENTS, cache, ensure
from .measure import Bench, Row, settle
from .roster import OWN, PEERS, Peer


def chosen(given: list[str], quick: bool) -> list[Case]:
    """The cases whose names begin like one of the given, or all."""
    names = [name for name in CASES if any(name.startswith(word) for word in given)]
    if given and not names:
        raise SystemExit(f"no case begins with {' or '.join(given)}; there are {', '.join(CASES)}")
    return [CASES[name] for name in names or (QUICK if quick else CASES)]


def other(path: Path) -> Case:
    """A case of somebody's model: bound by int8 where all its inputs are."""
    name = models.adopt(path)
    models.make([name])
    is_quantised = all(dtype == "int8" for _, dtype in models.facts(name).inputs)
    return Case(name, name, "network", "int8" if is_quantised else "f32", path.stem)


def machine() -> str:
    """The processor's name and what there is of it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {os.cpu_count()} processors, {platform.system()} {platform.release()}"


def run(options: argparse.Namespace, peers: list[Peer], missing: dict[str, str]) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="tosaic-bench-") as folder:
        bench = Bench(Path(folder), peers, options.seconds, missing)
        for case in options.cases:
            for threads in options.threads:
                rows.append(bench.row(case, threads))
                settle(rows)
                print(table.block(rows[-1]) + "\n", flush=True)
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/bench/peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="MODEL.tflite", help="models instead of the cases")
    parser.add_argument("--cases", nargs="*", default=[], metavar="CASE", help=", ".join(CASES))
    others = [name for name in PEERS if name != OWN.name]
    parser.add_argument("--peers", nargs="*", metavar="PEER", choices=others,
                        help=f"of {', '.join(others)} (default: all but inductor, which takes long)")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.6, help="of calls, for each peer and row")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every batch (default: results in the cache folder)")
    parser.add_argument("--quick", action="store_true", help="three small cases, one thread, less time for each")
    parser.add_argument("--prepare", action="store_true", help="only install the peers and make the models")
    options = parser.parse_args()
    options.cases = chosen(options.cases, options.quick)
    if options.quick:
        options.threads, options.seconds = [1], min(options.seconds, 0.3)
    return options


def main() -> None:
    options, start = arguments(), time.monotonic()
    names = options.peers if options.peers is not None else [name for name, peer in PEERS.items() if peer.is_default]
    peers = [OWN, *(PEERS[name] for name in names if name != OWN.name)]
    missing = ensure("peers", {peer.part for peer in peers if peer.part} | {"numpy"})
    try:
        options.cases = [other(path) for path in options.files] or options.cases
        models.make(case.model for case in options.cases)
    except (models.Missing, OSError, Problem) as error:
        raise SystemExit(f"a model cannot be had: {error}") from None
    if options.prepare:
        return
    now = datetime.datetime.now(datetime.UTC)
    print(f"{now:%Y-%m-%d %H:%M} UTC, {machine()}\n", flush=True)
    rows = run(options, peers, missing)
    print(table.summary(rows))
    path = options.json or cache() / "results" / f"{now:%Y-%m-%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"date": now.isoformat(), "machine": machine(), "versions": REQUIREMENTS["peers"],
                                "rows": [table.as_json(row) for row in rows]}, indent=1))
    print(f"\n{time.monotonic() - start:.0f} s; every batch is in {path}")
