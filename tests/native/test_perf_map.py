"""The names that `perf` sees: a line for each function in `/tmp/perf-PID.map`, where a process is told to write one."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tosaic.lowering.machine_code.link import is_supported
from tosaic.runtime.perf_map import PerfMap

pytestmark = pytest.mark.skipif(not is_supported(), reason="code is not linked here: LLVM loads it")

SCRIPT = """
import os, re, sys, numpy as np, tosaic
model = tosaic.load('''
func.func @smooth(%x: tensor<4x16xf32>) -> tensor<4x1xf32> {
  %0 = tosa.exp %x : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = tosa.reduce_max %0 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  %2 = tosa.sub %0, %1 : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
  %3 = tosa.reduce_sum %2 {axis = 1 : i32} : (tensor<4x16xf32>) -> tensor<4x1xf32>
  return %3 : tensor<4x1xf32>
}''')
model(np.ones((4, 16), np.float32))
path = f"/tmp/perf-{os.getpid()}.map"
print("llvm" if "llvmlite" in sys.modules else "cache")
print(open(path).read() if os.path.exists(path) else "", end="")
print([line.split()[0] for line in open("/proc/self/maps") if "r-xp" in line])
child = os.fork()
if not child:
    mine = f"/tmp/perf-{os.getpid()}.map"
    here, there = ((open(p).read() if os.path.exists(p) else None) for p in (mine, path))
    same = here == there
    os.path.exists(mine) and os.remove(mine)
    os._exit(not same)
status = os.waitpid(child, 0)[1]
os.path.exists(path) and os.remove(path)
sys.exit(os.waitstatus_to_exitcode(status))
"""
LINE = re.compile(r"([0-9a-f]+) ([0-9a-f]+) (tosaic\.\S+)")


def run(cache: Path, *options: str, **environment: str) -> list[str]:
    """The lines that the script prints in a process of its own."""
    given = {k: v for k, v in os.environ.items() if k not in ("TOSAIC_PERF", "PYTHONPERFSUPPORT")}
    done = subprocess.run([sys.executable, *options, "-c", SCRIPT], capture_output=True, text=True, check=False,
                          env=given | environment | {"TOSAIC_CACHE": str(cache)})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_kernel_has_its_name_in_a_file_for_perf_from_the_cache_too(tmp_path: Path) -> None:
    first = run(tmp_path, TOSAIC_PERF="1")
    again = run(tmp_path, TOSAIC_PERF="1")
    assert (first[0], again[0]) == ("llvm", "cache")
    for lines in (first, again):
        found = [LINE.fullmatch(line) for line in lines[1:-1]]
        names = [match[3] for match in found if match]
        assert len(names) == len(found) and len({*names}) == len(names)
        kernels = [name.removeprefix("tosaic.smooth.kernel_") for name in names if "kernel_" in name]
        assert sorted(int(name.split("_")[0]) for name in kernels) == list(range(len(kernels))) and kernels
        assert any("reduce_sum" in name for name in kernels) and "tosaic.smooth.run" in names
        spans = sorted((int(match[1], 16), int(match[1], 16) + int(match[2], 16)) for match in found if match)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        mapped = [tuple(int(n, 16) for n in area.split("-")) for area in eval(lines[-1])]
        assert all(any(low <= begin and end <= high for low, high in mapped) for begin, end in spans)


def test_without_it_no_file_is_written(tmp_path: Path) -> None:
    assert len(run(tmp_path)) == 2 and len(run(tmp_path, TOSAIC_PERF="0")) == 2


def test_pythons_own_support_of_perf_turns_it_on(tmp_path: Path) -> None:
    assert any("kernel_" in line for line in run(tmp_path, "-X", "perf"))


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, link = tmp_path / "victim", tmp_path / "perf.map"
    victim.write_text("mine")
    link.symlink_to(victim)
    monkeypatch.setattr(PerfMap, "path", link)
    found = PerfMap.__new__(PerfMap)
    found.lines = []
    found.add(0x1000, [("f", 16, 32)])
    assert victim.read_text() == "mine" and found.lines == ["1010 20 tosaic.f"]
    link.unlink()
    found.after_fork()
    assert link.read_text() == "1010 20 tosaic.f\n" and link.stat().st_mode & 0o777 == 0o600
