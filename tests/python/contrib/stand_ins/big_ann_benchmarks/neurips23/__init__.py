"""The tracks of big-ann-benchmarks, as far as the adapters know them."""
