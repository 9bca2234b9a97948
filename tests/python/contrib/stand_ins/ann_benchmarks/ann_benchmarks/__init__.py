"""The interface of ann-benchmarks, and no more of it."""
