"""Formulas in TOSA's operators, the one language for them: the traced tensor, the legalizations of TensorFlow's operations and
the kernels of TensorFlow Lite are written in it. May import `graph` alone; operators are found in its table by their names.

`tosa_builder` appends operators, and has what TOSA lacks: operands of different ranks, arithmetic of narrow integers,
conversions. `term` makes arithmetic of it: `(x - 1) * reciprocal(x + 1)`. The other files have formulas that several front
doors share; where NumPy, TensorFlow and TensorFlow Lite differ, their formulas stand beside each other under names of their
own. What only one door needs stays with it.
"""
