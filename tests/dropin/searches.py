"""Searches with FAISS's GPU indexes, each held against NumPy in float64.

The vectors hold small integers, so that every distance is exact in float32 and
many are equal. Exits with 1, and says what is wrong, unless all results are
right. SEARCHES_IMPORT=1 imports faiss_bits.dropin first.
"""

import json
import os
import sys

if os.environ.get("SEARCHES_IMPORT"):
    import faiss_bits.dropin  # noqa: F401
import faiss
import numpy as np

D = 16
KS = (1, 10, 100, 2048)
checked = 0


def data(n, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 8, (n, D)).astype("float32")


def true_distances(xq, xb, metric):
    q, x = xq.astype("float64"), xb.astype("float64")
    products = q @ x.T
    if metric == faiss.METRIC_INNER_PRODUCT:
        return products
    return (q**2).sum(1)[:, None] + (x**2).sum(1) - 2 * products


def check(what, xq, xb, metric, k, D_, I_):
    """The k best distances, each that of its id, ids unique, -1 at the end."""
    global checked
    largest = metric == faiss.METRIC_INNER_PRODUCT
    worst = np.finfo("float32").max * (-1 if largest else 1)
    # Some queries at both ends: more take NumPy long.
    ends = 20 if len(xb) <= 40_000 else 6
    rows = sorted({*range(len(xq))[:ends], *range(len(xq))[-ends:]})
    truth = true_distances(xq[rows], xb, metric)
    for row, distances in zip(rows, truth):
        found, ids = D_[row], I_[row]
        m = min(k, len(xb))
        best = -distances if largest else distances
        best = np.sort(np.partition(best, m - 1)[:m])
        best = -best if largest else best
        filled, left = ids[:m], ids[m:]
        ok = (
            (found[:m] == best).all()
            and (filled >= 0).all()
            and len(set(filled.tolist())) == m
            and (distances[filled] == best).all()
            and (left == -1).all()
            and (found[m:] == worst).all()
        )
        if not ok:
            print(f"{what}, k = {k}, query {row}: {found[:8]} {ids[:8]}, "
                  f"expected {best[:8]}")
            sys.exit(1)
        checked += 1


def search_all(what, index, xb, metric, queries):
    for q in queries:
        xq = data(q, 100 + q)
        for k in KS:
            check(what, xq, xb, metric, k, *index.search(xq, k))


def check_ways_home(res):
    """Results of many sizes on the host, every row: places at which their way
    changes (dropin/HostResults.cpp), with other numbers before and behind them."""
    global checked
    xb = data(50, 8)
    index = faiss.GpuIndexFlatL2(res, D)
    index.add(xb)
    for q, k in (
        (1, 1), (5461, 1), (5462, 1), (32769, 1), (43691, 1), (65537, 1),
        (87382, 1), (131073, 1), (349526, 1), (700001, 1), (3, 7), (5000, 50),
        (9000, 70),
    ):
        xq = data(q, q + k)
        distances = np.full(q * k + 2, -5, "float32")
        ids = np.full(q * k + 2, -5, "int64")
        index.search_c(
            q, faiss.swig_ptr(xq), k, faiss.swig_ptr(distances[1:]),
            faiss.swig_ptr(ids[1:]), None,
        )
        around = [*distances[[0, -1]], *ids[[0, -1]]]
        D_, I_ = distances[1:-1].reshape(q, k), ids[1:-1].reshape(q, k)
        filled = min(k, len(xb))
        for begin in range(0, q, 1 << 16):
            part = slice(begin, begin + (1 << 16))
            truth = true_distances(xq[part], xb, faiss.METRIC_L2)
            best = np.sort(truth, axis=1)[:, :filled]
            ok = (I_[part, :filled] >= 0).all() and (I_[part, filled:] == -1).all()
            if not ok or around != [-5] * 4 or (D_[part, :filled] != best).any() or (
                np.take_along_axis(truth, I_[part, :filled], 1) != best
            ).any():
                print(f"results of {q} queries, k = {k}, from {begin}: {D_[part]} "
                      f"{I_[part]} {around}, expected {best}")
                sys.exit(1)
        checked += q


def main():
    global checked
    res = faiss.StandardGpuResources()
    for metric in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
        name = "L2" if metric == faiss.METRIC_L2 else "IP"
        # On both sides of what is searched as a whole; 100 queries and more
        # than one tile of columns; fewer vectors than k.
        sizes = (
            (300_000, (1, 16, 17, 100, 128, 1100)),
            (40_000, (1, 127, 128)),
            (8192, (1, 200)),
            (8191, (1, 200)),
            (1000, (1, 30)),
        )
        for n, queries in sizes:
            xb = data(n, n)
            index = faiss.GpuIndexFlat(res, D, metric)
            index.add(xb)
            search_all(f"flat {name} n = {n}", index, xb, metric, queries)
        xb = data(20_000, 5)
        for interleaved in (True, False):
            config = faiss.GpuIndexIVFFlatConfig()
            config.interleavedLayout = interleaved
            index = faiss.GpuIndexIVFFlat(res, D, 64, metric, config)
            index.train(xb)
            index.add(xb)
            index.nprobe = 64  # all lists: exact
            what = f"IVFFlat {name} {'interleaved' if interleaved else 'rows'}"
            search_all(what, index, xb, metric, (1, 30, 200))
            if not interleaved:
                continue
            # Small integers are themselves in float16.
            index = faiss.GpuIndexIVFScalarQuantizer(
                res, D, 64, faiss.ScalarQuantizer.QT_fp16, metric, False
            )
            index.train(xb)
            index.add(xb)
            index.nprobe = 64
            search_all(f"IVFSQ {name}", index, xb, metric, (1, 200))

    check_ways_home(res)

    # No exact answer: the same index on the CPU has the same codes.
    xb, xq = data(20_000, 6), data(50, 7)
    for tables in (False, True):
        config = faiss.GpuIndexIVFPQConfig()
        config.usePrecomputedTables = tables
        index = faiss.GpuIndexIVFPQ(res, D, 64, 8, 8, faiss.METRIC_L2, config)
        index.train(xb)
        index.add(xb)
        index.nprobe = 64
        D_, I_ = index.search(xq, 10)
        cpu = faiss.index_gpu_to_cpu(index)
        cpu.nprobe = 64
        expected = cpu.search(xq, 10)[0]
        if not np.allclose(D_, expected, rtol=1e-2, atol=1e-2):
            print(f"IVFPQ, tables {tables}:", D_[0], "expected", expected[0])
            sys.exit(1)
        checked += len(xq)
    print(json.dumps({"faiss": faiss.__version__, "checked": checked}))


main()
