"""The cache of machine code on disk: code that one process compiles, a later process maps and calls, without lowering and
without LLVM.

One folder holds three kinds of entries, each in its own file that is named by its key, a SHA-256 of all that the entry depends
on:

    code    the linked machine code of one function, its signature, memory, variables and constants (`code`); the key covers
            the function's graph (`graph_digest`), the target, the memory options, and the versions of tosaic, LLVM and the
            machine (`versions`)
    entry   the key of the code for one entry function of a model file, its shapes, target and options; so a model whose
            bytes are known is not even parsed
    model   the names of a model file's entry functions (`models`)

A traced function is traced again, and its graph is looked up. Code that depends on a user's own Python (custom operators,
planner's algorithms) is never kept.

Damage: a file is written under another name and renamed when it is complete, and holds a SHA-256 of its contents and its own
key (`entry_file`). A file that does not match counts as missing, and is written again. Poison: machine code is taken only from
a folder and files that belong to this user and that nobody else may write (`folder`); nothing in them is unpickled or
evaluated. A process that can write there with your rights can run code with your rights. Any error of the file system disables
the cache.

`$TOSAIC_CACHE` is the folder, or `off`; else it is `code` in the system's folder for caches of tosaic (`user_caches`): on Linux
`tosaic/code` in `$XDG_CACHE_HOME` or `~/.cache`. `$TOSAIC_CACHE_LIMIT` is its maximum size in bytes (1 GiB; K, M, G are powers
of 1024): the least recently used entries are removed first.
"""
