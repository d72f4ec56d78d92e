"""The `tf` dialect: open, so that every operation keeps its name, properties, attributes and regions."""
