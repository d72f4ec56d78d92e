"""The door for TensorFlow functions, Keras models and SavedModels, and graphs of its dialects as models. May import lowering
and the cache's outlines."""
