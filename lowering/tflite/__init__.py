"""TensorFlow Lite files (`.tflite`): their graphs, the partitions that a converter gets, and the assembly of the whole."""
