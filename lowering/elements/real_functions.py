"""Functions of a real number in the arithmetic of its dtype: `functions` for float32, `double_functions` for float64."""
from __future__ import annotations

from . import double_functions, float_functions
from .expression import Expr


def exponential(x: Expr) -> Expr:
    return double_functions.exponential(x) if x.dtype == "float64" else float_functions.exponential(x)


def log(x: Expr) -> Expr:
    return double_functions.log(x) if x.dtype == "float64" else float_functions.logarithm(x)[0]


def power(x: Expr, y: Expr) -> Expr:
    return double_functions.power(x, y) if x.dtype == "float64" else float_functions.power(x, y)


def sine(x: Expr) -> Expr:
    return double_functions.sine(x) if x.dtype == "float64" else float_functions.sine(x)


def cosine(x: Expr) -> Expr:
    return double_functions.cosine(x) if x.dtype == "float64" else float_functions.cosine(x)


def tanh(x: Expr) -> Expr:
    return double_functions.tanh(x) if x.dtype == "float64" else float_functions.tanh(x)


def sigmoid(x: Expr) -> Expr:
    return double_functions.sigmoid(x) if x.dtype == "float64" else float_functions.sigmoid(x)


def erf(x: Expr) -> Expr:
    return double_functions.erf(x) if x.dtype == "float64" else float_functions.erf(x)
