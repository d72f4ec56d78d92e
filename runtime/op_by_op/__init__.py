"""The core runtime: operations one at a time, their handles, chains and work queue. May import only runtime."""
