"""A report as JSON: it reads back as it was; what is no report is refused with a reason."""
from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import tosaic
from tosaic.jit.tools.report import report
from tosaic.jit.tools.report.saved import read

from .subjects import MODELS, by_rows, lowered


@pytest.mark.parametrize("model", [*MODELS, "rows"])
def test_a_report_reads_back_as_it_was(model: str) -> None:
    found = report(lowered(by_rows(64, 3) if model == "rows" else model), ladder=True, code=True)
    again = read(json.dumps(found.as_dict()).encode(), "saved.json")
    assert again == found and str(again) == str(found)


def changed(path: list[Any], value: Any) -> bytes:
    """A saved report with another value at a path."""
    facts = json.loads(json.dumps(report(lowered("corpus/v_lstm")).as_dict()))
    inner = facts
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(facts).encode()


@pytest.mark.parametrize(("path", "value", "words"), [
    (["format"], "other", "no report of this version"), (["arena"], "many", "many is no int"), (["arena"], True, "no int"),
    (["arena"], -1, "no int"), (["buffers", 0, "live"], [[3]], "1 numbers where 2"), (["kernels"], {}, "no list"),
    (["buffers", 0, "live"], [[0, 10 ** 6]], "not in the timeline"), (["timeline", 0, "kernel"], 10 ** 6, "not in the list"),
    (["timeline", 0, "kind"], "jump", "is none of"), (["peak", "alive"], ["nobody"], "not in the list"),
    (["pools", 0], None, "no dict")])
def test_a_changed_report_is_refused(path: list[Any], value: Any, words: str) -> None:
    with pytest.raises(tosaic.Problem, match=words) as caught:
        read(changed(path, value), "saved.json")
    assert caught.value.kind == "file" and caught.value.help


def test_a_report_without_a_key_is_refused() -> None:
    facts = report(lowered("corpus/v_lstm")).as_dict()
    for key in facts:
        short = copy.copy(facts)
        del short[key]
        with pytest.raises(tosaic.Problem):
            read(json.dumps(short).encode(), "saved.json")


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b"\xff{", b'{"a": ' + b"[" * 100_000])
def test_what_is_no_report_is_refused(data: bytes) -> None:
    with pytest.raises(tosaic.Problem, match=r"x\.json is JSON, but no report"):
        read(data, "x.json")
