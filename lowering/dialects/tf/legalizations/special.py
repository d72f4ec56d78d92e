"""TensorFlow's erfc, lgamma and digamma."""
from __future__ import annotations

from ....formulas.special_functions import digamma, erfc, log_gamma
from .formula import formula

formula("tf.Erfc")(erfc)
formula("tf.Lgamma")(log_gamma)
formula("tf.Digamma")(digamma)
