"""Bad arguments of the CPU index from Python: what is raised, and that the index
is as it was."""

import faiss
import numpy as np
import pytest
from conftest import index_of, make

import faiss_bits


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda i, x: i.search(x[0], 1), ValueError, ["x", "(4,)"]),
        (lambda i, x: i.search(x[:, :2], 1), ValueError, ["x", "(any, 4)"]),
        (lambda i, x: i.range_search(x[0], 1), ValueError, ["x", "(4,)"]),
        (lambda i, x: i.add(x[:, :2]), ValueError, ["x", "(any, 4)"]),
        (lambda i, x: i.add(x + 1j), TypeError, ["x is complex"]),
        (lambda i, x: i.search(x + 1j, 1), TypeError, ["x is complex"]),
        (lambda i, x: i.range_search(x + 1j, 1), TypeError, ["x is complex"]),
        (lambda i, x: i.add(x.astype(str)), TypeError, ["x is <U"]),
        (lambda i, x: i.add(x.tolist()), TypeError, ["x is a list"]),
        (lambda i, x: i.range_search(x, np.nan), ValueError, ["thresh is NaN"]),
        (lambda i, x: i.search(x, 0), ValueError, ["k = 0"]),
        (lambda i, x: i.assign(x, 2.5), TypeError, ["k = 2.5"]),
        (lambda i, x: i.knn_subset([1], [1], 0), ValueError, ["k = 0"]),
        (lambda i, x: i.search(x, 1, D=x), ValueError, ["D", "(10, 4)", "(10, 1)"]),
        (lambda i, x: i.search(x, 4, I=x), TypeError, ["I is float32"]),
        (lambda i, x: i.search(x, 1, params=3), TypeError, ["params is a int"]),
        (lambda i, x: i.range_search(x, 1e39), ValueError, ["thresh = 1e+39"]),
        (lambda i, x: i.range_search(x, -(10**400)), ValueError, ["thresh"]),
        (lambda i, x: i.range_search(x, "a"), TypeError, ["thresh = 'a'"]),
        (lambda i, x: i.range_search(x, "0.3"), TypeError, ["thresh = '0.3'"]),
        (lambda i, x: i.range_search(x, b"1"), TypeError, ["thresh = b'1'"]),
        (lambda i, x: i.range_search(x, 1, params="a"), TypeError, ["params is a str"]),
        (lambda i, x: i.search(x[:1], 2**31), ValueError, ["k = 2147483648"]),
        (lambda i, x: i.assign(x[:1], 2**70), ValueError, ["k = ", "more than"]),
        (
            lambda i, x: i.knn_subset([1], [1], 2**31),
            ValueError,
            ["k = 2147483648 is more than"],
        ),
        (lambda i, x: i.plan(3, 0), ValueError, ["k = 0"]),
        (lambda i, x: i.plan(3, 2**40), ValueError, ["k = 1099511627776"]),
        (lambda i, x: i.plan(-1, 3), ValueError, ["n = -1"]),
        (lambda i, x: i.plan(2**63, 3), ValueError, ["n = 9223372036854775808"]),
        (lambda i, x: i.reconstruct_n(2**63, 1), ValueError, ["n0 = 9223372036854775808"]),
        (lambda i, x: i.plan("a", 1), TypeError, ["n = 'a'"]),
        (lambda i, x: i.reconstruct(2.5), TypeError, ["key = 2.5"]),
        (lambda i, x: i.reconstruct(key=None), TypeError, ["key = None"]),
        (lambda i, x: i.reconstruct(10), RuntimeError, ["10"]),
        (lambda i, x: i.reconstruct(-1), RuntimeError, ["-1"]),
        (lambda i, x: i.reconstruct_n(8, 3), RuntimeError, ["8"]),
        (lambda i, x: i.add_with_ids(x, np.arange(10)), RuntimeError, ["ids"]),
    ],
)
def test_errors_leave_the_index_as_it_was(call, error, words):
    xb = make("normal", 10, 4, 1)
    index = index_of(xb)
    with pytest.raises(error) as caught:
        call(index, xb)
    for word in words:
        assert word in str(caught.value), caught.value
    assert index.ntotal == 10
    assert (index.search(xb, 1)[1][:, 0] == np.arange(10)).all()


def test_help_says_what_is_in_short_results():
    for the_class in (faiss_bits.IndexFusedFlat, faiss_bits.IndexFusedIVFFlat):
        words = " ".join(the_class.search.__doc__.split())
        assert "the largest float32, for similarities the smallest" in words
        assert "Inf" not in words


def test_arguments_by_name_are_refused_with_what_fits():
    with pytest.raises(TypeError, match="metric=int.*expected.*by place"):
        faiss_bits.IndexFusedFlat(5, metric=faiss.METRIC_L1)
    flat = faiss.IndexFlatL2(5)
    with pytest.raises(TypeError, match=r"IndexFusedIVFFlat\(quantizer, d, nlist"):
        faiss_bits.IndexFusedIVFFlat(quantizer=flat, d=5, nlist=3)


def test_numbers_that_cpp_has_no_room_for():
    flat = faiss.IndexFlatL2(4)
    ivf = faiss_bits.IndexFusedIVFFlat
    for call, words in (
        (lambda: faiss_bits.IndexFusedFlat(2**31), "d = 2147483648"),
        (lambda: faiss_bits.IndexFusedFlat(-(2**40)), "d = -1099511627776"),
        (lambda: faiss_bits.IndexFusedFlat(4, 2**40), "metric = 1099511627776"),
        (lambda: faiss_bits.IndexFusedFlat(4, 4, 1e300), "metricArg = 1e+300"),
        (lambda: ivf(flat, 4, 2**70), "nlist = 1180591620717411303424"),
        (lambda: ivf(flat, 4, -1), "nlist = -1"),
        (lambda: faiss_bits.IndexListOfClusters(2**31), "d = 2147483648"),
        (lambda: faiss_bits.IndexListOfClusters(4, 1, 2**31), "bucketSize = 2147483648"),
        (lambda: faiss_bits.IndexListOfClusters(4, 1, 9, -1), "seed = -1"),
        (lambda: faiss_bits.IndexSSS(4, 1, 2, 2**31), "maxPivots = 2147483648"),
        (lambda: faiss_bits.best_flat_index(2**40), "d = 1099511627776"),
        (lambda: faiss_bits.best_flat_index(-(2**40)), "d = -1099511627776"),
        (lambda: faiss_bits.best_flat_index(4, 2**31), "metric = 2147483648"),
        (lambda: faiss_bits.cpu_plan(2**70, 1, 1, 1), "nq = 1180591620717411303424"),
        (lambda: faiss_bits.cpu_plan(1, 2**63, 1, 1), "nb = 9223372036854775808"),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert words in str(caught.value)
    for args in ((4.5,), (None,), (flat, 2**31), ("a", 2**31)):
        with pytest.raises(TypeError, match="expected IndexFusedFlat"):
            faiss_bits.IndexFusedFlat(*args)


def test_bad_constructor_arguments():
    for d in (0, -1):
        with pytest.raises(RuntimeError, match=f"d = {d}"):
            faiss_bits.IndexFusedFlat(d)
    with pytest.raises(RuntimeError, match="metric = 30"):
        faiss_bits.IndexFusedFlat(4, 30)
    index = index_of(make("normal", 10, 4, 1), faiss.METRIC_Lp)
    with pytest.raises(RuntimeError, match="metric_arg"):
        index.search(np.zeros((1, 4), np.float32), 1)
    index.metric_arg = 2.5
    assert index.search(index.reconstruct_n(3, 1), 1)[1].tolist() == [[3]]
