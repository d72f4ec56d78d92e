"""What a user asks of a compiled function: check, profile, tune, report. May import the data of stages, what graphs were made
from, object files and lowering."""
