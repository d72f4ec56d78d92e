"""tosaic's own operators, beside TOSA's; importing this package registers them."""
from . import assertion, bitcast, fourier, rescaled_sum  # noqa: F401  importing registers the operators
