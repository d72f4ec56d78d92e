"""When this process began to import tosaic: the first module that is imported says it, and the cache asks for it."""
from __future__ import annotations

import time

IMPORTED = time.time()
"""Sources that are newer may be others than those that run."""
