"""What sample 12 writes, and how: the C engine, the two components' own files, and the Python that adds the models to them."""
