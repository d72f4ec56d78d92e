"""A measured search for schedules: what is faster is found, kept, and followed; the results stay what they were."""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.cache.folder import Folder
from tosaic.jit.command_line.cli import USAGE, main
from tosaic.jit.many import tune_trials
from tosaic.jit.stages import Traced
from tosaic.jit.tools import tune as tuning
from tosaic.jit.tools.profile import Profile
from tosaic.lowering.native.driver.timed_driver import COUNTERS
from tosaic.lowering.target.presets import host
from tosaic.runtime.errors import Problem

from ..many.in_this_process import InThisProcess

MODEL = Path(__file__).parents[1] / "data" / "corpus" / "f_conv_bn_relu_pool.mlir"

pytestmark = pytest.mark.skipif(host().architecture not in COUNTERS, reason="this processor's counter is not known")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    path = tmp_path / "cache"
    monkeypatch.setenv("TOSAIC_CACHE", str(path))
    return Folder(str(path))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, float]]:
    """A clock by which a kernel takes 100 ns, and half of that where a part's choice has one of these words."""
    words: dict[str, float] = {}
    real = tuning.Profiled.again

    def again(self: tuning.Profiled) -> Profile:
        found, findings = real(self), dict(self.lowered.options.tuning)
        kernels = []
        for k in found.kernels:
            kernel, by_rows = tuning.kernels_of(self.lowered)[k.number]
            from tosaic.lowering.schedule.search_space import name_of
            texts = " ".join(findings.get(name_of(kernel, by_rows), ()))
            least = 100.0 * min([factor for word, factor in words.items() if word in texts], default=1.0)
            kernels.append(dataclasses.replace(k, least=least))
        return dataclasses.replace(found, kernels=tuple(kernels), least=sum(k.least for k in kernels))

    monkeypatch.setattr(tuning.Profiled, "again", again)
    yield words


def traced() -> tuple[Traced, list[Any]]:
    found = tosaic.load(MODEL).main.trace()
    rng = np.random.default_rng(0)
    return found, [rng.standard_normal(v.tensor.dims).astype(np.float32) for v in found.function.arguments]


def one_product() -> tuple[Traced, list[Any]]:
    """One kernel, where the search itself is what is tested: it compiles a few programs, the model above many."""
    weights, x = np.ones((48, 40), np.float32), np.ones((6, 48), np.float32)
    return tosaic.jit(lambda a: np.maximum(a @ weights, 0)).trace(x), [x]


def same(results: Any, expected: Any) -> None:
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)


def test_what_is_faster_is_found_and_put_together(clock: dict[str, float]) -> None:
    clock |= {"by 2 vectors of": 0.5, "columns outermost": 0.8}
    found, inputs = traced()
    result = tuning.tune(found.lower, inputs, calls=1)
    assert result.changes and result.after < result.before and result.trials > 2
    assert len(result.findings) == len(result.changes)
    for change in result.changes:
        assert change.before != change.after and change.ratio in (pytest.approx(2.0), pytest.approx(1.25))
    text = str(result)
    assert f"in {result.trials} trials" in text and "x2.00" in text and " -> " in text
    tuned = found.lower(tosaic.CompileOptions(host(), tuning=result.findings)).compile()
    same(tuned(*inputs), found.lower().compile()(*inputs))


def test_noise_is_no_finding(clock: dict[str, float]) -> None:
    clock |= {"by 2 vectors of": 0.97}
    found, inputs = one_product()
    result = tuning.tune(found.lower, inputs, calls=1)
    assert result.findings == () and result.changes == () and "nothing is faster" in str(result)


def test_what_does_not_make_the_whole_faster_is_dropped(clock: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    clock |= {"by 2 vectors of": 0.5}
    monkeypatch.setattr(tuning.TuningRun, "whole", lambda self, findings: (10.0, 10.0))
    found, inputs = one_product()
    assert tuning.tune(found.lower, inputs, calls=1).findings == ()


def test_a_search_in_earnest_ends_with_a_time(cache: Folder) -> None:
    found, inputs = one_product()
    result = found.tune(inputs, calls=1)
    assert 0 < result.after <= result.before and result.trials > 2
    assert json.dumps(result.as_json())


def test_later_compiles_follow_what_the_cache_keeps(cache: Folder, clock: dict[str, float]) -> None:
    clock |= {"by 2 vectors of": 0.5}
    found, inputs = traced()
    before = found.compile()
    assert before.lowered.options.tuning == ()
    right = before(*inputs)
    result = found.tune(inputs, calls=1)
    after = traced()[0].compile()
    assert after.lowered.options.tuning == result.findings != ()
    same(after(*inputs), right)
    model = tosaic.load(MODEL).main.compile()
    assert model.lowered.options.tuning == result.findings
    for kept in Path(cache.path).glob("*.code"):
        kept.unlink()
    assert traced()[0].compile().lowered.options.tuning == result.findings


def test_a_file_keeps_findings_for_any_compile(tmp_path: Path, clock: dict[str, float], capsys: pytest.CaptureFixture[str],
                                               cache: Folder) -> None:
    clock |= {"by 2 vectors of": 0.5}
    file = tmp_path / "found.json"
    assert main(["tune", str(MODEL), "--calls", "1", "-o", str(file)]) == 0
    assert "x2.00" in capsys.readouterr().out
    findings = tuning.read_findings(file)
    assert findings and not list(Path(cache.path).glob("*.tuning"))
    shown = []
    for more in ([], ["--tuning", str(file)]):
        assert main(["show", str(MODEL), "schedule", *more]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] != shown[1]
    assert main(["compile", str(MODEL), "-o", str(tmp_path), "--tuning", str(file)]) == 0
    assert list(tmp_path.glob("*.o"))


@pytest.mark.parametrize("text", ["", "// {}", pytest.param("[" * 100_000, id="deep"), '{"format": "tosaic', "[]", "{}",
                                  '{"format": "other", "findings": {}}', '{"format": "tosaic tuning 3", "findings": 3}',
                                  '{"format": "tosaic tuning 3"}'])
def test_another_file_is_a_problem(tmp_path: Path, text: str) -> None:
    file = tmp_path / "found.json"
    file.write_text(text)
    with pytest.raises(Problem, match=r"found.json is no tuning: it (is no JSON|has not the format)") as caught:
        tuning.read_findings(file)
    assert "found.json:1:" in str(caught.value.position) and caught.value.help
    with pytest.raises(Problem, match="cannot be read"):
        tuning.read_findings(tmp_path / "absent.json")


def test_without_a_cache_it_needs_a_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TOSAIC_CACHE", "off")
    assert main(["tune", str(MODEL), "--calls", "1"]) == USAGE
    assert "the cache is off" in capsys.readouterr().err


@pytest.mark.sampled(4)
def test_trials_on_workers_find_what_trials_here_find(clock: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of another processor measure nothing: what they would have measured is measured here."""
    clock |= {"by 2 vectors of": 0.5, "columns outermost": 0.8}
    found, inputs = one_product()
    right = tuning.tune(found.lower, inputs, calls=1).findings
    workers = InThisProcess()
    assert tuning.tune(found.lower, inputs, calls=1, trials=tune_trials.on_workers(workers, found)).findings == right != ()
    assert workers.ran > 2
    processors = iter([("ours",)])
    monkeypatch.setattr(tune_trials, "machine", lambda: next(processors, ("another",)))
    assert tuning.tune(found.lower, inputs, calls=1, trials=tune_trials.on_workers(workers, found)).findings == right
