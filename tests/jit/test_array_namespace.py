"""The namespace of a traced tensor is that of the Python array API standard 2025.12; which functions it has, and which not and
why."""
from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.tracing import array_namespace, refusals

STANDARD = {
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
                "ones_like tril triu zeros zeros_like",
    "types": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert "
                   "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos "
                   "cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite "
                   "isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not "
                   "logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow "
                   "real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc",
    "indexing": "take take_along_axis",
    "products": "matmul matrix_transpose tensordot vecdot",
    "manipulation": "broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis "
                    "permute_dims repeat reshape roll squeeze stack tile unstack",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "isin unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utilities": "all any diff",
    "linalg": "cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power "
              "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot "
              "vector_norm"}
"""The standard's functions by its chapters, and those of its extension for linear algebra."""
PAGE = pathlib.Path(__file__).parents[2] / "jit" / "README.md"
X = np.array([[3, 1], [2, 5]], np.float32)


def there(chapter: str) -> list[str]:
    namespace = array_namespace.linalg if chapter == "linalg" else array_namespace
    return [name for name in STANDARD[chapter].split() if name in namespace.__all__]


def refused(chapter: str) -> dict[str, str]:
    """The functions that are not there, and why."""
    return {name: refusals.REASONS[name] for name in STANDARD[chapter].split() if name not in there(chapter)}


def table() -> str:
    """The counts, and what is missing."""
    lines = ["| chapter | functions | there | not there, because |", "|---|---|---|---|"]
    for chapter, names in STANDARD.items():
        why: dict[str, list[str]] = {}
        for name, reason in refused(chapter).items():
            why.setdefault(reason, []).append(f"`{name}`")
        because = "; ".join(f"{', '.join(missing)}: {reason}" for reason, missing in why.items())
        lines.append(f"| {chapter} | {len(names.split())} | {len(there(chapter))} | {because} |")
    return "\n".join(lines)


def test_the_page_says_which_functions_of_the_standard_are_there() -> None:
    pattern = r"<!-- made by tests/jit/test_array_namespace.py: begin -->\n\n(.*?)\n\n<!--"
    found = re.search(pattern, PAGE.read_text(), re.DOTALL)
    assert found is not None and found[1] == table(), f"the page should say\n{table()}"


def test_a_function_for_any_namespace_runs_on_traced_tensors() -> None:
    def standardised(x: Any) -> Any:
        xp = x.__array_namespace__(api_version="2025.12")
        centred = x - xp.mean(x, axis=0, keepdims=True)
        scale = xp.where(xp.std(x, axis=0) > 0, xp.std(x, axis=0), xp.asarray(1, dtype=x.dtype))
        return xp.concat([centred / scale, xp.eye(2, dtype=x.dtype)]), xp.linalg.vector_norm(x), xp.argsort(x, descending=True)

    expected = standardised_by_numpy(X)
    for result, wanted in zip(tosaic.jit(standardised)(X), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


def standardised_by_numpy(x: Any) -> Any:
    """The same, by NumPy alone, whose argsort has no descending order."""
    return np.concatenate([(x - x.mean(0)) / x.std(0), np.eye(2)]), np.linalg.norm(x), np.argsort(-x, -1)


def test_types_are_described_as_the_standard_says() -> None:
    xp, info = array_namespace, array_namespace.__array_namespace_info__()
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 and xp.result_type(xp.float32, 1) == xp.float32
    assert xp.can_cast(xp.uint32, xp.int64) and xp.can_cast(xp.int8, xp.int32)
    assert not xp.can_cast(xp.int32, xp.int8) and not xp.can_cast(xp.int32, xp.float32)
    assert xp.isdtype(xp.uint8, ("signed integer", "unsigned integer")) and not xp.isdtype(xp.bool, "numeric")
    assert xp.finfo(xp.float32).eps == np.finfo(np.float32).eps and xp.iinfo(xp.int8).max == 127
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"} and info.default_dtypes()["integral"] == xp.int32
    assert info.devices() == (info.default_device(),) and not info.capabilities()["data-dependent shapes"]
    for version in ("2022.12", "2025.12", None):
        assert xp.namespace(version) is xp
    with pytest.raises(tosaic.Problem, match="no version '2031'"):
        xp.namespace("2031")


def test_what_the_standard_gives_another_type_has_it() -> None:
    bytes_ = np.array([[1, 2], [3, 4]], np.int8)
    result = tosaic.jit(lambda x: x.__array_namespace__().matmul(x, x))(bytes_)
    assert result.dtype == np.int8 and result.tolist() == (bytes_ @ bytes_).tolist()
    assert tosaic.jit(lambda x: x.__array_namespace__().clip(x, -1, 2))(bytes_).tolist() == [[1, 2], [2, 2]]
