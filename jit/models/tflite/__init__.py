"""The importer of .tflite files: Arm's converter in a separate process, and LiteRT as a reference for checks. May import
lowering."""
