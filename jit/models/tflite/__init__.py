"""The door for .tflite files: Arm's converter in a process of its own, and LiteRT to check against. May import lowering."""
