"""TensorFlow's inverse trigonometric functions."""
from __future__ import annotations

from ....formulas.angles import arc_cosine, arc_sine, arc_tangent, arc_tangent_of_two
from .formula import formula

formula("tf.Atan")(arc_tangent)
formula("tf.Asin")(arc_sine)
formula("tf.Acos")(arc_cosine)
formula("tf.Atan2")(arc_tangent_of_two)
