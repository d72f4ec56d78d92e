"""The cache of machine code on disk: what a process has compiled, a later one maps and calls, without lowering and without
LLVM.

Three kinds of entries lie in one folder, each in a file of its own that is named by its key, a SHA-256 of all that the entry
depends on:

    code    the linked machine code of one function, its signature, memory, variables and constants (`code`); found by the
            function's graph (`graph_digest`), the target, the memory options, and what tosaic, LLVM and the machine are
            (`versions`)
    entry   for one entry function of a model file, its shapes, target and options: the key of its code; so a model whose
            bytes are known is not even parsed
    model   the names of a model file's entry functions (`models`)

A traced function is traced again, and found by its graph. What depends on a user's own Python (custom operators, planner's
algorithms) is never kept.

Damage: a file is written under another name and renamed when it is whole, and holds a SHA-256 of its contents and its own key
(`entry_file`). What does not agree is as if it were not there, and is written again. Poison: machine code is taken only from a
folder and files that belong to this user and that nobody else may write (`folder`); nothing in them is unpickled or evaluated.
Who can write there as you can run code as you. Any error of the file system means going on without the cache.

`$TOSAIC_CACHE` is the folder, or `off`; else it is `code` where the system keeps caches of tosaic (`user_caches`): on Linux
`tosaic/code` in `$XDG_CACHE_HOME` or `~/.cache`. `$TOSAIC_CACHE_LIMIT` is the most bytes that it may hold (1 GiB; K, M, G are
powers of 1024): the entries that were not used for longest go.
"""
