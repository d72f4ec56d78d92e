"""TensorFlow Lite files (`.tflite`): their graphs, the parts of them that a converter is given, and the whole put together."""
