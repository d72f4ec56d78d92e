"""Arrays for the command line: inputs from `.npy` and `.npz` files (`tools.array_files`) or from a seed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...lowering.graph.graph import Function, Value
from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ...runtime.limits import most_bytes
from ..tools.array_files import array_names, read_arrays
from ..tools.random_array import random_array

SMALL, WIDEST = 1 << 20, 16
"""Bytes that any array may have, and how many times those of its input."""


def gather_inputs(function: Function, given: Sequence[str], seed: int) -> list[Array]:
    """An array for each argument: those that `given` names, the others random.

    `given` holds `name=file.npy`, `name=file.npz` (its array of that name, or its only one), `file.npz` (arrays by
    name), `name=random:SEED` or `random:SEED`.
    """
    names, most = [v.name for v in function.arguments], most_bytes_of(function)
    seeds = dict.fromkeys(names, seed)
    arrays: dict[str, Array] = {}
    for each in given:
        name, equals, source = each.partition("=")
        if not equals:
            name, source = "", each
        if name and name not in names:
            raise Problem(f"{function.name} has no input named {name}", kind="argument",
                          help=f"its inputs: {', '.join(names) or 'none'}")
        if source.startswith("random:"):
            seeds.update(dict.fromkeys([name] if name else names, seed_of(source)))
        elif name:
            arrays[name] = one_array(source, name, most)
        else:
            arrays.update(arrays_by_name(source, names, most))
    return [fitted(arrays[v.name], v) if v.name in arrays else random_array(function, v, number, seeds[v.name])
            for number, v in enumerate(function.arguments)]


def seed_of(source: str) -> int:
    try:
        return int(source.removeprefix("random:") or "0") & (1 << 64) - 1
    except ValueError:
        raise Problem(f"{source} is not random:SEED with a whole number", kind="argument") from None


def most_bytes_of(function: Function) -> dict[str, int]:
    """Return the bytes that a file may state for each input: of known shape enough for one of another type or of a few more
    elements, of which a later message says more."""
    return {v.name: max(SMALL, WIDEST * v.tensor.nbytes) if v.tensor.is_static else most_bytes() for v in function.arguments}


def one_array(path: str, name: str, most: Mapping[str, int]) -> Array:
    """The array of a .npy file, or the one of that name (or the only one) of a .npz file."""
    found = read_arrays(path, {name: most[name]})
    if isinstance(found, dict):
        if name not in found and len(found) != 1:
            raise Problem(f"{path} has no array {name}", kind="argument",
                          help=f"it has {', '.join(array_names(path)) or 'none'}")
        return found[name] if name in found else next(iter(found.values()))
    return found


def arrays_by_name(path: str, names: Sequence[str], most: Mapping[str, int]) -> dict[str, Array]:
    """Arrays of a .npz file for inputs of these names; the array of a .npy file for the only input."""
    found = read_arrays(path, most)
    if isinstance(found, dict):
        known = {name: array for name, array in found.items() if name in names}
        if known or not names:
            return known
        raise Problem(f"{path} has none of the inputs {', '.join(names)}", kind="argument",
                      help=f"it has {', '.join(array_names(path)) or 'none'}")
    if len(names) != 1:
        raise Problem(f"{path} is one array, the function has {len(names)} inputs", kind="argument",
                      help=f"say which: --input {names[0] if names else 'name'}={path}")
    return {names[0]: found}


def fitted(array: Array, value: Value) -> Array:
    """The array, its bytes seen as the input's type where NumPy's files cannot name it (bf16, fp8)."""
    dtype = value.tensor.element.dtype
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    return np.require(array, requirements=["C", "A"])
