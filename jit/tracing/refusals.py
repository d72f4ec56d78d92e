"""Functions of NumPy and of the array API standard that no traced tensor supports, with the reason and the alternative."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...runtime.errors import AttributeProblem, Problem
from ...runtime.public_names import closest
from ...runtime.records import dataclass
from .trace import problem

SHAPE_DEPENDS = "the shape of its result depends on the numbers in it"
NO_VALUES = "it needs the numbers of a tensor, which a traced one has not"
IN_PLACE = "a traced tensor cannot be changed: write x = ..., with tosaic.ops.where for a part of it"
ITERATES = "tosaic has no decomposition that iterates until it converges"
OF_RECORDS = "no tensor has fields, holds text or is read from a file"
OF_DATES = "no tensor holds dates"
OF_NUMBERS = "it makes an array of Python numbers, and a tensor has none"


@dataclass(frozen=True)
class Refused:
    """Functions by their names without `linalg`, why they are missing, and what to write instead."""
    names: str
    reason: str
    instead: str


TABLE = (
    Refused("where nonzero flatnonzero argwhere compress extract", SHAPE_DEPENDS,
            "tosaic.ops.where(mask, x, 0) keeps the shape, and mask.sum() says how many"),
    Refused("trim_zeros", SHAPE_DEPENDS, "a slice with known bounds, or tosaic.ops.where"),
    Refused("bincount", SHAPE_DEPENDS,
            "(x[:, None] == tosaic.ops.arange(n)).sum(0) counts 0 to n - 1; or tosaic.ops.histogram"),
    Refused("unique unique_all unique_counts unique_inverse unique_values union1d", SHAPE_DEPENDS,
            "s = tosaic.ops.sort(x, axis=None) has equal elements side by side; s[1:] != s[:-1] marks the first of each"),
    Refused("intersect1d setdiff1d setxor1d", SHAPE_DEPENDS,
            "tosaic.ops.isin(x, y) says which elements of x are in y, as a mask"),
    Refused("polydiv", SHAPE_DEPENDS, "tosaic.ops.polymul and polysub, with a known number of steps"),
    Refused("copyto put putmask place", IN_PLACE, "x = tosaic.ops.where(mask, values, x)"),
    Refused("put_along_axis", IN_PLACE, "tosaic.tosa.scatter, or x = tosaic.ops.where(mask, values, x)"),
    Refused("fill_diagonal", IN_PLACE, "x = tosaic.ops.where(tosaic.ops.eye(n, dtype=bool), value, x)"),
    Refused("save savez savez_compressed savetxt array2string array_repr array_str", NO_VALUES,
            "call it outside of the jitted function, on the arrays that it returns"),
    Refused("result_type can_cast", NO_VALUES, "x.__array_namespace__() has it, and x.dtype is known"),
    Refused("min_scalar_type common_type require real_if_close", NO_VALUES, "x.dtype is known, and x.astype converts"),
    Refused("may_share_memory shares_memory", NO_VALUES, "tensors share nothing that can be changed"),
    Refused("einsum_path", NO_VALUES, "numpy.einsum_path of arrays with the same shapes"),
    Refused("array asanyarray ascontiguousarray asfortranarray frombuffer fromfunction fromiter from_dlpack", NO_VALUES,
            "tosaic.ops.asarray; tosaic.ops.stack makes a tensor of a list of tensors"),
    Refused("eig eigh eigvals eigvalsh svd svdvals", ITERATES,
            "a.T @ a has a cholesky and a det; or compute it outside and pass it as an argument"),
    Refused("lstsq", ITERATES, "tosaic.ops.linalg.pinv(a) @ b, where the columns of a are independent"),
    Refused("roots", ITERATES, "steps of Newton's method, with tosaic.ops.polyval and polyder, find one"),
    Refused("matrix_rank", ITERATES, "tosaic.ops.linalg.det(a.T @ a) is 0 where columns of a depend on each other"),
    Refused("tensorinv", "it is an inverse of a reshaped tensor", "tosaic.ops.linalg.inv(a.reshape(n, n)), reshaped back"),
    Refused("tensorsolve", "it is a solve of a reshaped tensor",
            "tosaic.ops.linalg.solve(a.reshape(n, n), b.reshape(n)), reshaped back"),
    Refused("logspace", OF_NUMBERS, "base ** (start + (stop - start) * tosaic.ops.linspace(0, 1, num))"),
    Refused("geomspace", OF_NUMBERS, "start * (stop / start) ** tosaic.ops.linspace(0, 1, num)"),
    Refused("ix_", OF_NUMBERS, "x[rows][:, columns]"),
    Refused("ravel_multi_index", OF_NUMBERS, "row * columns + column"),
    Refused("unravel_index", OF_NUMBERS, "divmod(index, columns)"),
    Refused("packbits", "tosaic packs no bits", "(bits.reshape(-1, 8) << tosaic.ops.arange(7, -1, -1)).sum(1)"),
    Refused("unpackbits", "tosaic packs no bits", "(x[:, None] >> tosaic.ops.arange(7, -1, -1)) & 1"),
    Refused("histogram2d histogramdd", "tosaic counts along one axis only",
            "tosaic.ops.digitize for each axis, and tosaic.ops.histogram of row * columns + column"),
    Refused("sort_complex", "complex numbers have no order here", "tosaic.ops.sort of tosaic.ops.abs(z), or of its real part"),
    Refused("logn", "its result is real or complex as the numbers are", "tosaic.ops.log(x) / math.log(n)"),
    Refused("isnat busday_count busday_offset is_busday datetime_as_string", OF_DATES,
            "integers that count days or seconds are tensors: dates.astype('int64')"),
    Refused("append_fields apply_along_fields assign_fields_by_name drop_fields find_duplicates fromfile fromstring genfromtxt "
            "join_by loadtxt merge_arrays rec_append_fields rec_drop_fields rec_join recursive_fill_fields rename_fields "
            "repack_fields require_fields stack_arrays structured_to_unstructured unstructured_to_structured", OF_RECORDS,
            "read it outside, and give each field as an argument: a dict of arrays is one"),
)
REASONS: Mapping[str, str] = {name: row.reason for row in TABLE for name in row.names.split()}
INSTEAD: Mapping[str, str] = {name: row.instead for row in TABLE for name in row.names.split()}


def refusal(name: str) -> Problem:
    """Return the Problem of a call of `numpy.NAME` on a traced tensor."""
    last = name.rpartition(".")[2]
    reason = REASONS.get(last)
    return problem(f"numpy.{name} cannot be traced{f': {reason}' if reason else ''}", "unsupported",
                   help=INSTEAD.get(last, "see tosaic.ops for what can"))


METHODS = (
    Refused("view", "no tensor shares its bytes with another",
            "x.reshape(...) for another shape, x.astype(...) for another type"),
    Refused("numpy tobytes tofile dump dumps getfield ctypes data base flags strides", NO_VALUES,
            "use what the jitted function returns, outside of it"),
    Refused("at put itemset resize partition setflags byteswap", IN_PLACE, "x = tosaic.ops.where(mask, values, x)"),
    Refused("permute", "it is PyTorch's name", "x.transpose(...)"),
    Refused("unsqueeze", "it is PyTorch's name", "tosaic.ops.expand_dims(x, axis)"),
    Refused("dim numel element_size", "it is PyTorch's name", "x.ndim, x.size and x.itemsize"),
    Refused("to type float double half int long bool", "it is PyTorch's name", "x.astype(dtype)"),
    Refused("cpu cuda detach contiguous clone requires_grad grad backward", "it is PyTorch's name",
            "leave it out: a tensor is on this processor, and has no gradient"))
"""Attributes of other libraries' arrays that a traced tensor lacks, with the reason and the alternative."""


def no_attribute(tensor: Any, name: str) -> Problem:
    """Return the Problem of a read of an attribute that a traced tensor does not have."""
    row = next((row for row in METHODS if name in row.names.split()), None)
    if row is not None:
        return problem(f"a traced tensor has no {name}: {row.reason}", "argument", row.instead, AttributeProblem)
    from . import ops
    if hasattr(ops, name):
        return problem(f"a traced tensor has no {name}", "argument", f"tosaic.ops.{name}(x)", AttributeProblem)
    meant = closest(name, [n for n in dir(type(tensor)) if not n.startswith("_")])
    return problem(f"a traced tensor has no {name}", "argument", f"did you mean {meant}?" if meant else "see tosaic.ops for "
                   "what there is", AttributeProblem)
