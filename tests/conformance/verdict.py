"""Verdicts on results: Arm's own verifier decides, over the same files in the same groups as Arm's runner gives it.

Its library does so in this process (5 ms a result); what the library cannot read, block-scaled tensors and the types
under 8 bits, goes to the program `tosa_verify` (its exit status 0: compliant, 2: not).
"""
from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .environment import tool
from .reference import expected

Arrays = Mapping[str, np.ndarray[Any, Any]]
"""Results by the name of the file that they would be saved to, in the form that the verifier wants in that file."""

IN_PROCESS = {"BOOL", "INT4", "INT8", "INT16", "INT32", "INT48", "SHAPE", "FP16", "BF16", "FP32", "FP8E4M3", "FP8E5M2"}
"""Types that the library reads."""

COMPLIANT, NONCOMPLIANT = 0, 2
"""Exit statuses of `tosa_verify`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One call of the verifier: an output's name, files of the implementation's results, of the reference's, of bounds."""
    name: str
    files: tuple[str, ...]
    results: tuple[Path, ...]
    bounds: tuple[Path, ...]


class VerifierFailure(Exception):
    """The verifier itself failed: neither compliant nor not."""


def comparisons(desc: Mapping[str, Any], folder: Path) -> Iterator[Comparison]:
    """What Arm's runner verifies: each output, a block-scaled one together with its scale, whether that is a second
    file of the same output (composite tensors) or the next output (data and scale as two tensors)."""
    tensors = desc["meta"]["compliance"]["tensors"]
    waiting: Comparison | None = None
    for name, file in zip(desc["ofm_name"], desc["ofm_file"]):
        found = expected(dict(desc), file, folder)
        files = (file,)
        if "scale_tensor_name" in tensors[name]:
            if len(found.results) == 1:
                waiting = Comparison(name, files, found.results, found.bounds)
                continue
            files = (file, f"{Path(file).stem}_scale.npy")
        if waiting is not None:
            if tensors[waiting.name]["scale_tensor_name"] != name:
                raise VerifierFailure(f"{name} is not the scale of {waiting.name}")
            yield Comparison(waiting.name, waiting.files + files, waiting.results + found.results,
                             waiting.bounds + found.bounds)
            waiting = None
        else:
            yield Comparison(name, files, found.results, found.bounds)


def faults(test: Path, desc: Mapping[str, Any], folder: Path, results: Arrays) -> list[str]:
    """What is wrong with the results of a test, whose reference is in `folder`; empty when they comply."""
    found = []
    for comparison in comparisons(desc, folder):
        missing = [file for file in comparison.files if file not in results]
        if missing:
            found.append(f"results are missing: {', '.join(missing)}")
            continue
        arrays = [results[file] for file in comparison.files]
        if len(arrays) == 1 and desc["meta"]["compliance"]["tensors"][comparison.name]["data_type"] in IN_PROCESS:
            message = by_library(desc["meta"]["compliance"], comparison, arrays[0])
        else:
            message = by_program(test, comparison, arrays)
        if message is not None:
            found.append(f"{comparison.name}: {message}")
    return found


def by_library(compliance: Mapping[str, Any], comparison: Comparison, array: np.ndarray[Any, Any]) -> str | None:
    """None when compliant, else what the library printed."""
    library, clients = verifier()
    seen = as_loaded(array)
    if seen.dtype not in clients:
        return f"the verifier does not take arrays of {seen.dtype}"
    references = [np.load(path) for path in (*comparison.results, *comparison.bounds)]
    with printed() as text:
        compliant = library.verify_data(comparison.name, compliance, seen, *references)
    return None if compliant else reason(text[0])


def verifier() -> Any:
    """The library of `checker.verifier`, loaded once, with a schema validator that does not read its files again each time, nor
    check the schemas themselves; and the dtypes that it takes."""
    global _verifier
    if _verifier is None:
        from checker import verifier as arm  # type: ignore[import-not-found]
        validator, arm.sch.validate = arm.sch.TestDescSchemaValidator(), validate
        arm.sch = SimpleNamespace(TestDescSchemaValidator=lambda: validator, TD_SCHEMA_COMPLIANCE=arm.sch.TD_SCHEMA_COMPLIANCE)
        path = tool("").parent / "tosa_reference_model" / "libtosa_reference_verify_lib.so"
        _verifier = arm.VerifierLibrary(path), frozenset(arm.NUMPY_DATATYPE_TO_CLIENTTYPE)
    return _verifier


_verifier: Any = None


def validate(config: Mapping[str, Any], schema: Mapping[str, Any], registry: Any) -> None:
    """What `jsonschema.validate` does, with one validator for each schema, but for the check of the schema itself."""
    validator = _validators.get(id(schema))
    if validator is None:
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]
        validator = _validators[id(schema)] = validator_for(schema)(schema, registry=registry)
    validator.validate(config)


_validators: dict[int, Any] = {}


def as_loaded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array as NumPy loads it from a file: types of `ml_dtypes` come back as plain bytes."""
    contiguous = np.asarray(array, order="C")
    return contiguous.view(np.dtype(f"V{array.dtype.itemsize}")) if array.dtype.kind == "V" else contiguous


def by_program(test: Path, comparison: Comparison, arrays: Sequence[np.ndarray[Any, Any]]) -> str | None:
    """None when compliant, else what `tosa_verify` printed. Raises VerifierFailure when it gives no verdict."""
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        for file, array in zip(comparison.files, arrays):
            files.append(str(Path(scratch, file)))
            np.save(files[-1], array)
        command = [str(tool("tosa_verify")), "--test_desc", str(test / "desc.json"), "--imp_result_file", ",".join(files),
                   "--ref_result_file", ",".join(map(str, comparison.results)), "--ofm_name", comparison.name]
        if comparison.bounds:
            command += ["--bnd_result_file", ",".join(map(str, comparison.bounds))]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if result.returncode == COMPLIANT:
        return None
    if result.returncode == NONCOMPLIANT:
        return reason(result.stderr + result.stdout)
    raise VerifierFailure(f"tosa_verify ends with status {result.returncode}: {(result.stderr + result.stdout).strip()[-300:]}")


def reason(text: str) -> str:
    """The sentence in what the verifier prints: not the line with the place in its source."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("WARNING AT")]
    return " ".join(line for line in lines if not line.startswith("Test results:")) or "not compliant"


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """What native code prints to stdout and stderr meanwhile, as the list's only element afterwards."""
    text: list[str] = []
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield text
        finally:
            for target, number in enumerate(kept, start=1):
                os.dup2(number, target)
                os.close(number)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))
