"""Programs as code of this process, and what it has once for all of them: thread pool, function objects, interrupt flag.
It may import `llvm` and `driver`, and not `c_object`.
"""
