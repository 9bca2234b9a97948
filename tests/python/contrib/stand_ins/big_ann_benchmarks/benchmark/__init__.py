"""The interface of big-ann-benchmarks, and no more of it."""
