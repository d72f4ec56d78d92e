"""Ways to place buffers of known lifetimes and conflicts. May import the planner's data and machine_code."""
