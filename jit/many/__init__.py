"""One function on many items, on the processes of this machine or on a Dask cluster; and `tosaic map`, which runs a model over
many inputs so. What spreads the work (`workers`) knows nothing of models. May import models, stages, tools and the cache."""
