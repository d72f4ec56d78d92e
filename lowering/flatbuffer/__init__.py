"""Flatbuffers of TOSA (`.tosa` files) into the tensor graph, and back."""
