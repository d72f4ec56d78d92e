"""The memory report: what a compiled function needs, made after lowering and before anything runs.

`build_report` makes a `Report` from the program and its plan; `text`, `page` and `saved` show it as text, as one HTML page and
as JSON; `fit` holds it against limits, `judge_boards` a function against boards, `diff` a report against another.
"""
from .build_report import report
from .shown_report import Report

__all__ = ["Report", "report"]
