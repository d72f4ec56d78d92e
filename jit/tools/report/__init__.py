"""The memory report: what a compiled function needs, made after lowering and before anything runs.

`gather` makes a `Report` from the program and its plan; `text`, `page` and `saved` show it as text, as one HTML page and as
JSON; `fit` holds it against limits, `diff` against another report.
"""
from .gather import report
from .text import Report

__all__ = ["Report", "report"]
