"""The memory report: the memory needs of a compiled function, computed after lowering and before any run.

`build_report` makes a `Report` from the program and its plan; `text`, `page` and `saved` show it as text, as one HTML page and
as JSON; `fit` compares it with limits, `judge_boards` a function with boards, `diff` a report with another.
"""
from .build_report import report
from .shown_report import Report

__all__ = ["Report", "report"]
