"""The `tf_executor` dialect: closed; the executor's own operators, which know dead values, control and frames."""
