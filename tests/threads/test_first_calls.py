"""Functions that several threads compile and call at once, in a process that has compiled nothing yet."""
from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import threading
import numpy as np
import tosaic

results = []

def work(number):
    function = tosaic.jit(lambda x: x * float(number) + 1.0)
    for _ in range(50):
        result = function(np.ones(4, np.float32))
    results.append((number, float(result[0])))

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(results) == [(number, number + 1.0) for number in range(8)], results
print("right")
"""


def test_the_first_calls_of_a_process_may_come_from_several_threads(tmp_path: object) -> None:
    """What stands for calls is machine code that is made once: of two copies, one would be freed while it is used."""
    path = os.path.join(str(tmp_path), "program.py")
    with open(path, "w") as file:
        file.write(PROGRAM)
    for _ in range(3):
        environment = {**os.environ, "TOSAIC_CACHE": "off"}
        found = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
        assert found.returncode == 0 and found.stdout == "right\n", found.stderr
