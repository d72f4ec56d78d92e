"""The strategies of nests whose outputs do not share work: one by one in vectors, and transposes.
It imports `nest` and `vectorize`."""
