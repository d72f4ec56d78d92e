"""tosaic's own operators, beside TOSA's; importing this package registers them."""
from . import check, fourier  # noqa: F401  importing registers the operators
