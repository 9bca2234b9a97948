"""Extras around faiss_bits: data set readers, evaluation, the quickstart."""
