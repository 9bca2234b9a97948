"""Objects keep what they need alive, and let go of it after."""

import gc
import threading
import weakref

import faiss
import numpy as np
import oracle
import pytest
from conftest import make

import faiss_bits


def test_cpu_index_outlives_its_maker():
    index = faiss_bits.best_flat_index(4)
    assert index.thisown
    xb = make("normal", 20, 4, 1)
    index.add(xb)
    gc.collect()
    D, I = index.search(xb, 3)
    oracle.check_knn(xb, xb, 3, D, I)


def small_resources():
    res = faiss.StandardGpuResources()
    res.setTempMemory(16 << 20)
    return res


@pytest.mark.gpu
def test_index_keeps_resources_alive():
    xb = make("normal", 100, 8, 1)
    res = small_resources()
    gone = weakref.ref(res)
    index = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    del res
    gc.collect()
    assert gone() is not None
    index.add(xb)
    D, I = index.search(xb, 5)
    oracle.check_knn(xb, xb, 5, D, I)
    del index
    gc.collect()
    assert gone() is None


@pytest.mark.gpu
def test_cloned_index_keeps_resources_alive():
    xb = make("normal", 100, 8, 1)
    cpu = faiss.IndexFlatL2(8)
    cpu.add(xb)
    index = faiss_bits.index_cpu_to_gpu(small_resources(), 0, cpu)
    del cpu
    gc.collect()
    assert index.thisown
    D, I = index.search(xb, 5)
    oracle.check_knn(xb, xb, 5, D, I)


@pytest.mark.gpu
def test_two_indexes_share_resources():
    res = small_resources()
    xb, xb2 = make("normal", 100, 8, 1), make("normal", 70, 8, 2)
    first = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    second = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    first.add(xb)
    second.add(xb2)
    del res
    for _ in range(2):
        oracle.check_knn(xb, xb, 5, *first.search(xb, 5))
        oracle.check_knn(xb, xb2, 5, *second.search(xb, 5))
    del first
    gc.collect()
    oracle.check_knn(xb, xb2, 5, *second.search(xb, 5))


@pytest.mark.gpu
def test_index_made_from_anothers_resources():
    xb = make("normal", 50, 8, 1)
    index = faiss_bits.GpuIndexBitsFlatL2(small_resources(), 8)
    other = faiss_bits.GpuIndexBitsFlatL2(index.getResources(), 8)
    del index
    gc.collect()
    other.add(xb)
    oracle.check_knn(xb, xb, 5, *other.search(xb, 5))


def test_knn_from_many_threads():
    xq, xb = make("normal", 10, 8, 1), make("normal", 300, 8, 2)
    expected = faiss_bits.knn(xq, xb, 5)
    wrong = []

    def work():
        for _ in range(10):
            D, I = faiss_bits.knn(xq, xb, 5)
            if not (np.array_equal(D, expected[0]) and np.array_equal(I, expected[1])):
                wrong.append((D, I))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
