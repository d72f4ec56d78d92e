"""TensorFlow Lite files (`.tflite`): their graphs, the partitions of them that a converter is given, and the whole put
together."""
