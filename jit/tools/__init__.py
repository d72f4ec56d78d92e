"""What a user asks of a compiled function: check, profile, tune, report. May import the data of stages, models' sources and
lowering."""
