"""Index arithmetic inside expressions: a value computed from positions stays an index expression if it is affine."""
from __future__ import annotations

from ...elements.affine import Affine, Computed
from ...elements.expression import Cast, Const, Expr, IndexValue, Load, extreme, is_float
from .quotient_axes import divided, divided_with_rest


def arithmetic(primitive: str, args: tuple[Expr, ...], dtype: str) -> Expr | None:
    """Return an operation on positions as a position, so that it stays affine, or None if it is not affine."""
    if len(args) != 2 or not all(isinstance(a, (IndexValue, Const)) and not is_float(a.dtype) for a in args):
        return None
    x, y = (a.index if isinstance(a, IndexValue) else Affine((), int(a.value)) for a in args)  # type: ignore[attr-defined]
    match primitive:
        case "add":
            return position(x + y, dtype)
        case "sub":
            return position(x - y, dtype)
        case "mul" if not y.terms:
            return position(x * y.const, dtype)
        case "div" if not y.terms and y.const > 0 and x.bounds[0] >= 0 and (found := x.divide(y.const)):
            return position(found[0], dtype)
    return None


def position(index: Affine, dtype: str) -> Expr | None:
    """Return a position, or None if the dtype does not hold all its values."""
    low, high = index.bounds
    if low < extreme(dtype, "min") or high > extreme(dtype, "max"):
        return None
    return IndexValue(index, dtype) if index.terms else Const(index.const, dtype)


def converted(e: Expr, dtype: str) -> Expr | None:
    """Return a position in another integer type, or None if `e` is no position or `dtype` is no integer type."""
    return position(e.index, dtype) if isinstance(e, IndexValue) and not is_float(dtype) and dtype != "bool" else None


def computed_index(value: Expr, extent: int) -> Affine:
    """Return a value as an index, clamped to range(extent). The index is affine if the value is."""
    if isinstance(value, Const):
        return Affine((), min(max(int(value.value), 0), extent - 1))
    if isinstance(value, IndexValue) and value.index.bounds[0] >= 0 and value.index.bounds[1] < extent:
        return value.index
    return Affine(((Computed(value, extent), 1),))


def value_bounds(e: Expr) -> tuple[int, int]:
    """Return the least and the greatest value of an integer expression, from its dtype, a constant's data, or a position."""
    if found := divided(e):
        return 0, found.most
    if found := divided_with_rest(e):
        return 0, found.by - 1
    match e:
        case Load(buffer=buffer) if buffer.data is not None and buffer.size:
            return int(buffer.data.min()), int(buffer.data.max())
        case Cast(arg=arg, bits=False) if not is_float(arg.dtype):
            (low, high), (least, most) = value_bounds(arg), value_bounds(Const(0, e.dtype))
            return (low, high) if least <= low and high <= most else (least, most)
        case IndexValue(index):
            return index.bounds
    return int(extreme(e.dtype, "min")), int(extreme(e.dtype, "max"))
