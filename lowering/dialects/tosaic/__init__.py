"""tosaic's own operators, beside TOSA's; importing this package registers them."""
from . import (  # noqa: F401  importing registers the operators
    assertion,
    bitcast,
    fourier,
    rescale_in_float,
    rescale_in_words,
    rescale_of_sums,
    rescaled_sum,
)
