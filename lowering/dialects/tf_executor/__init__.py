"""The `tf_executor` dialect: closed; the executor's own operators, which handle dead values, control and frames."""
from . import verify_operation  # noqa: F401  fills the table of rules
