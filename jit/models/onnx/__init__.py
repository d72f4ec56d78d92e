"""The importer of ONNX files, and ONNX itself as a reference for checks of a model. May import lowering and the models beside
it."""
