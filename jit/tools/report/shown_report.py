"""The report for users: its figures, which print as text and which notebooks show with pictures."""
from __future__ import annotations

from dataclasses import dataclass

from ....runtime.errors import printable
from .figures import Figures
from .text import print_report


@dataclass(frozen=True, slots=True)
class Report(Figures):
    """The figures of a compiled function, for users: they print as text, and notebooks show them with pictures."""

    def __repr__(self) -> str:
        return printable(f"<Report {self.name}: arena {self.arena:,} bytes (live {self.live_bytes:,}), constants "
                         f"{self.constants:,}, {len(self.kernels)} kernels, for {self.target}>")

    def __str__(self) -> str:
        return print_report(self)

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the figures, a picture of each pool, kernels and buffers."""
        from .notebook import report_html
        return report_html(self)
