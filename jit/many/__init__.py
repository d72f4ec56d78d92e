"""One function on many items, on the processes of this machine or on a Dask cluster; and `tosaic map`, which runs a model over
many inputs in this way. The code that distributes the work (`workers`) knows nothing of models. May import models, stages,
tools and the cache."""
