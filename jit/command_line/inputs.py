"""Arrays for the command line: inputs from `.npy` and `.npz` files (`tools.array_files`) or from a seed."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ...lowering.graph.graph import Function, Value
from ...lowering.graph.types import Array
from ...runtime.errors import Problem
from ...runtime.limits import most_bytes
from ..tools.array_files import array_names, read_arrays
from ..tools.random_array import random_array

SMALL, WIDEST = 1 << 20, 16
"""Bounds on a file's bytes: a minimum that any array may have, and a multiple of its input's bytes."""


def gather_inputs(function: Function, given: Sequence[str], seed: int) -> list[Array]:
    """Return an array for each argument: those that `given` names, the others random. A file of named arrays must have every
    input that nothing else in `given` names, and no other arrays.

    `given` holds `name=file.npy`, `name=file.npz` (its array of that name, or its only one), `file.npz` (arrays by
    name), `name=random:SEED` or `random:SEED`.
    """
    arrays, seeds = given_arrays(function, given)
    names = [v.name for v in function.arguments]
    check_complete([each for each in given if is_file_of_names(each)], names, {*arrays, *seeds})
    return [fitted(arrays[v.name], v) if v.name in arrays else random_array(function, v, number, seeds.get(v.name, seed))
            for number, v in enumerate(function.arguments)]


def given_arrays(function: Function, given: Sequence[str]) -> tuple[dict[str, Array], dict[str, int]]:
    """Return the arrays, and the seeds of random arrays, that `given` has for inputs."""
    names, most = [v.name for v in function.arguments], most_bytes_of(function)
    seeds: dict[str, int] = {}
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
    return arrays, seeds


def drawn(function: Function, given: Sequence[str]) -> list[Value]:
    """Return the inputs that are random."""
    arrays, _ = given_arrays(function, given)
    return [v for v in function.arguments if v.name not in arrays]


def is_file_of_names(given: str) -> bool:
    """True if an --input is a file without the name of an input."""
    return "=" not in given and not given.startswith("random:")


def check_complete(files: Sequence[str], names: Sequence[str], known: Collection[str]) -> None:
    """Raise a Problem if files that give inputs by name lack one: random numbers would silently take its place."""
    missing = [name for name in names if name not in known]
    if files and missing:
        raise Problem(f"{', '.join(files)} has no array for {', '.join(missing)}", kind="argument",
                      help=f"give --input {missing[0]}=FILE too, or --input {missing[0]}=random:0")


def seed_of(source: str) -> int:
    try:
        return int(source.removeprefix("random:") or "0")
    except ValueError:
        raise Problem(f"{source} is not random:SEED with a whole number", kind="argument") from None


def most_bytes_of(function: Function) -> dict[str, int]:
    """Return the maximum number of bytes that a file may have for each input. If the shape is known, that is enough for an
    array of another type or of a few more elements, for which a later message is more precise."""
    return {v.name: max(SMALL, WIDEST * v.tensor.nbytes) if v.tensor.is_static else most_bytes() for v in function.arguments}


def one_array(path: str, name: str, most: Mapping[str, int]) -> Array:
    """Return the array of a .npy file, or the array of that name (or the only one) of a .npz file."""
    found = read_arrays(path, {name: most[name]})
    if isinstance(found, dict):
        if name not in found and len(found) != 1:
            raise Problem(f"{path} has no array {name}", kind="argument",
                          help=f"it has {', '.join(array_names(path)) or 'none'}")
        return found[name] if name in found else next(iter(found.values()))
    return found


def arrays_by_name(path: str, names: Sequence[str], most: Mapping[str, int]) -> dict[str, Array]:
    """Return the arrays of a .npz file for inputs of these names, or the array of a .npy file for the only input."""
    found = read_arrays(path, most)
    if isinstance(found, dict):
        known, listed = array_names(path), ", ".join(names) or "none"
        unknown = [name for name in known if name not in names]
        if unknown:
            raise Problem(f"{path} has arrays that are no inputs: {', '.join(unknown)}", kind="argument",
                          help=f"the inputs are {listed}; --input NAME=FILE.npz takes one array of a file")
        if not known:
            raise Problem(f"{path} has no arrays", kind="argument", help=f"the inputs are {listed}")
        return found
    if len(names) != 1:
        raise Problem(f"{path} is one array, the function has {len(names)} inputs", kind="argument",
                      help=f"say which: --input {names[0] if names else 'name'}={path}")
    return {names[0]: found}


def fitted(array: Array, value: Value) -> Array:
    """Return the array, with its bytes reinterpreted as the input's type if NumPy's files cannot name that type (bf16, fp8)."""
    dtype = value.tensor.element.dtype
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    return np.require(array, requirements=["C", "A"])
