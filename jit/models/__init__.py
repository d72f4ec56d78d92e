"""Model files and other systems' models as graphs, one folder for each front door. May import tracing's trees, the cache,
stages, tools and lowering."""
