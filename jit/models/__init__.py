"""Importers of model files and of other systems' models as graphs, one folder for each system. May import tracing's trees, the
cache, stages, tools and lowering."""
