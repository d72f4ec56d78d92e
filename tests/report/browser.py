"""A page in a browser without a window: what a script finds there."""
from __future__ import annotations

import html
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NARROWEST = 500
"""A window is not narrower; a frame in it is."""


def probed(page: str, probe: str, width: int, folder: pathlib.Path) -> Any:
    """What a script at the end of a page gives to `PROBED`, in a window of that width."""
    answer = """document.body.innerHTML = "<pre></pre>";
    document.querySelector("pre").textContent = "PROBE" + JSON.stringify(seen) + "END";"""
    script = probe.replace("PROBED(seen);", answer if width >= NARROWEST else "parent.postMessage(seen, \"*\");")
    (folder / "page.html").write_text(page.replace("</body>", script), encoding="utf-8")
    shown = folder / "page.html"
    if width < NARROWEST:
        shown = folder / "frame.html"
        shown.write_text(f"""<body style="margin:0"><iframe src="page.html" width={width} height=900 style="border:0"></iframe>
        <script>onmessage = (e) => {{ const seen = e.data; {answer} }};</script></body>""", encoding="utf-8")
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               f"--user-data-dir={folder}/profile", f"--window-size={max(width, NARROWEST)},900", "--virtual-time-budget=20000",
               "--dump-dom", shown.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r"PROBE(\{.*\})END", result.stdout)
    assert found, result.stderr[-2000:]
    return json.loads(html.unescape(found[1]))
