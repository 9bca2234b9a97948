"""FAISS's own Python tests of GPU indexes with our classes or with the drop-in
(faiss_files.py)."""

import faiss_files
import pytest

import faiss_bits


@pytest.mark.parametrize("name, test", faiss_files.all_tests())
def test_of_faiss(name, test):
    if faiss_bits.get_num_gpus() == 0:
        pytest.skip(f"needs a GPU: {faiss_bits.swigfaiss_bits.gpu_problem()}")
    faiss_files.run(faiss_files.folder() / name, test)
