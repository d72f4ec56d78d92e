"""Time at which this process began to import tosaic: the first imported module records it, and the cache reads it."""
from __future__ import annotations

import time

IMPORTED = time.time()
"""Sources that are newer may differ from the running code."""
