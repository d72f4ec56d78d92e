"""The importer of TensorFlow functions, Keras models and SavedModels, and graphs of TensorFlow's dialects as models. May import
lowering and the cache's outlines."""
