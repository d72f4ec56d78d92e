"""Plans in which buffers share bytes while both are live: which bytes are occupied when, which pairs may overlap and by how
much, and the search for a small plan. Imports loops, row tiling and the planner's buffers and algorithms."""
