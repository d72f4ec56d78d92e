"""The `tf` dialect: open, so that an operation keeps its name, properties, attributes and regions whatever it is."""
