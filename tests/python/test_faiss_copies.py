"""What passes between FAISS's module and ours, which hold a copy of FAISS each
where that is a static library: interrupts, exceptions, objects and threads."""

import gc
import signal
import subprocess
import sys
import time

import faiss
import numpy as np
import pytest
from conftest import index_of, make

import faiss_bits

# A search of it takes seconds on any machine.
LONG_N, LONG_D = 200_000, 128


@pytest.fixture(scope="module")
def long_data():
    return np.random.default_rng(0).random((LONG_N, LONG_D), np.float32)


def in_id_map(inner, xb):
    index = faiss.IndexIDMap(inner)
    index.add_with_ids(xb, np.arange(len(xb)) + 5)
    return index


@pytest.mark.parametrize("what", ["ours in theirs", "cloned with ours"])
def test_keyboard_interrupt_inside_an_id_map(long_data, what):
    """Their code that calls ours, and a copy of FAISS's code in our library."""
    if what == "ours in theirs":
        inner = faiss_bits.IndexFusedFlat(LONG_D)
        index = in_id_map(inner, long_data)
    else:
        inner = faiss.IndexFlatL2(LONG_D)
        index = faiss_bits.index_to_fused(in_id_map(inner, long_data))
        assert isinstance(index, faiss.IndexIDMap)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            index.search(long_data, 10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 5
    assert index.search(long_data[:3], 1)[1].tolist() == [[5], [6], [7]]


# Whether or not there is one copy, clearing the callback must leave nothing that
# asks itself, or waits for itself.
CLEARED = """
import faiss, numpy as np
{first}
import faiss_bits
index = faiss_bits.IndexFusedFlat(64)
{then}
x = np.random.default_rng(0).random((10000, 64), np.float32)
index.add(x)
assert (index.search(x, 1)[1][:, 0] == np.arange(10000)).all()
print("searched")
"""


@pytest.mark.parametrize("where", ["first", "then"])
def test_a_cleared_callback(where):
    program = CLEARED.format(
        **{"first": "", "then": ""}
        | {where: "faiss.InterruptCallback.clear_instance()"}
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert "searched" in done.stdout, done.stderr


def test_exceptions_pass_through_their_code():
    x = make("normal", 50, 4, 1)
    inner = faiss_bits.IndexFusedFlat(4)
    index = in_id_map(inner, x)
    inner.choice = faiss_bits.FusedChoice(target="NOT_A_TARGET")
    with pytest.raises(RuntimeError, match="NOT_A_TARGET"):
        index.search(x, 1)
    with pytest.raises(RuntimeError, match="metric"):
        faiss_bits.IndexFusedFlat(4, 30)


def test_their_index_deletes_ours():
    for _ in range(20):
        quantizer = faiss_bits.IndexFusedFlat(8)
        index = faiss.IndexIVFFlat(quantizer, 8, 4)
        quantizer.this.disown()
        index.own_fields = True
        x = make("normal", 400, 8, 1)
        quantizer.add(x[:4])
        index.train(x)
        index.add(x)
        index.nprobe = 4
        assert index.search(x[:5], 1)[1].tolist() == [[i] for i in range(5)]
        del quantizer, index
        gc.collect()


def test_their_threads_are_ours():
    index = index_of(make("normal", 20000, 32, 1))
    before = faiss.omp_get_max_threads()
    try:
        for threads in (1, 2, 3):
            faiss.omp_set_num_threads(threads)
            assert f"threads={threads} " in index.plan(20000, 10)
    finally:
        faiss.omp_set_num_threads(before)
