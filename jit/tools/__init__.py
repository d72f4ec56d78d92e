"""Tools for a compiled function: check, profile, tune, report. May import the data of stages, the sources of graphs, object
files and lowering."""
