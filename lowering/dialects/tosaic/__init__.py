"""tosaic's own operators, beside TOSA's; importing this package registers them."""
from . import assertion, bitcast, fourier, rescale_in_float, rescaled_sum  # noqa: F401  importing registers the operators
